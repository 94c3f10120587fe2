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
    [
      'team=~"x.*"',
      'never matches: no team of this file fits',
      'correct the pattern; there are: brand, infra',
    ],
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

  test.each([
    ['account=north', 'feed=domains'],
    ['account=south', 'team=brand'],
    ['severity>=high', 'severity=low'],
    ['type=paste', 'type=leak'],
    ['type=paste', 'type!=paste'],
  ])('%s and %s, of which each could match alone', (one, other) => {
    expect(routeWarnings(one, other)).toMatchObject([
      { at: 'route.routes[0]', problem: expect.stringMatching(/no event can meet all/) },
    ])
    const below = `{ name: upper, matchers: ['${one}'], routes: [{ matchers: ['${other}'] }] }`
    expect(warningsOf(`route: { sinks: [soc], routes: [${below}] }`)).toMatchObject([
      { at: 'route.routes[0].routes[0]', problem: expect.stringMatching(/no event can meet all/) },
    ])
  })
})

describe("a matcher that the feed's type or its filters rule out", () => {
  const feeds = `
accounts: { main: { base_url: 'https://api.example.com', api_key: key } }
feeds:
  brand: { type: events, identifier_group: 7, filters: { type: [stealer_log, bot], severity: high } }
  infected: { type: tenant_events, filters: { type: [infected_devices], severity: [low, medium] } }
  open: { type: event_search, query: { type: domain, fqdn: acme.com }, filters: { type: [open_web] } }
  old: { type: legacy_search, query: acme }
  logins: { type: credentials, identifier: 9, severity: high }
  reports: { type: reports, requests: ['5f3c'] }
sinks:
  soc: { type: slack, url: 'https://hooks.example.com/x' }
`
  function warningsBelow(feed: string, ...matchers: string[]): Warning[] {
    const below = matchers.map((matcher) => `'${matcher}'`).join(', ')
    const routes = `[{ name: upper, matchers: [feed=${feed}], routes: [{ matchers: [${below}] }] }]`
    const { warnings } = parseConfig(`${feeds}route: { sinks: [soc], routes: ${routes} }`, {
      file: 'tocsin.yaml',
      env: {},
    })
    return warnings
      .map(({ path, problem, remedy }) => ({ at: path, problem, remedy }))
      .filter(({ at }) => at.startsWith('route.'))
  }

  test.each([
    [
      'brand',
      'kind="credential"',
      'feed brand gives kind event alone',
      'it is given by: logins; name one of them, or correct the matcher',
    ],
    [
      'old',
      'kind=report',
      'feed old gives kind event alone',
      'it is given by: reports; name one of them, or correct the matcher',
    ],
    [
      'logins',
      'type=leaked_credential',
      'feed logins gives type credential alone',
      'it is given by: brand, infected, open, old; name one of them, or correct the matcher',
    ],
    [
      'logins',
      'severity=critical',
      'feed logins gives severity high alone',
      'it is given by: brand, open, old; name one of them, or correct the matcher',
    ],
    [
      'logins',
      'tag=vip',
      'feed logins gives no tag',
      'it is given by: brand, infected, open, old, reports; name one of them, or correct the matcher',
    ],
    [
      'reports',
      'source=telegram',
      'feed reports gives source threat_flow alone',
      'it is given by: brand, infected, open, old, logins; name one of them, or correct the matcher',
    ],
    [
      'brand',
      'type=paste',
      'feed brand gives type stealer_log, bot alone',
      'it is given by: open, old; name one of them, or correct the matcher',
    ],
    [
      'infected',
      'type=~"paste|leak"',
      'feed infected gives type bot, stealer_log alone',
      'it is given by: open, old; name one of them, or correct the matcher',
    ],
    [
      'brand',
      'severity<=medium',
      'feed brand gives severity high, critical alone',
      'it is given by: infected, open, old, reports; name one of them, or correct the matcher',
    ],
    [
      'infected',
      'severity>=high',
      'feed infected gives severity low, medium alone',
      'it is given by: brand, open, old, logins; name one of them, or correct the matcher',
    ],
    [
      '~"brand|old"',
      'kind!=event',
      '2 feeds give kind event alone',
      'it is given by: logins, reports; name one of them, or correct the matcher',
    ],
  ])('below feed=%s: %s', (feed, matcher, gives, remedy) => {
    const problem = `never matches: ${gives}`
    const at = 'route.routes[0].routes[0].matchers[0]'
    expect(warningsBelow(feed, matcher)).toEqual([{ at, problem, remedy }])
  })

  test('two that each could meet, and no feed both, are named at the route', () => {
    expect(warningsBelow('~"brand|logins"', 'kind=credential', 'tag=vip')).toMatchObject([
      { at: 'route.routes[0].routes[0]', problem: expect.stringMatching(/no event can meet all/) },
    ])
  })

  test('what no feed of the file gives is said, with what there is', () => {
    const { warnings } = parseConfig(
      `${base}route: { sinks: [soc], routes: [{ matchers: [kind=report] }] }`,
      { file: 'tocsin.yaml', env: {} },
    )
    expect(warnings).toMatchObject([
      {
        path: 'route.routes[0].matchers[0]',
        problem: 'never matches: 2 feeds give kind event alone',
        remedy: 'correct the matcher, or remove it',
      },
    ])
  })

  test.each([
    ['brand', 'type=stealer_log'],
    ['brand', 'type!=bot'],
    ['brand', 'type=some_new_type'],
    ['brand', 'type=lookalike'],
    ['brand', 'type=~"st.*"'],
    ['brand', 'type=~"nobody_knows.*"'],
    ['brand', 'type=~"some_new_type|another"'],
    ['brand', 'severity=unknown'],
    ['brand', 'severity!~"info|low|medium|high|critical"'],
    ['infected', 'type=bot'],
    ['infected', 'severity!=low'],
    ['open', 'type=stealer_log'],
    ['open', 'severity=low'],
    ['old', 'type=paste'],
    ['brand', 'identifier=acme.com'],
    ['brand', 'source=telegram'],
    ['logins', 'type=credential'],
    ['logins', 'tag!=vip'],
    ['logins', 'source=any'],
    ['reports', 'tag=vip'],
    ['reports', 'severity=info'],
    ['~"brand|logins"', 'kind=credential'],
  ])('below feed=%s: %s may match', (feed, matcher) => {
    expect(warningsBelow(feed, matcher)).toEqual([])
  })

  test('a silence and a rule of inhibition for what no feed gives', () => {
    const { warnings } = parseConfig(
      `${feeds}route: { sinks: [soc] }
silences:
  - { matchers: [feed=logins, tag=vip], until: '2099-01-01T00:00Z', owner: jo, reason: r, max_severity: high }
  - { matchers: [feed=logins], until: '2099-01-01T00:00Z', owner: jo, reason: r, max_severity: medium }
inhibit_rules:
  - { source_matchers: [feed=brand, kind=report], target_matchers: [type=paste], equal: [tag], window: 1h }
`,
      { file: 'tocsin.yaml', env: {} },
    )
    const rules = warnings.filter(({ path }) => /^(silences|inhibit)/.test(path))
    expect(rules.map(({ path, problem }) => [path, problem])).toEqual([
      ['silences[0].matchers[1]', 'never matches: feed logins gives no tag'],
      [
        'silences[1].max_severity',
        'silences nothing: its matchers want more than its max_severity, medium',
      ],
      ['inhibit_rules[0].source_matchers[1]', 'never matches: feed brand gives kind event alone'],
    ])
  })
})

