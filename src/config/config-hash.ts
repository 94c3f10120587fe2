import { createHash } from 'node:crypto'
import { isSection } from '../runtime/config-section.ts'
import type { Config } from './config.ts'

/**
 * Names what the configuration does with events: sha256 (hex) over feeds, sinks, routes, time
 * intervals, inhibition, silences and where the accounts read. Secrets, the order of feeds and sinks,
 * ports and limits of accounts do not count; nor do notices and the canary: two replicas that differ in
 * them fight over no cursor, and whichever tells first, it is told once.
 */
export function configHash(config: Config): string {
  const { accounts, feeds, sinks, route, timeIntervals, inhibitRules, silences } = config
  const named = {
    // what else begins another walk: two such configurations must be two generations
    accounts: byName(accounts).map(({ name, baseUrl, tenantId }) => ({ name, baseUrl, tenantId })),
    feeds: byName(feeds),
    sinks: byName(sinks).map(withoutSecrets),
    route,
    timeIntervals,
    inhibitRules,
    silences,
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
