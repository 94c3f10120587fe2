import type { Config } from '../config/config.ts'

/** How long a sink collects a batch, ms; undefined where it sends singly, or is not configured. */
export function batchWaitOf({ sinks }: Pick<Config, 'sinks'>, name: string): number | undefined {
  const sink = sinks.find((one) => one.name === name)
  return sink?.type === 'webhook' ? sink.batch?.waitMs : undefined
}
