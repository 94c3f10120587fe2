/** What a digest says of feeds: those whose events its sink may get, and no tenant's of another. */
import { expect, test } from 'vitest'
import { parseConfig } from '../../../src/config/load.ts'
import { unregistered } from '../../../src/daemon/context.ts'
import { buildFlushContext } from '../../../src/daemon/parts/grouping.ts'
import { defaultTimings, systemClock } from '../../../src/lib/clock.ts'
import { createMetrics } from '../../../src/lib/metrics/metrics.ts'
import { createRouter } from '../../../src/routing/router.ts'
import { drainOptions } from '../../support/delivery.ts'
import { redisForTests, routed, silent, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()

const yaml = `
redis: {url: 'redis://127.0.0.1:1'}
accounts:
  north: {base_url: 'https://api.example.com', api_key: one}
  south: {base_url: 'https://api.example.com', api_key: two}
feeds:
  brand: {account: north, type: events, identifier_group: 1, detail: []}
  leaks: {account: south, type: events, identifier_group: 2, detail: []}
sinks:
  ops: {type: slack, url: 'https://hooks.slack.com/services/T/B/ops'}
  north: {type: slack, url: 'https://hooks.slack.com/services/T/B/north', fallback: spare}
  south: {type: slack, url: 'https://hooks.slack.com/services/T/B/south'}
  spare: {type: slack, url: 'https://hooks.slack.com/services/T/B/spare'}
route:
  sinks: [ops]
  routes:
    - {name: north, matchers: [account=north], sinks: [north]}
    - {name: south, matchers: [account=south], sinks: [south, ops]}
`

test('each sink reads of the feeds that may reach it, and of accounts that left while it waits', async () => {
  const { config } = parseConfig(yaml, { file: 'test.yaml', env: {} })
  const keys = tests.keys()
  const ledgers = await Promise.all(
    ['north', 'south', 'gone', 'empty'].map((account) => tests.ledger({ keys, account })),
  )
  await takeIn(ledgers[2]!, [routed({ uid: 'a/1' }, ['south'])], { feed: 'old' })
  await takeIn(ledgers[3]!, [routed({ uid: 'a/2' }, [])], { feed: 'older' })
  const { circuit, rules = { decide: async () => [], allowsAll: () => true } } = drainOptions({
    redis: tests.redis,
    keys,
    ledgers,
    clock: systemClock,
  })
  const { readCoverage } = buildFlushContext(
    {
      redis: tests.redis,
      keys,
      clock: systemClock,
      logger: silent,
      metrics: createMetrics({ clock: systemClock }),
      timings: defaultTimings,
      config,
      ledgers,
      foreignAccounts: new Map(),
      generation: { ...unregistered(), number: 1, isActive: true },
    },
    {
      outlets: new Map(),
      router: createRouter(config.route),
      rules,
      circuit,
      retryNow: { ensureProbe: async () => false },
      drains: { announce: () => undefined },
      expectedPolling: () => ({ lagObjectiveMs: 60_000 }),
    },
  )
  const coverage = await readCoverage()
  const feedsOf = async (sink: string): Promise<string[]> =>
    (await coverage(sink, 0)).map(({ feed, hasLeft }) => (hasLeft ? `${feed} (left)` : feed))
  expect(await feedsOf('north')).toEqual(['brand'])
  expect(await feedsOf('spare')).toEqual(['brand'])
  expect(await feedsOf('south')).toEqual(['leaks', 'old (left)'])
  expect(await feedsOf('ops')).toEqual(['leaks'])
})