describe('a route behind another', () => {
  function second(first: string, later: string): string[] {
    const routes = `[{ name: early, ${first} }, { name: late, ${later} }]`
    return warningsOf(`route: { sinks: [soc], routes: ${routes} }`).map(({ problem }) => problem)
  }

  const shadowed = ['never matches: the route early before it takes all of its events']

  test.each([
    ["matchers: ['severity>=high']", "matchers: ['severity=critical']"],
    ["matchers: ['severity!=low']", "matchers: ['severity>medium', 'type=paste']"],
    ["matchers: ['account=north']", "matchers: ['feed=brand']"],
    ["matchers: ['team=brand']", "matchers: ['account=north', 'severity=low']"],
    ['matchers: [\'type=~"paste|leak"\']', "matchers: ['type=paste']"],
    ['matchers: [\'tag=~"vip.*"\']', "matchers: ['tag=vip-1']"],
    ['matchers: []', "matchers: ['type=paste']"],
  ])('that takes %s is never asked with %s', (first, later) => {
    expect(second(first, later)).toEqual(shadowed)
  })

  test.each([
    ["matchers: ['severity=critical']", "matchers: ['severity>=high']"],
    ["matchers: ['severity>=high'], continue: true", "matchers: ['severity=critical']"],
    ["matchers: ['severity>=high'], mode: shadow", "matchers: ['severity=critical']"],
    ["matchers: ['tag!=vip']", "matchers: ['tag=other']"],
    ["matchers: ['identifier=a']", "matchers: ['identifier=b']"],
    ["matchers: ['severity=critical']", `matchers: ['severity=~"critical|urgent"']`],
  ])('that takes %s leaves some of %s', (first, later) => {
    expect(second(first, later)).toEqual([])
  })
})

