/**
 * Secrets of every kind are planted, everything that can go wrong goes wrong, and whoever is spoken to
 * echoes what it was told. Then all that the daemon and its commands have said and stored is searched.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { join } from 'node:path'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { aFile, tocsin } from '../integration/cli/tocsin.ts'
import { startEchoGateway, type EchoGateway } from '../support/echo-gateway.ts'
import { startRedis, freePort, type TestRedis } from '../support/redis.ts'
import { until } from '../support/rehearsal.ts'

/** Of the operator. None has a shape by which it could be told from any other word. */
const operators = {
  apiKey: 'Zanzibar-key-4711-zebra',
  otherApiKey: 'Quagga-key-0815-okapi',
  grantedToken: 'Numbat-token-1234-dugong',
  redisPassword: 'Wombat/redis+5678',
  slackToken: 'T0/B0/MarmotSlackToken24xyz',
  webhookPath: 'TapirPathToken99',
  webhookQuery: 'GibbonQueryToken77',
  signingSecret: 'whsec_TWFuYXRlZU1hbmF0ZWVNYW5hdGVlTWFuYXRlZQ==',
  rotatedSecret: 'Manatee rotated secret',
  smtpPassword: 'Ocelot p@ss/word:66',
  proxyPassword: 'Caracal-proxy-31',
}

/** Of the victims. */
const leaked = {
  highlight: 'Bandicoot-hl-1',
  combo: 'Bandicoot-combo-2',
  markedCombo: 'Bandicoot-marked-3',
  detail: 'Bandicoot-detail-4',
  deepDetail: 'Bandicoot-deep-5',
  autofill: 'Bandicoot-autofill-6',
  cookie: 'Bandicoot-cookie-7',
  cookieHeader: 'Bandicoot-setcookie-8',
  cookieHighlight: 'Bandicoot-cookiehl-9',
  note: 'Bandicoot-note-10',
  tag: 'Bandicoot-tag-11',
  raw: 'Bandicoot-raw-12',
  rawText: 'Bandicoot-rawtext-13',
  rawCookie: 'Bandicoot-rawcookie-14',
  rawUid: 'Bandicoot-rawuid-15',
  url: 'Bandicoot-url-16',
}

const canaries = Object.entries({ ...operators, ...leaked })
/** What the sandbox makes up itself. */
const sandboxPassword = /Pa55-[0-9a-f]{4}/

/** Which canaries stand in a text, in any form in which it could be read back. */
function canariesIn(output: string, tokens: Iterable<string>): string[] {
  const named: [string, string][] = [...tokens].map((token) => ['token', token])
  const found = [...canaries, ...named].filter(([, secret]) =>
    [
      secret,
      encodeURIComponent(secret),
      JSON.stringify(secret).slice(1, -1),
      Buffer.from(secret).toString('base64'),
      Buffer.from(`analyst:${secret}`).toString('base64'),
      Buffer.from(`\0analyst\0${secret}`).toString('base64'),
    ].some((form) => output.includes(form)),
  )
  const made = sandboxPassword.exec(output)
  return [...new Set(found.map(([name]) => name)), ...(made ? ['sandbox password'] : [])]
}

const groups = [1042, 2042, 3042].map((id) => ({
  id,
  name: `Group ${id}`,
  tenantId: 42,
  identifiers: [{ id: id + 77, name: 'example.com' }],
}))

let redis: TestRedis
let sandbox: Sandbox
let refusingMail: Sandbox
let gateway: EchoGateway
let admin: Redis
let monitor: Redis
const commands: string[] = []

beforeAll(async () => {
  redis = await startRedis({ settings: [`requirepass ${operators.redisPassword}`] })
  const organizations = [
    {
      id: 7,
      limits: { search: 50, basic: 100 },
      keys: [{ key: operators.apiKey, tenants: [42] }],
    },
  ]
  const slackLimit = { perSecond: 1_000, burst: 1_000 }
  const { signingSecret: webhookSecret } = operators
  sandbox = await startSandbox({ organizations, groups, webhookSecret, slackLimit })
  refusingMail = await startSandbox()
  gateway = await startEchoGateway(sandbox.url, operators.grantedToken)
  admin = new Redis(redis.port, '127.0.0.1', { password: operators.redisPassword })
  monitor = await admin.monitor()
  monitor.on('monitor', (_time: string, words: string[]) => commands.push(words.join(' ')))
})

afterAll(async () => {
  admin?.disconnect()
  await Promise.all([sandbox?.close(), refusingMail?.close(), gateway?.close()])
  await redis?.stop()
})

