/** What feeds ask for that their budget does not carry, or that is probably not meant. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { expectPolling } from '../../../src/config/warnings.ts'
import { parseConfig, type LoadedConfig } from '../../../src/config/load.ts'

interface Budget {
  search?: number
  basic?: number
}

function load(feeds: readonly string[], { search = 1, basic = 4 }: Budget = {}): LoadedConfig {
  const text = `
accounts:
  main:
    base_url: https://api.example.com
    api_key: key
    limits: { search: ${search}, basic: ${basic} }
sinks: { soc: { type: slack, url: 'https://hooks.example.com/x' } }
route: { sinks: [soc] }
feeds:
${feeds.map((keys, index) => `  feed${index}: { ${keys} }`).join('\n')}
`
  return parseConfig(text, { file: 'tocsin.yaml', env: {} })
}

function warningsOf(feeds: readonly string[], budget?: Budget): string[] {
  return load(feeds, budget).warnings.map(({ path, problem }) => `${path}: ${problem}`)
}

const events = 'type: events, identifier_group: 7'
const credentials = 'type: credentials, identifier: 77, severity: high'
const search = 'type: credential_search, severity: low, query: { type: keyword, keyword: acme }'

describe('intervals that together exceed the limit', () => {
  test('are told with both numbers and the place of the limit', () => {
    expect(warningsOf([`${search}, every: 60s`], { search: 0.01 })).toEqual([
      'accounts.main.limits.search: the feeds of the tier search ask for 0.02 requests per second, more than the 0.01 that they may use: no stated interval is kept',
    ])
    const hurried = `${events}, every: 10s`
    expect(warningsOf(Array<string>(7).fill(hurried))).toEqual([])
    expect(warningsOf(Array<string>(8).fill(hurried))).toHaveLength(1)
    expect(warningsOf(Array<string>(8).fill(`${events}, lag_objective: 10s`))).toHaveLength(1)
  })

  test.each([
    ['of one organization together', ', organization_id: 7', 1],
    ['of unknown organizations apart', '', 0],
  ])('are counted for the accounts %s', (_what, organization, count) => {
    const indexes = Array.from({ length: 35 }, (_none, index) => index)
    const text = `
accounts:
${indexes.map((index) => `  tenant${index}: { base_url: https://api.example.com, api_key: key${organization} }`).join('\n')}
sinks: { soc: { type: slack, url: 'https://hooks.example.com/x' } }
route: { sinks: [soc] }
feeds:
${indexes.map((index) => `  feed${index}: { account: tenant${index}, ${search}, every: 45s }`).join('\n')}
`
    expect(parseConfig(text, { file: 'tocsin.yaml', env: {} }).warnings).toHaveLength(count)
  })

  test('no feed of the defaults is warned of, up to ten in a tier', () => {
    const feeds = [events, search].flatMap((keys) => Array<string>(5).fill(keys))
    expect(warningsOf([...feeds, ...Array<string>(10).fill(credentials)])).toEqual([])
  })

  test('a higher limit never brings a warning that a lower one did not', () => {
    const someFeed = fc
      .tuple(
        fc.constantFrom(events, search, credentials),
        fc.integer({ min: 5, max: 600 }),
        fc.option(fc.integer({ min: 5, max: 2000 })),
      )
      .map(([keys, every, rescan]) => {
        const none = keys === credentials ? '{}' : 'false'
        const written = rescan === null ? none : `{ every: ${rescan}m }`
        return `${keys}, every: ${every}s, rescan: ${written}`
      })
    const limit = fc.integer({ min: 1, max: 500 }).map((thousandth) => thousandth / 1000)
    fc.assert(
      fc.property(
        fc.array(someFeed, { minLength: 1, maxLength: 5 }),
        limit,
        limit,
        (feeds, a, b) => {
          const [low, high] = [Math.min(a, b), Math.max(a, b)]
          const told = (perSecond: number): string[] =>
            load(feeds, { search: perSecond, basic: perSecond }).warnings.map(({ path }) => path)
          expect(told(low)).toEqual(expect.arrayContaining(told(high)))
        },
      ),
      { numRuns: 60 },
    )
  })
})

describe('intervals that operators state', () => {
  test('are objectives too; without any, the objective follows from the number of feeds, not below 5 min', () => {
    const objectives = (feeds: readonly string[]): (number | undefined)[] =>
      [...expectPolling(load(feeds).config).values()]
        .slice(0, 2)
        .map(({ lagObjectiveMs }) => lagObjectiveMs / 1000)
    expect(objectives([events, `${events}, every: 10m`])).toEqual([300, 1_800])
    expect(objectives([`${events}, lag_objective: 20s`])).toEqual([20])
    // 140 feeds at 0.7 requests a second: each after 200 s
    expect(objectives(Array<string>(140).fill(events))).toEqual([600, 600])
  })
})
