import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import {
  ConfigError,
  type Environment,
  formatMistake,
  type Mistake,
} from '../../../src/config/config.ts'
import { loadConfig, type LoadedConfig, parseConfig } from '../../../src/config/load.ts'

const folder = mkdtempSync(join(tmpdir(), 'tocsin-config-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const file = join(folder, 'tocsin.yaml')

interface Parts {
  top?: string
  account?: string
  feed?: string
  sinks?: string
  route?: string
}

/** A valid file, with further lines where a test wants them. */
function fileWith({ top = '', account, feed = '', sinks = '', route = '' }: Parts = {}): string {
  return `
${top}
accounts:
  main:
    base_url: https://api.example.com/
    ${account ?? 'api_key: the-api-key'}
feeds:
  brand:
    type: events
    identifier_group: 7
    ${feed}
sinks:
  soc:
    type: slack
    url: https://hooks.example.com/the-slack-token
${sinks}
route:
  sinks: [soc]
${route}
`
}

function load(text: string, env: Environment = {}): LoadedConfig {
  return parseConfig(text, { file, env })
}

function mistakesOf(text: string, env: Environment = {}): string[] {
  try {
    load(text, env)
  } catch (error) {
    if (error instanceof ConfigError) {
      return error.mistakes.map(({ path, problem }) => `${path}: ${problem}`)
    }
    throw error
  }
  return []
}

const webhook = `
  siem:
    type: webhook
    url: https://siem.example.com/hook
`

describe('what is left out has its default', () => {
  const { config } = load(fileWith({ sinks: webhook }))

  test('of Redis, HTTP and the ledger', () => {
    expect(config.redis.url?.reveal()).toBe('redis://127.0.0.1:6379')
    expect(config.redis).toMatchObject({ prefix: 'tocsin', allowUnsafe: false })
    expect(config.http).toEqual({
      host: '127.0.0.1',
      port: 9464,
      hosts: [],
      users: [],
    })
    const day = 86_400_000
    expect(config.ledger).toEqual({
      dedupeHorizonMs: 90 * day,
      payloadRetentionMs: 14 * day,
      historyRetentionMs: 90 * day,
      maxBytes: 2 ** 30,
    })
  })

  test('of an account', () => {
    expect(config.accounts[0]).toMatchObject({
      name: 'main',
      baseUrl: 'https://api.example.com',
      limits: { search: 1, basic: 4 },
      feedShare: 0.7,
      tenantId: undefined,
      proxy: undefined,
    })
  })

  test('of sinks', () => {
    expect(config.sinks[0]).toMatchObject({ type: 'slack', limitPerSecond: 1, allowPrivate: false })
    expect(config.sinks.map(({ reveal }) => reveal)).toEqual([false, false])
    expect(config.sinks[1]).toMatchObject({
      secret: undefined,
      batch: undefined,
      allowPrivate: false,
    })
  })
})

test('units of durations, rates and sizes come out in one unit', () => {
  const { config } = load(
    fileWith({
      feed: 'every: 12h\n    start: 5000ms\n    lag_objective: 2d',
      sinks: `    limit: 30/m\n${webhook}    batch: { wait: 250ms }\n    limit: 2/s`,
    }),
  )
  expect(config.feeds[0]).toMatchObject({
    longestMs: 43_200_000,
    startMs: 5000,
    lagObjectiveMs: 172_800_000,
  })
  expect(config.sinks[0]?.limitPerSecond).toBe(0.5)
  expect(config.sinks[1]).toMatchObject({
    limitPerSecond: 2,
    batch: { max: 50, waitMs: 250, maxBytes: 262_144 },
  })
})

test('filters reach the feed as the service takes them: a word or a list, and nothing unsaid', () => {
  const filters = 'filters: { severity: high, type: [brand_new_type], is_ignored: false }'
  expect(load(fileWith({ feed: filters })).config.feeds[0]).toHaveProperty('filters', {
    severity: 'high',
    type: ['brand_new_type'],
    is_ignored: false,
  })
})

describe('the routing tree', () => {
  const { config } = load(
    fileWith({
      feed: 'labels: { team: brand }',
      route: `
  routes:
    - matchers: ['severity>=high', 'team="brand"']
      continue: true
      routes:
        - matchers: ['type=paste']
    - name: rest
      routes: [{ sinks: [soc] }]
`,
    }),
  )
  const [first, second] = config.route.routes

  test('unnamed routes are called by their place', () => {
    expect(config.route.name).toBe('root')
    expect(first?.name).toBe('root.1')
    expect(first?.routes[0]?.name).toBe('root.1.1')
    expect(second?.name).toBe('rest')
    expect(second?.routes[0]?.name).toBe('root.2.1')
  })

  test('matchers are parsed, and sinks that are left out stay open for the parent to fill', () => {
    expect(first?.matchers.map(({ text }) => text)).toEqual(['severity>=high', 'team="brand"'])
    expect(first?.matchers[0]?.matches(['critical'])).toBe(true)
    expect(first).toMatchObject({ sinks: undefined, continue: true })
    expect(second).toMatchObject({ matchers: [], continue: false })
  })
})

test('what a route says about grouping, muting and its mode reaches it, and what it does not is open', () => {
  const route = `
  group_by: []
  group_wait: 0s
  routes:
    - { mode: shadow, mute_time_intervals: [night], on_mute: drop }
    - { group_by: [type, identifier], group_wait: 1m, group_interval: 1h }`
  const { config } = load(fileWith({ top: night, route }))
  const open = { groupBy: undefined, groupWaitMs: undefined, groupIntervalMs: undefined }
  expect(config.route).toMatchObject({ groupBy: [], groupWaitMs: 0, groupIntervalMs: 300_000 })
  expect(config.route.routes).toMatchObject([
    { ...open, mode: 'shadow', muteTimeIntervals: ['night'], onMute: 'drop' },
    { groupBy: ['type', 'identifier'], groupWaitMs: 60_000, groupIntervalMs: 3_600_000 },
  ])
})

describe('variables', () => {
  test('numbers and flags may come from the environment', () => {
    const top = 'http:\n  port: ${PORT:-9464}\nredis:\n  allow_unsafe: ${UNSAFE}'
    const { config } = load(fileWith({ top }), { PORT: '8080', UNSAFE: 'true' })
    expect(config.http.port).toBe(8080)
    expect(config.redis.allowUnsafe).toBe(true)
  })

  test('an optional value that comes out empty counts as absent', () => {
    const account = 'api_key: k\n    proxy: ${PROXY:-}\n    tenant_id: ${TENANT:-}'
    expect(load(fileWith({ account })).config.accounts[0]).toMatchObject({
      proxy: undefined,
      tenantId: undefined,
    })
  })

  test('what comes out is never read as YAML, nor replaced again', () => {
    const value = '"]\n  evil: ${OTHER} # {'
    const text = fileWith({ feed: 'labels: { team: "${TEAM}" }' })
    expect(load(text, { TEAM: value }).config.feeds[0]?.labels).toEqual({ team: value })
  })

  test('a doubled dollar is a literal one, and keys are left alone', () => {
    const text = fileWith({ feed: 'labels: { team: "$${TEAM} $5 $$" }' })
    expect(load(text).config.feeds[0]?.labels).toEqual({ team: '${TEAM} $5 $' })
    expect(mistakesOf(fileWith({ feed: '${KEY}: 1' }), { KEY: 'every' })).toEqual([
      'feeds.brand.${KEY}: unknown key',
    ])
  })
})

describe('a mistake quotes no part of what a variable holds, whatever matcher it was put into', () => {
  test.each([
    ['severity>${SECRET}', 'smtp://u:hush-hush@a.example', '"${SECRET}" is not a severity'],
    ['severity>x${SECRET}', 'hush-hush', '"…" is not a severity'],
    [
      'type=~[${SECRET}]',
      'z-a:hush-hush',
      'not a valid pattern: invalid character class range: "…"',
    ],
    ['${SECRET}', 'hush_hush>5', '"…" compares severities only'],
    ['type=${SECRET}', 'hush-hush,more', 'a bare value has no comma'],
    ['type=${SECRET}', 'pastte', 'never matches: there is no type "${SECRET}"'],
  ])('%s of %s', (matcher, secret, problem) => {
    const route = `  routes: [{name: a, matchers: ['${matcher}']}]`
    let told: readonly Mistake[] = []
    try {
      told = load(fileWith({ route }), { SECRET: secret }).warnings
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      told = error.mistakes
    }
    const about = told.filter(({ path }) => path.startsWith('route.routes[0].matchers'))
    expect(about.map((one) => one.problem)).toEqual([`${problem} (after replacing \${SECRET})`])
    expect(about.map(formatMistake).join(' ')).not.toMatch(/hush|z-a|pastte/u)
  })

  test('nor elsewhere: a value of six characters and more stands under its name', () => {
    const text = fileWith({
      feed: 'labels: { team: "${TEAM}" }',
      route: `  routes: [{name: a, matchers: ['team=blue-tem']}]`,
    })
    const [told] = load(text, { TEAM: 'blue-team' }).warnings.filter(({ path }) =>
      path.startsWith('route'),
    )
    expect(told && formatMistake(told)).toContain('did you mean "${TEAM}"?')
  })
})

describe('secrets', () => {
  test('a file is found beside the configuration, trimmed, and read at each use', () => {
    const secretFile = join(folder, 'api.key')
    writeFileSync(secretFile, '  first-key\n')
    const { config } = load(fileWith({ account: 'api_key_file: api.key' }))
    expect(config.accounts[0]?.apiKey.reveal()).toBe('first-key')
    writeFileSync(secretFile, 'second-key\n')
    expect(config.accounts[0]?.apiKey.reveal()).toBe('second-key')
  })

  test('a label that looks like the key of a file is no path', () => {
    const text = fileWith({ feed: 'labels: { owner_file: brand }' })
    expect(load(text).config.feeds[0]?.labels).toEqual({ owner_file: 'brand' })
  })

  test('nothing prints one', () => {
    const { config } = load(
      fileWith({
        account: 'api_key: the-api-key\n    proxy: http://u:the-proxy-password@proxy.example',
        sinks: `${webhook}    secret: the-new-secret-of-24-bytes`,
        top: 'redis:\n  url: redis://:the-redis-password@127.0.0.1',
      }),
    )
    const printed = `${JSON.stringify(config)} ${inspect(config, { depth: 20 })}`
    expect(printed).not.toMatch(/the-(api|proxy|new|redis|slack)/)
    expect(config.sinks[1]).toMatchObject({ type: 'webhook' })
    const secret = config.sinks[1]?.type === 'webhook' ? config.sinks[1].secret : undefined
    expect(secret?.reveal()).toBe('the-new-secret-of-24-bytes')
  })
})

describe('addresses', () => {
  test('clear http is for loopback, and for sinks that allow private addresses', () => {
    const local = fileWith().replace('https://api.example.com/', 'http://127.0.0.1:8080')
    expect(load(local).config.accounts[0]?.baseUrl).toBe('http://127.0.0.1:8080')
    const sink = fileWith({ sinks: '    allow_private: true' })
    expect(mistakesOf(sink.replace('https://hooks', 'http://hooks'))).toEqual([])
    expect(mistakesOf(fileWith().replace('https://hooks', 'http://hooks'))).toEqual([
      'sinks.soc.url: not encrypted',
    ])
  })
})

test('a mistake inside a section hides none of its rules: all are told at once', () => {
  const account = 'api_key: k\n    api_key_file: f\n    limits: { basic: 0 }\n    tenent_id: 1'
  expect(mistakesOf(fileWith({ account, feed: 'account: mian' }))).toEqual([
    'accounts.main.api_key_file: given beside api_key',
    'accounts.main.limits.basic: not above 0',
    'accounts.main.tenent_id: unknown key',
    'feeds.brand.account: no such account',
  ])
})

test('a mistake is told once, though it has consequences', () => {
  const feed = 'account: ${NOBODY}'
  expect(mistakesOf(fileWith({ feed }))).toEqual([
    'feeds.brand.account: the variable NOBODY is not set',
  ])
})

test('a file that is not there is a mistake of the configuration', () => {
  expect(() => loadConfig({ path: join(folder, 'nowhere.yaml'), env: {} })).toThrow(ConfigError)
  expect(() => loadConfig({ path: folder, env: {} })).toThrow(/cannot be read \(EISDIR\)/)
})

test('a file of four mebibytes is not parsed', () => {
  expect(mistakesOf(`# ${'x'.repeat(4 * 1024 * 1024)}`)).toEqual([': longer than 4 MiB'])
})

test('the number of values is not bounded', () => {
  const tags = Array.from({ length: 30_000 }, (_, index) => `t${index}`).join(', ')
  expect(mistakesOf(fileWith({ feed: `filters: { tags: [${tags}] }` }))).toEqual([])
})

test.each(['&team red', '*team', '[&team red]'])(
  'a value named by YAML is refused: %s',
  (label) => {
    const place = label.startsWith('[') ? 'feeds.brand.labels.one[0]' : 'feeds.brand.labels.one'
    expect(mistakesOf(fileWith({ feed: `labels: { one: ${label} }` }))).toContain(
      `${place}: anchors and aliases of YAML are not supported`,
    )
  },
)

test('the configuration is frozen to the bottom', () => {
  const { config } = load(fileWith({ feed: 'labels: { team: brand }' }))
  const open: string[] = []
  const visit = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return
    if (!Object.isFrozen(value)) open.push(path)
    for (const [key, inner] of Object.entries(value)) visit(inner, `${path}.${key}`)
  }
  visit(config, 'config')
  expect(open).toEqual([])
})

const signing = '    secret: a-secret-of-24-bytes-abc'
const duty = '  duty:\n    type: pagerduty\n    routing_key: c04d9e77b1Q4xZv8hJt2T7F3E9A51C2p\n'
const night = `time_intervals:\n  night: [{ times: [{ start_time: '00:00', end_time: '07:00' }] }]`
const silence = `silences: [{ matchers: ['type=paste'], until: 2099-11-21T12:00Z, owner: jo, reason: known, max_severity: low }]`
const rule = `inhibit_rules: [{ source_matchers: ['type=leak'], target_matchers: ['type=paste'], equal: [identifier], window: 1h }]`

const hashOf = (parts: Parts): string => load(fileWith(parts)).hash

test.each<[string, Parts, Parts]>([
  ['a limit', { account: 'api_key: k\n    limits: { search: 0.001 }' }, {}],
  ['a port or a comment', { top: '# a comment\nhttp: { port: 1 }' }, {}],
  ['a key', { account: 'api_key: another' }, {}],
  ['a signing secret', { sinks: `${webhook}${signing}` }, { sinks: webhook }],
  ['a routing key', { sinks: duty.replace('c04d', 'd15e') }, { sinks: duty }],
  ['the order of keys', { feed: 'start: 1h\n    every: 9s' }, { feed: 'every: 9s\n    start: 1h' }],
])('the hash leaves out %s', (_what, one, other) => {
  expect(hashOf(one)).toBe(hashOf(other))
})

test('the hash tells apart all that decides what happens to events', () => {
  const parts: Parts[] = [
    {},
    { feed: 'every: 61s' },
    { feed: 'labels: { team: brand }' },
    { sinks: webhook },
    { sinks: `${webhook}    limit: 1/s` },
    { sinks: duty },
    { sinks: `${duty}    url: https://events.eu.pagerduty.com` },
    { route: "  routes: [{ matchers: ['type=paste'] }]" },
    { route: '  group_wait: 11s' },
    { account: 'api_key: k\n    tenant_id: 42' },
    { account: 'api_key: k', top: night },
    { top: night.replace('07:00', '06:00') },
    { top: silence },
    { top: silence.replace('paste', 'chat') },
    { top: rule },
    { top: rule.replace('1h', '2h') },
  ]
  const elsewhere = load(fileWith().replace('api.example.com', 'api.example.org')).hash
  expect(new Set([...parts.map(hashOf), elsewhere]).size).toBe(parts.length + 1)
})

function mail(host: string): Parts {
  const keys = `smtp: "smtp://${host}", from: a@b.example, to: [a@b.example], tls: off`
  return { sinks: `  oncall: { type: email, ${keys} }`, route: '  routes: [{ sinks: [oncall] }]' }
}

test.each<[what: string, parts: Parts, warnings: string[]]>([
  ['a sound configuration', { top: `${night}\n${silence}\n${rule}` }, []],
  [
    'a signed webhook',
    { sinks: `${webhook}${signing}`, route: '  routes: [{ sinks: [siem] }]' },
    [],
  ],
  [
    'a webhook without a secret that no route names',
    { sinks: webhook },
    [
      'sinks.siem: its requests are not signed',
      'sinks.siem: no live route names it, so nothing goes there',
    ],
  ],
  [
    'a sink below a shadow',
    {
      sinks: `${webhook}${signing}`,
      route: '  routes: [{ mode: shadow, routes: [{ sinks: [siem] }] }]',
    },
    ['sinks.siem: no live route names it, so nothing goes there'],
  ],
  ['mail in clear', mail('mail.example.com'), ['sinks.oncall.tls: mail and passwords go in clear']],
  ['mail in clear on this machine', mail('127.0.0.1:2525'), []],
])('%s is warned of: %s', (_what, parts, warnings) => {
  const found = load(fileWith(parts)).warnings
  expect(found.map(({ path, problem }) => `${path}: ${problem}`)).toEqual(warnings)
})

test.each([
  ['gateway.example.com', '', 1],
  ['gateway.example.com', 'link_hosts: [gateway.example.com]', 0],
  ['gateway.example.com', 'link_hosts: [app.example.com]', 0],
  ['api.example.com', '', 0],
])('links of an API at %s with %j that would be text: %i', (host, hosts, count) => {
  const text = fileWith({ account: `api_key: k\n    ${hosts}` })
  expect(load(text.replace('api.example.com', host)).warnings).toHaveLength(count)
})