const plantedDetail = {
  identity_name: 'bob@example.com',
  password: leaked.detail,
  content: `found:\nbob@example.com:${leaked.combo}\ncookie: sid=${leaked.cookieHeader}`,
  credentials: [{ url: 'https://example.com', deeper: { user_password: leaked.deepDetail } }],
  autofill: [{ name: 'password', value: leaked.autofill }],
  cookies: [{ domain: 'example.com', name: 'sid', value: leaked.cookie }],
  link: `https://bob:${leaked.url}@example.com/`,
}

function plantEvents(): void {
  sandbox.addEvents(40, { severity: 'high', ignoredAtMs: null })
  sandbox.addEvent({
    severity: 'high',
    type: 'stealer_log',
    ignoredAtMs: null,
    notes: `seen with password: ${leaked.note}`,
    tags: ['reset', `bob@example.com:${leaked.tag}`],
    highlights: {
      'credentials.password': [leaked.highlight],
      content: [`<mark>bob@example.com</mark>:${leaked.markedCombo}`],
      cookies: [leaked.cookieHighlight],
    },
    data: plantedDetail,
  })
  sandbox.addRawItem(1042, `bob@example.com:${leaked.rawText}`)
  sandbox.addRawItem(1042, {
    metadata: { uid: 'paste/raw/1', severity: 5, type: leaked.raw.length },
    password: leaked.raw,
    cookies: [{ name: 'sid', value: leaked.rawCookie }],
  })
  sandbox.addRawItem(1042, { metadata: { uid: { password: leaked.rawUid } } })
}

const refusals = [400, 401, 403, 404, 422, 429, 500, 502, 302] as const

async function configuration(): Promise<string> {
  const { url } = gateway
  const closed = `http://127.0.0.1:${await freePort()}`
  const accounts = refusals.flatMap((status) => [
    `  key${status}: {base_url: '${url}/echo/${status}/key', api_key: '${operators.otherApiKey}', organization_id: ${status}, limits: {search: 50, basic: 50}}`,
    `  tok${status}: {base_url: '${url}/echo/${status}/grant', api_key: '${operators.otherApiKey}', organization_id: ${1000 + status}, limits: {search: 50, basic: 50}}`,
  ])
  const feeds = refusals.flatMap((status) =>
    ['key', 'tok'].map(
      (kind) =>
        `  ${kind}${status}: {type: events, account: ${kind}${status}, identifier_group: 1, every: 5s}`,
    ),
  )
  const hook = (path: string, more = ''): string =>
    `{type: webhook, url: '${path}/${operators.webhookPath}?token=${operators.webhookQuery}', allow_private: true${more}}`
  const signed = `, secret: '${operators.signingSecret}'`
  const rotating = `, secrets: ['${operators.rotatedSecret}', '${operators.signingSecret}']`
  const mail = (port: string): string =>
    `smtp://analyst:${encodeURIComponent(operators.smtpPassword)}@127.0.0.1:${port}`
  const sinks = refusals.flatMap((status) => [
    `  hook${status}: ${hook(`${url}/echo/${status}/hooks`, rotating)}`,
    `  slack${status}: {type: slack, url: '${url}/echo/${status}/plain/${operators.slackToken}', allow_private: true, limit: 50/s}`,
  ])
  const names = sinks.map((line) => line.trim().split(':')[0])
  return `
redis: {url: 'redis://default:${encodeURIComponent(operators.redisPassword)}@127.0.0.1:${redis.port}'}
http: {port: ${await freePort()}}
accounts:
  main: {base_url: '${url}', api_key: '${operators.apiKey}', limits: {search: 50, basic: 100}}
  proxied: {base_url: '${url}', api_key: '${operators.otherApiKey}', organization_id: 9, proxy: 'http://analyst:${operators.proxyPassword}@127.0.0.1:${new URL(url).port}'}
  closed: {base_url: '${closed}', api_key: '${operators.otherApiKey}', organization_id: 8}
${accounts.join('\n')}
feeds:
  main: {type: events, account: main, identifier_group: 1042, every: 5s, backlog: send, detail: [high]}
  proxied: {type: events, account: proxied, identifier_group: 1, every: 5s}
  closed: {type: events, account: closed, identifier_group: 1, every: 5s}
${feeds.join('\n')}
sinks:
  siem: ${hook(`${url}/hooks`, signed)}
  soc: {type: slack, url: '${url}/slack/${operators.slackToken}', allow_private: true, limit: 50/s}
  oncall: {type: email, smtp: '${mail(new URL(sandbox.smtpUrl).port)}', from: tocsin@example.com, to: [a@example.com], tls: off}
  unanswered: ${hook(closed, signed)}
  tls: ${hook(url.replace('http:', 'https:'), signed)}
  refusedmail: {type: email, smtp: '${mail(new URL(refusingMail.smtpUrl).port)}', from: tocsin@example.com, to: [a@example.com], tls: off}
${sinks.join('\n')}
route:
  sinks: [siem, soc, oncall, unanswered, tls, refusedmail, ${names.join(', ')}]
  group_wait: 0s
`
}

