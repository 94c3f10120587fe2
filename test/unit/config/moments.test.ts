/** What the file says about moments: grouping, mutes, shadows, silences and inhibition. */
import { describe, expect, test } from 'vitest'
import { parseConfig, type LoadedConfig } from '../../../src/config/load.ts'

const base = `
accounts: { main: { base_url: 'https://api.example.com', api_key: key } }
feeds: { brand: { type: events, identifier_group: 7, labels: { team: brand } } }
sinks:
  soc: { type: slack, url: 'https://hooks.example.com/x' }
`
const night = `
time_intervals:
  night: [{ times: [{ start_time: '00:00', end_time: '07:00' }] }]
`
const silence = `
  - matchers: ['type=paste']
    until: 2099-11-21T12:00Z
    owner: jo
    reason: known
    max_severity: low
`
const rule = `
  - source_matchers: ['severity>=high']
    target_matchers: ['severity<=low']
    equal: [identifier]
    window: 1h
`

function load(rest: string): LoadedConfig {
  return parseConfig(`${base}${rest}`, { file: 'tocsin.yaml', env: {} })
}

function warningsOf(rest: string): string[] {
  return load(rest).warnings.map(({ path, problem }) => `${path}: ${problem}`)
}

test('a root that says nothing groups by feed and type, after 10 s and then every 5 minutes', () => {
  const { config } = load('route: { sinks: [soc], routes: [{}] }')
  expect(config.route).toMatchObject({
    groupBy: ['feed', 'type'],
    groupWaitMs: 10_000,
    groupIntervalMs: 300_000,
  })
  expect(config.route.routes[0]).toMatchObject({
    groupBy: undefined,
    groupWaitMs: undefined,
    groupIntervalMs: undefined,
    mode: 'live',
    muteTimeIntervals: [],
    onMute: 'hold',
  })
  expect(config).toMatchObject({ timeIntervals: {}, inhibitRules: [], silences: [] })
})

test('what a route says about grouping, muting and its mode reaches it', () => {
  const route = `
route:
  sinks: [soc]
  group_by: []
  group_wait: 0s
  group_interval: 10s
  routes:
    - { mode: shadow, mute_time_intervals: [night], on_mute: drop }
    - { group_by: [team, identifier], group_wait: 1m, group_interval: 1h }
`
  const { config, warnings } = load(`${night}${route}`)
  expect(warnings).toEqual([])
  expect(config.route).toMatchObject({ groupBy: [], groupWaitMs: 0, groupIntervalMs: 10_000 })
  expect(config.route.routes).toMatchObject([
    { mode: 'shadow', muteTimeIntervals: ['night'], onMute: 'drop' },
    { groupBy: ['team', 'identifier'], groupWaitMs: 60_000, groupIntervalMs: 3_600_000 },
  ])
})

describe('what is allowed and probably not meant', () => {
  test('a sink that only shadow routes name, directly or from above', () => {
    const sinks =
      "  siem: { type: webhook, url: 'https://siem.example.com', secret: a-secret-of-24-bytes-abc }\n"
    const route = (mode: string): string =>
      `${sinks}route: { sinks: [soc], routes: [{ mode: ${mode}, routes: [{ sinks: [siem] }] }] }`
    expect(warningsOf(route('shadow'))).toEqual([
      'sinks.siem: no live route names it, so nothing goes there',
    ])
  })

  test('a severity that no event usually has, in silences and rules too', () => {
    const rest = `
route: { sinks: [soc] }
silences: ${silence.replace('type=paste', 'severity=hihg')}
inhibit_rules: ${rule.replace('severity<=low', 'severity=lwo')}
`
    expect(warningsOf(rest)).toEqual([
      'silences[0].matchers[0]: "hihg" is no usual severity',
      'inhibit_rules[0].target_matchers[0]: "lwo" is no usual severity',
    ])
  })
})

describe('the hash', () => {
  const route = 'route: { sinks: [soc] }\n'
  const hashes = [
    '',
    night,
    night.replace('07:00', '06:00'),
    `silences: ${silence}`,
    `silences: ${silence.replace('type=paste', 'type=chat')}`,
    `inhibit_rules: ${rule}`,
    `inhibit_rules: ${rule.replace('1h', '2h')}`,
  ].map((rest) => load(`${route}${rest}`).hash)

  test('tells apart whatever decides when something is sent', () => {
    const grouped = load('route: { sinks: [soc], group_wait: 11s }').hash
    expect(new Set([...hashes, grouped]).size).toBe(hashes.length + 1)
  })

  test('is the same for the same', () => {
    expect(load(`${route}silences: ${silence}`).hash).toBe(hashes[3])
  })
})

test('a rule of inhibition without equal is warned of: it keeps back whatever it matches', () => {
  const [source, target] = [`source_matchers: ['type="leak"']`, `target_matchers: ['type="paste"']`]
  const said = (equal: string): string[] =>
    warningsOf(
      `route: { sinks: [soc] }\ninhibit_rules: [{ ${source}, ${target}, ${equal}window: 1h }]`,
    )
  expect(said('equal: [identifier], ')).toEqual([])
  expect(said('')).toEqual([
    'inhibit_rules[0]: one source suppresses every target, whatever it is about',
  ])
})
