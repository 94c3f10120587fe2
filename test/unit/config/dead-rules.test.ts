/** What the file says and never does is warned of before somebody waits for it in vain. */
import { describe, expect, test } from 'vitest'
import { deadRuleWarnings } from '../../../src/config/dead-rules.ts'
import { parseConfig } from '../../../src/config/load.ts'

const base = `
accounts:
  north: { base_url: 'https://api.example.com', api_key: key }
  south: { base_url: 'https://api.example.com', api_key: key }
feeds:
  brand: { type: events, account: north, identifier_group: 7, labels: { team: brand, tier: gold } }
  domains: { type: events, account: south, identifier_group: 8, labels: { team: infra } }
sinks:
  soc: { type: slack, url: 'https://hooks.example.com/x' }
`

interface Warning {
  at: string
  problem: string
  remedy: string
}

function warningsOf(rest: string): Warning[] {
  const { warnings } = parseConfig(`${base}${rest}`, { file: 'tocsin.yaml', env: {} })
  return warnings.map(({ path, problem, remedy }) => ({ at: path, problem, remedy }))
}

/** Of one route with these matchers, each in single quotes. */
function routeWarnings(...matchers: string[]): Warning[] {
  const list = matchers.map((matcher) => `'${matcher}'`).join(', ')
  return warningsOf(`route: { sinks: [soc], routes: [{ name: one, matchers: [${list}] }] }`)
}

describe('a matcher that can never match', () => {
  test.each([
    ['feed=brnad', 'never matches: there is no feed "brnad"', 'did you mean "brand"?'],
    ['account="nort"', 'never matches: there is no account "nort"', 'did you mean "north"?'],
    ['severity=hihg', 'never matches: there is no severity "hihg"', 'did you mean "high"?'],
    ['kind=evnt', 'never matches: there is no kind "evnt"', 'did you mean "event"?'],
    ['team=infar', 'never matches: no feed has the label team: "infar"', 'did you mean "infra"?'],
    [
      'type=stealer_lgo',
      'never matches: there is no type "stealer_lgo"',
      'did you mean "stealer_log"?',
    ],
    ['feed=zzzzzz', 'never matches: there is no feed "zzzzzz"', 'there are: brand, domains'],
    [
      'feed=~"brand|domians"',
      '"domians" in it never matches: there is no feed "domians"',
      'did you mean "domains"?',
    ],
    ['feed!=brnad', 'excludes nothing: there is no feed "brnad"', 'did you mean "brand"?'],
  ])('%s', (matcher, problem, remedy) => {
    expect(routeWarnings(matcher)).toEqual([{ at: 'route.routes[0].matchers[0]', problem, remedy }])
  })

  test.each([
    'tier=""',
    'tier!=gold',
    'type=some_new_type',
    'type=driller_paste',
    'type=domain_status',
    'type=docker_layer',
    'type=~"nobody_knows.*"',
    'team=~"in.*"',
    'tag=any',
    'source=any',
    'severity=unknown',
    'severity=~"none|unknown"',
    'severity=~"un.*"',
    'severity!~"info|low|medium|high|critical"',
  ])('%s may match', (matcher) => {
    expect(routeWarnings(matcher)).toEqual([])
  })
})

describe('a route behind another', () => {
  function second(first: string, later: string): string[] {
    const routes = `[{ name: early, ${first} }, { name: late, ${later} }]`
    return warningsOf(`route: { sinks: [soc], routes: ${routes} }`).map(({ problem }) => problem)
  }

  const shadowed = ['never matches: the route early before it takes all of its events']

  test.each([
    ["matchers: ['severity>=high']", "matchers: ['severity>=high']"],
    ["matchers: ['feed=brand', 'type=paste']", "matchers: ['type=paste', 'feed=brand']"],
    ['matchers: []', "matchers: ['type=paste']"],
  ])('that takes %s is never asked with %s', (first, later) => {
    expect(second(first, later)).toEqual(shadowed)
  })

  test.each([
    ["matchers: ['severity=critical']", "matchers: ['severity>=high']"],
    ["matchers: ['severity=high'], continue: true", "matchers: ['severity=high']"],
    ["matchers: ['severity=high'], mode: shadow", "matchers: ['severity=high']"],
  ])('that takes %s leaves some of %s', (first, later) => {
    expect(second(first, later)).toEqual([])
  })
})

test.each([
  [
    'silences',
    "{ matchers: [feed=brnad], until: '2099-01-01T00:00Z', owner: jo, reason: r, max_severity: low }",
    'silences[0].matchers[0]',
  ],
  [
    'inhibit_rules',
    '{ source_matchers: [feed=brnad], target_matchers: [type=paste], equal: [identifier], window: 1h }',
    'inhibit_rules[0].source_matchers[0]',
  ],
])('%s for a feed that does not exist are named', (section, rule, at) => {
  expect(warningsOf(`route: { sinks: [soc] }\n${section}:\n  - ${rule}\n`)).toMatchObject([
    { at, remedy: 'did you mean "brand"?' },
  ])
})

/** How often the feeds of so many organizations, each with its route, are looked at. */
function looksAtFeeds(organizations: number): number {
  const names = Array.from({ length: organizations }, (_, index) => `org-${index}`)
  const file = {
    accounts: names.map((name) => `  ${name}: { base_url: 'https://api.example.com', api_key: k }`),
    feeds: names.map((name) => `  ${name}: { type: events, account: ${name} }`),
    routes: names.map((name) => `    - { name: ${name}, matchers: ['account=${name}'] }`),
  }
  const { config } = parseConfig(
    [
      ['accounts:', ...file.accounts, 'feeds:', ...file.feeds].join('\n'),
      "sinks:\n  soc: { type: slack, url: 'https://hooks.example.com/x' }",
      ['route:', '  sinks: [soc]', '  routes:', ...file.routes].join('\n'),
    ].join('\n'),
    { file: 'tocsin.yaml', env: {} },
  )
  let looks = 0
  const feeds = config.feeds.map((feed) => ({
    ...feed,
    get labels() {
      looks += 1
      return feed.labels
    },
    get name() {
      looks += 1
      return feed.name
    },
  }))
  expect(deadRuleWarnings({ ...config, feeds })).toEqual([])
  return looks
}

test('twice the organizations, each with its route, are at most twice the work', () => {
  expect(looksAtFeeds(200)).toBeLessThanOrEqual(2 * looksAtFeeds(100))
})
