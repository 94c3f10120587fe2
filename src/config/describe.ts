import { stringify } from 'yaml'
import type { Config } from './config.ts'

/**
 * The configuration as it was understood, in YAML: defaults filled in, times in ms, secrets as
 * `<secret>`.
 */
export function describeConfig(config: Config): string {
  return stringify(JSON.parse(JSON.stringify(config)), { lineWidth: 120 })
}
