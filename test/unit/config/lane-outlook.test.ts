import { expect, test } from 'vitest'
import { expectPolling, findOutlooks } from '../../../src/config/warnings.ts'
import { parseConfig } from '../../../src/config/load.ts'
import { createOrganizations } from '../../../src/upstream/access/organizations.ts'
import type { Config } from '../../../src/config/config.ts'

function configOf(feeds: number, keys = ''): Config {
  const named = Array.from(
    { length: feeds },
    (_none, at) => `  feed${at}: {type: events, identifier_group: 7${keys}}`,
  )
  const text = `
accounts: {main: {base_url: https://api.example.com, api_key: fw_key, limits: {search: 1000}}}
sinks: {soc: {type: slack, url: 'https://hooks.example.com/x'}}
route: {sinks: [soc]}
feeds:
${named.join('\n')}
`
  return parseConfig(text, { file: 'tocsin.yaml', env: {} }).config
}

test('no interval is expected that is shorter than a hundred polls a second allow', () => {
  expect(findOutlooks(configOf(500))[0]).toMatchObject({ intervalMs: 5_000 })
  expect(findOutlooks(configOf(600))[0]).toMatchObject({ intervalMs: 6_000, longestMs: 6_000 })
  const hurried = configOf(1_200, ', every: 10s')
  expect(expectPolling(hurried).get('feed0')).toEqual({
    intervalMs: 12_000,
    lagObjectiveMs: 300_000,
  })
})

test('what is expected of a feed follows its organization as soon as that is known', () => {
  const accounts = Array.from(
    { length: 300 },
    (_none, at) => `  a${at}: {base_url: 'https://api.example.com', api_key: fw_key}`,
  )
  const feeds = accounts.map(
    (_none, at) => `  feed${at}: {type: events, identifier_group: 7, account: a${at}}`,
  )
  const text = `
accounts:
${accounts.join('\n')}
sinks: {soc: {type: slack, url: 'https://hooks.example.com/x'}}
route: {sinks: [soc]}
feeds:
${feeds.join('\n')}
`
  const { config } = parseConfig(text, { file: 'tocsin.yaml', env: {} })
  const organizations = createOrganizations(config.accounts)
  const objectiveOf = (feed: string): number | undefined =>
    expectPolling(config, organizations).get(feed)?.lagObjectiveMs
  // all of one server share one request a second until their organizations are known
  expect(objectiveOf('feed0')).toBeGreaterThan(1_200_000)
  organizations.learn('a0', 7)
  expect(objectiveOf('feed0')).toBe(300_000)
  expect(objectiveOf('feed1')).toBeGreaterThan(1_200_000)
})

test('a stated interval that the budget does not keep makes no objective that nothing can meet', () => {
  const config = configOf(100, ', every: 100s')
  const slow = {
    ...config,
    accounts: config.accounts.map((one) => ({ ...one, limits: { search: 0.5, basic: 4 } })),
  }
  expect(expectPolling(config).get('feed0')).toEqual({ intervalMs: 5_000, lagObjectiveMs: 300_000 })
  const [lane] = findOutlooks(slow)
  expect(lane).toMatchObject({ areStatedKept: false })
  expect(expectPolling(slow).get('feed0')).toEqual({
    intervalMs: lane!.intervalMs,
    lagObjectiveMs: Math.ceil(3 * lane!.intervalMs),
  })
})

test('the objective is no shorter than three stated intervals where the budget keeps none of them', () => {
  const { feeds, ...config } = configOf(10, ', every: 5s')
  const rare = {
    ...config,
    accounts: config.accounts.map((one) => ({ ...one, limits: { search: 0.5, basic: 4 } })),
    feeds: [{ ...feeds[0]!, longestMs: 3_600_000 }, ...feeds.slice(1)],
  }
  expect(findOutlooks(rare)[0]).toMatchObject({ areStatedKept: false })
  expect(expectPolling(rare).get('feed0')).toMatchObject({ lagObjectiveMs: 3 * 3_600_000 })
  expect(expectPolling(rare).get('feed1')).toMatchObject({ lagObjectiveMs: 300_000 })
})
