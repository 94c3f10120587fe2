/** What a digest says of feeds: those whose events its sink may get, and no tenant's of another. */
import { expect, test } from 'vitest'
import { parseConfig } from '../../../src/config/load.ts'
import { createCoverage } from '../../../src/daemon/parts/coverage.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createRouter } from '../../../src/routing/router.ts'
import { redisForTests, takeIn } from '../../support/ledger.ts'

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

test('each sink reads of the feeds that may reach it, whether they are behind and what the quarantine holds', async () => {
  const { config } = parseConfig(yaml, { file: 'test.yaml', env: {} })
  const keys = tests.keys()
  const ledgers = await Promise.all(
    ['north', 'south'].map((account) => tests.ledger({ keys, account })),
  )
  const context = { config, clock: systemClock, ledgers }
  const lag = { lagObjectiveMs: 60_000 }
  const readCoverage = createCoverage(context, createRouter(config.route).root, () => lag)
  const coverage = await readCoverage()
  const feedsOf = (sink: string): string[] => coverage(sink).map(({ feed }) => feed)
  expect(feedsOf('north')).toEqual(['brand'])
  expect(feedsOf('spare')).toEqual(['brand'])
  expect(feedsOf('south')).toEqual(['leaks'])
  expect(feedsOf('ops')).toEqual(['leaks'])
  const malformed = [{ uid: null, problem: 'no uid', raw: '{}' }]
  await takeIn(ledgers[0]!, [], { feed: 'brand', malformed, isCaughtUp: false })
  expect((await readCoverage())('north')).toMatchObject([
    { feed: 'brand', lastCaughtUpMs: null, isBehind: true, quarantined: 1 },
  ])
})