interface Daemon {
  process: ChildProcess
  said: Promise<string>
}

function startDaemon(config: string): Daemon {
  const main = join(import.meta.dirname, '../../src/main.ts')
  const child = spawn(process.execPath, [main, 'run', '--config', config], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], LOG_LEVEL: 'trace' },
  })
  const said = Promise.all([text(child.stdout), text(child.stderr)]).then((parts) => parts.join(''))
  return { process: child, said }
}

/** Every key's value, whatever its type. */
async function everythingStored(): Promise<string[]> {
  const found: string[] = []
  for await (const names of admin.scanStream({ count: 1_000 })) {
    for (const name of names as string[]) found.push(`${name} ${await storedAt(name)}`)
  }
  return found
}

async function storedAt(name: string): Promise<string> {
  const type = await admin.type(name)
  const reads: Record<string, () => Promise<unknown>> = {
    string: () => admin.get(name),
    hash: () => admin.hgetall(name),
    list: () => admin.lrange(name, 0, -1),
    set: () => admin.smembers(name),
    zset: () => admin.zrange(name, 0, '-1', 'WITHSCORES'),
    stream: () => admin.xrange(name, '-', '+'),
    none: () => Promise.resolve(''),
  }
  return JSON.stringify(await reads[type]!())
}

async function commandOutputs(config: string): Promise<[string, string][]> {
  const outputs: [string, string][] = []
  const run = async (...words: string[]): Promise<string> => {
    const { out, err } = await tocsin(...words, '--config', config)
    outputs.push([words.join(' '), `${out}${err}`])
    return out
  }
  const uids = [...sandbox.events().map(({ uid }) => uid), 'paste/raw/1']
  for (const uid of uids) await run('explain', uid, '--output', 'json')
  for (const form of ['text', 'json']) {
    await run('check', '--output', form)
    await run('explain', 'paste/raw/1', '--output', form)
    await run('feeds', 'list', '--output', form)
    await run('token', 'test', '--account', 'main', '--output', form)
    await run('token', 'test', '--account', 'tok403', '--output', form)
    await run('token', 'test', '--account', 'key500', '--output', form)
    await run('token', 'test', '--account', 'proxied', '--output', form)
    await run('dead-letters', 'list', '--output', form)
    for (const sink of ['siem', 'soc', 'oncall', 'refusedmail', 'hook500', 'slack404', 'tls']) {
      await run('sinks', 'test', sink, '--output', form)
    }
  }
  const listed = JSON.parse(await run('dead-letters', 'list', '--output', 'json')) as {
    letters: { id: string }[]
  }
  expect(listed.letters.length).toBeGreaterThan(3)
  for (const { id } of listed.letters.slice(0, 10)) {
    await run('dead-letters', 'show', id)
    await run('dead-letters', 'show', id, '--output', 'json')
  }
  return outputs
}

