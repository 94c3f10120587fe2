import { createHash } from 'node:crypto'
import { isSection } from '../runtime/config-section.ts'
import type { Config } from './config.ts'

/**
 * Names what the configuration does with events: sha256 (hex) over feeds, sinks, routes and where the
 * accounts read. Secrets, the order of feeds and sinks, ports and limits of accounts do not count.
 */
export function configHash({ accounts, feeds, sinks, route }: Config): string {
  const named = {
    // what else begins another walk: two such configurations must be two generations
    accounts: byName(accounts).map(({ name, baseUrl, tenantId }) => ({ name, baseUrl, tenantId })),
    feeds: byName(feeds),
    sinks: byName(sinks).map(withoutSecrets),
    route,
  }
  const text = JSON.stringify(named, (_key, value: unknown) => sorted(value))
  return createHash('sha256').update(text).digest('hex')
}

function byName<Entry extends { name: string }>(entries: readonly Entry[]): Entry[] {
  return entries.toSorted((left, right) => (left.name < right.name ? -1 : 1))
}

function withoutSecrets(sink: Config['sinks'][number]): object {
  const {
    url: _url,
    smtp: _smtp,
    secrets: _secrets,
    ...open
  } = { ...sink } as Record<string, unknown>
  return open
}

function sorted(value: unknown): unknown {
  if (!isSection(value)) return value
  return Object.fromEntries(
    Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1)),
  )
}