describe('silences, mutes and rules that never act', () => {
  const silence = (matchers: string, until = '2099-01-01T00:00Z', severity = 'low'): string => `
route: { sinks: [soc] }
silences:
  - { matchers: ${matchers}, until: '${until}', owner: jo, reason: r, max_severity: ${severity} }
`

  test('a silence that has ended', () => {
    expect(warningsOf(silence('[type=paste]', '2020-01-01T00:00Z'))).toEqual([
      {
        at: 'silences[0].until',
        problem: 'silences nothing: it ended 2020-01-01T00:00:00.000Z',
        remedy: 'remove it, or write a later time while it is still needed',
      },
    ])
    expect(warningsOf(silence('[type=paste]'))).toEqual([])
  })

  test('a silence for a feed that there is not, or for more than it may silence', () => {
    expect(warningsOf(silence('[feed=brnad]'))).toMatchObject([
      { at: 'silences[0].matchers[0]', remedy: 'did you mean "brand"?' },
    ])
    expect(warningsOf(silence("['severity>=high']", undefined, 'medium'))).toMatchObject([
      {
        at: 'silences[0].max_severity',
        problem: 'silences nothing: its matchers want more than its max_severity, medium',
      },
    ])
    expect(warningsOf(silence("['severity>=high']", undefined, 'high'))).toEqual([])
  })

  test('a rule of inhibition without a source, or whose targets are all sources', () => {
    const rule = (source: string, target: string): string => `
route: { sinks: [soc] }
inhibit_rules:
  - { source_matchers: ${source}, target_matchers: ${target}, equal: [identifier], window: 1h }
`
    expect(warningsOf(rule('[feed=brnad]', '[type=paste]'))).toMatchObject([
      { at: 'inhibit_rules[0].source_matchers[0]', remedy: 'did you mean "brand"?' },
    ])
    expect(warningsOf(rule("['severity>=low']", "['severity=medium']"))).toMatchObject([
      { at: 'inhibit_rules[0]', problem: expect.stringMatching(/^suppresses nothing/) },
    ])
    expect(warningsOf(rule("['severity>=high']", "['severity=medium']"))).toEqual([])
  })

  test('a mute whose years are past, and one that routes below take everything from', () => {
    const mutes = (years: string, below: string): string => `
time_intervals: { fair: [{ years: ['${years}'], months: ['3'] }] }
route:
  sinks: [soc]
  routes:
    - name: upper
      matchers: ['feed=brand']
      mute_time_intervals: [fair]
      routes: [{ name: lower, matchers: [${below}] }]
`
    expect(warningsOf(mutes('2020', "'type=paste'"))).toMatchObject([
      { at: 'time_intervals.fair', problem: 'mutes nothing any more: its years are past' },
    ])
    expect(warningsOf(mutes('2099', "'account=north'"))).toMatchObject([
      {
        at: 'route.routes[0].mute_time_intervals',
        problem: 'mutes nothing: the route lower below takes all of its events',
      },
    ])
    expect(warningsOf(mutes('2099', "'type=paste'"))).toEqual([])
  })
})

/** How often the feeds of so many organizations, each with its route, are looked at. */
function looksAtFeeds(organizations: number): number {
  const names = Array.from({ length: organizations }, (_, index) => `org-${index}`)
  const file = {
    accounts: names.map((name) => `  ${name}: { base_url: 'https://api.example.com', api_key: k }`),
    feeds: names.map((name) => `  ${name}: { type: tenant_events, account: ${name} }`),
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
  expect(deadRuleWarnings({ ...config, feeds }, 0)).toEqual([])
  return looks
}

test('twice the organizations, each with its route, are at most twice the work', () => {
  expect(looksAtFeeds(200)).toBeLessThanOrEqual(2 * looksAtFeeds(100))
})