test('no secret is in any log, page, answer, command, message or key of Redis', async () => {
  const echo = `who is analyst with ${operators.smtpPassword} or ${Buffer.from(`\0analyst\0${operators.smtpPassword}`).toString('base64')}`
  refusingMail.faults.add({ on: 'smtp:auth', effect: 'status', status: 535, message: echo })
  plantEvents()
  const yaml = await configuration()
  const config = aFile('tocsin.yaml', yaml)
  const port = /http: \{port: (\d+)\}/.exec(yaml)![1]
  const daemon = startDaemon(config)
  const page = async (path: string): Promise<string> =>
    (await fetch(`http://127.0.0.1:${port}${path}`)).text()
  const outputs: [string, string][] = []
  try {
    const expected = sandbox.events().length - 3
    await until(
      'all delivered where it can be',
      () => {
        const { slack, webhook, email } = sandbox.received
        return Math.min(slack.length, webhook.length, email.length) >= expected
      },
      60_000,
    )
    await until('every refusal was met', () =>
      refusals.every((status) => gateway.echoed(status) >= 3),
    )
    for (const path of ['/metrics', '/healthz', '/readyz']) outputs.push([path, await page(path)])
    outputs.push(...(await commandOutputs(config)))
    monitor.disconnect()
    await admin.call('CONFIG', 'SET', 'requirepass', `${operators.redisPassword}-rotated`)
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    outputs.push([
      'feeds list, refused by Redis',
      JSON.stringify(await tocsin('feeds', 'list', '--config', config)),
    ])
    outputs.push(
      ['/readyz without Redis', await page('/readyz')],
      ['/metrics without Redis', await page('/metrics')],
    )
  } finally {
    if (daemon.process.exitCode === null) {
      daemon.process.kill('SIGTERM')
      await once(daemon.process, 'exit')
    }
  }
  const log = await daemon.said
  expect(log).toContain('poll failed')
  expect(log).toContain('delivery failed')
  outputs.push(['log', log], ['commands to Redis', commands.join('\n')])
  outputs.push(...(await everythingStored()).map((kept): [string, string] => ['Redis', kept]))
  for (const { sink, headers, body, mail } of Object.values(sandbox.received).flat()) {
    outputs.push([sink, `${JSON.stringify(headers)} ${body} ${JSON.stringify(mail)}`])
  }
  expect(gateway.tokens.size).toBeGreaterThan(1)
  const leaks = outputs.flatMap(([where, output]) =>
    canariesIn(output, gateway.tokens).map((name) => `${name} in ${where}`),
  )
  expect([...new Set(leaks)]).toEqual([])
}, 180_000)

const good = `
redis: {url: 'redis://127.0.0.1:1'}
accounts:
  main: {base_url: 'https://api.example.com', api_key: 'key'}
feeds:
  brand: {type: events, identifier_group: 1}
sinks:
  soc: {type: slack, url: 'https://hooks.example.com/x'}
  siem: {type: webhook, url: 'https://h.example.com/x', secret: abc}
  oncall: {type: email, smtp: 'smtp://h.example.com', from: a@example.com, to: [b@example.com]}
route: {sinks: [soc]}
`

/** What stands there, and what an operator in a hurry may have written; `SECRET` is the secret. */
const slips: [string, string][] = [
  ["api_key: 'key'", 'api_key:SECRET'],
  ["api_key: 'key'", 'api_key=SECRET'],
  ["api_key: 'key'", 'api_key: *SECRET'],
  ["api_key: 'key'", 'api_key: !SECRET'],
  ["api_key: 'key'", 'api_key: @SECRET'],
  ["api_key: 'key'", 'api_key: "SECRET'],
  ["api_key: 'key'", 'api_key: [SECRET]'],
  ["api_key: 'key'", 'api_key: "${SECRET"'],
  ["api_key: 'key'", 'api_key_file: SECRET'],
  ["api_key: 'key'", 'api_key_file: a/b/SECRET'],
  ["api_key: 'key'", `api_key: 'a SECRET'`],
  ["api_key: 'key'", `api_key: key, proxy: 'http://a:%SECRET@h'`],
  ['redis://127.0.0.1:1', 'redis://:%SECRET@127.0.0.1'],
  ['redis://127.0.0.1:1', 'redis://:SECRET@127.0.0.1:99999'],
  [`soc: {`, `'https://hooks.example.com/SECRET': {`],
  [`sinks: [soc]`, `sinks: ['https://hooks.example.com/SECRET']`],
  [`url: 'https://hooks.example.com/x'`, `url_file: 'https://hooks.example.com/SECRET'`],
  ['https://hooks.example.com/x', 'hooks.example.com/SECRET'],
  ['https://h.example.com/x', 'http://h.example.com/SECRET'],
  ['https://api.example.com', 'https://a:SECRET@api.example.com'],
  ['secret: abc', 'secret: whsec_SECRET!'],
  ['secret: abc', 'secrets: [whsec_SECRET!]'],
  ['secret: abc', 'secret: abc, secret: SECRET'],
  ['smtp://h.example.com', 'smtp://a:SECRET%@h.example.com'],
  ['smtp://h.example.com', 'http://a:SECRET@h.example.com'],
  ['a@example.com', 'smtp://a:SECRET@h.example.com'],
]

test.each(slips)('no mistake tells the secret: %s written as %s', async (right, wrong) => {
  const config = aFile('tocsin.yaml', good.replace(right, wrong.replace('SECRET', 'Zanzibar')))
  for (const form of ['text', 'json']) {
    const { code, out, err } = await tocsin('check', '--output', form, '--config', config)
    expect(code).toBe(2)
    expect(`${out}${err}`).not.toContain('Zanzibar')
  }
})
