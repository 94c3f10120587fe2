/**
 * The whole daemon with its page, on a real Redis and against the sandbox: two accounts, sinks of each
 * kind, rules that suppress events, and users who may more and less. Clients come by HTTP.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../src/config/config.ts'
import type { App } from '../../src/daemon/daemon.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { createMetrics } from '../../src/lib/metrics/metrics.ts'
import { hashPassword } from '../../src/lib/password-hash.ts'
import { createHttpServer } from '../../src/page/http/server.ts'
import { createPage } from '../../src/page/page.ts'
import type { Redis } from '../../src/redis/client.ts'
import { createKeys, type Keys } from '../../src/redis/keys.ts'
import type { SandboxEvent } from '../../src/sandbox/history/history.ts'
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts'
import { type AccountLedger, openLedger } from '../../src/store/account-ledger.ts'
import { readAccounting } from '../../src/store/accounts.ts'
import { type Answer, ask, cookieOf, password } from './door.ts'
import { connectTo, silent } from './ledger.ts'
import { startRedis, type TestRedis } from './redis.ts'
import { aReplica, hurriedConfig } from './rehearsal.ts'
import { until } from './until.ts'

/** The identifier group of each account. */
export const groupOf = { main: 1042, other: 2042 } as const

export type RigAccount = keyof typeof groupOf

export interface PageRig {
  port: number
  apps: App[]
  redis: Redis
  keys: Keys
  sandbox: Sandbox
  config: Config
  yaml: string
  server: TestRedis
  ledger(account: RigAccount): AccountLedger
  /** Adds events of an account to the service. */
  add(account: RigAccount, count: number, given?: Partial<SandboxEvent>): SandboxEvent[]
  /** Until all that the service has is taken in, and nothing but digests waits. */
  settled(): Promise<void>
  stopApps(): Promise<void>
  stop(): Promise<void>
}

/** Sections of the configuration that a test has more of, as YAML in one line each. */
interface Extra {
  routes?: readonly string[]
  silences?: readonly string[]
  /** Further sections. */
  more?: readonly string[]
  /** Labels of the feed of `other`. */
  labels?: string
}

/** Of the users `robot` (act, all accounts) and `spy` (act, main alone). */
export const tokens = { robot: 'robot'.padEnd(40, '0'), spy: 'spy'.padEnd(40, '0') } as const

function usersYaml(hash: string, folder: string): string {
  for (const [name, token] of Object.entries(tokens)) {
    writeFileSync(join(folder, name), token, { mode: 0o600 })
  }
  return `
    - {name: mara, role: act, password_hash: '${hash}'}
    - {name: lee, role: read, password_hash: '${hash}'}
    - {name: ana, role: act, accounts: [main], password_hash: '${hash}'}
    - {name: robot, role: act, token_file: '${join(folder, 'robot')}'}
    - {name: spy, role: act, accounts: [main], token_file: '${join(folder, 'spy')}'}`
}

interface Place {
  redis: TestRedis
  sandbox: Sandbox
  users: string
  extra: Extra
}

export const ends = new Date(Date.now() + 86_400_000).toISOString()

function yamlOf({ redis, sandbox, users, extra }: Place): string {
  const { routes = [], silences = [], labels = '{}', more = [] } = extra
  const account = (name: string): string =>
    `{base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_${name}, limits: {search: 50, basic: 50}}`
  const feed = (name: RigAccount, of = '{}'): string =>
    `{type: events, account: ${name}, identifier_group: ${groupOf[name]}, every: 5s, initial_poll: send, detail: [critical], labels: ${of}}`
  const hook = (name: string): string =>
    `type: webhook, url: '${sandbox.url}/hooks/${name}', secret: '${sandbox.webhookSecret}', allow_private: true`
  const mail = `type: email, smtp: '${sandbox.smtpUrl}', from: tocsin@example.com, tls: off`
  const list = (some: readonly string[]): string => some.map((one) => `\n    - ${one}`).join('')
  return `
redis: {url: '${redis.url}', prefix: rig}
http:
  port: 0
  users: ${users}
accounts:
  main: ${account('main')}
  other: ${account('other')}
feeds:
  brand: ${feed('main')}
  rival: ${feed('other', labels)}
sinks:
  soc: {type: slack, url: '${sandbox.slackUrl}', allow_private: true, limit: 50/s}
  oncall: {${mail}, to: [ann@example.com, bob@example.com]}
  weekly: {${mail}, to: [ann@example.com], digest: {schedule: '0 8 1 1 *', immediate: critical, max_items: 10}}
  siem: {${hook('siem')}, batch: {max: 50, wait: 1s}}
  stray: {${hook('stray')}}
  relay: {${hook('relay')}, fallback: siem}
route:
  sinks: [siem]
  group_wait: 0s
  routes:
    - {name: urgent, matchers: ['severity>=high'], sinks: [soc, oncall, siem], group_by: [type], group_wait: 1s, group_interval: 10s}
    - {name: night, matchers: ['type="chat_message"'], sinks: [soc], mute_time_intervals: [always], on_mute: drop}
    - {name: trial, matchers: ['type="forum_post"'], sinks: [soc], mode: shadow}
    - {name: lost, matchers: ['type="paste"'], sinks: [stray]}
    - {name: detour, matchers: ['type="service"'], sinks: [relay]}
    - {name: calm, matchers: ['severity="low"'], sinks: [weekly]}${list(routes)}
time_intervals: {always: [{years: ['2020:2099']}]}
silences:
    - {matchers: ['type="lookalike"'], until: '${ends}', owner: jo, reason: known campaign, max_severity: high, machines: true}${list(silences)}
${more.join('\n')}
`
}

export async function startPageRig({ extra = {} }: { extra?: Extra } = {}): Promise<PageRig> {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-page-'))
  const [redis, sandbox, hash] = await Promise.all([
    startRedis(),
    startSandbox({
      organizations: [organizationOf('main', 7, 42), organizationOf('other', 8, 43)],
      groups: [aGroup('main', 42), aGroup('other', 43)],
      slackLimit: { perSecond: 1_000, burst: 1_000 },
    }),
    hashPassword(password),
  ])
  sandbox.faults.add({ on: '/hooks/stray', effect: 'status', status: 400 })
  sandbox.faults.add({ on: '/hooks/relay', effect: 'status', status: 410 })
  const yaml = yamlOf({ redis, sandbox, users: usersYaml(hash, folder), extra })
  const apps = [aReplica(yaml)]
  const port = Number(new URL((await apps[0]!.start()).url).port)
  const connection = connectTo(redis.url)
  const ledger = (account: RigAccount): AccountLedger =>
    apps[0]!.ledgers.find((one) => one.account === account)!
  return {
    port,
    apps,
    redis: connection,
    keys: createKeys('rig'),
    sandbox,
    config: hurriedConfig(yaml).config,
    yaml,
    server: redis,
    ledger,
    add: (account, count, given = {}) =>
      sandbox.addEvents(count, { groupIds: [groupOf[account]], ignoredAtMs: null, ...given }),
    settled: () => until('all is taken in and sent', () => isSettled(sandbox, ledger)),
    stopApps: async () => void (await Promise.all(apps.splice(0).map((app) => app.stop()))),
    async stop() {
      await Promise.all(apps.map((app) => app.stop()))
      connection.disconnect()
      await sandbox.close()
      await redis.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function organizationOf(name: RigAccount, id: number, tenant: number) {
  const limits = { search: 50, basic: 50 }
  return { id, limits, keys: [{ key: `fw_${name}`, tenants: [tenant] }] }
}

function aGroup(name: RigAccount, tenantId: number) {
  const identifiers = [{ id: tenantId, name: `${name}.example` }]
  return { id: groupOf[name], name, tenantId, identifiers }
}

async function isSettled(
  sandbox: Sandbox,
  ledger: (account: RigAccount) => AccountLedger,
): Promise<boolean> {
  for (const account of ['main', 'other'] as const) {
    const { feeds, sinks } = await readAccounting(ledger(account))
    const wanted = sandbox.events().filter(({ groupIds, raw }) => {
      return groupIds.includes(groupOf[account]) && raw === undefined
    })
    const taken = Object.values(feeds).reduce((sum, feed) => sum + feed.new, 0)
    if (taken < wanted.length) return false
    const moving = Object.values(sinks).flatMap(({ pending }) =>
      Object.entries(pending).filter(([state, count]) => state !== 'digest' && count > 0),
    )
    if (moving.length > 0) return false
  }
  return true
}

// Clients -------------------------------------------------------------------------------------------

const agent = new Agent({ keepAlive: true, maxSockets: 8 })

type To = Pick<PageRig, 'port'>

export type Fields = readonly (readonly [name: string, value: string])[]

/** Somebody who is signed in, in a browser that keeps cookies and sends what forms hold. */
export interface Visitor {
  cookie: string
  get(path: string, to?: To): Promise<Answer>
  head(path: string): Promise<Answer>
  /** Posts a form of the page at `from`, with what it holds and what is filled in. */
  submit(from: string, path: string, filledIn?: Fields, to?: To): Promise<Answer>
  /** Posts as it is. */
  post(path: string, fields: Fields, to?: To): Promise<Answer>
}

export async function signIn(rig: To, name: string): Promise<Visitor> {
  const entered = await ask(rig, '/sign-in', { body: { name, password } }, agent)
  const cookie = cookieOf(entered)
  const headers = { cookie }
  const post: Visitor['post'] = (path, fields, to = rig) =>
    ask(to, path, { headers, body: new URLSearchParams(fields.map(([...one]) => one)).toString() })
  return {
    cookie,
    get: (path, to = rig) => ask(to, path, { headers }, agent),
    head: (path) => ask(rig, path, { headers, method: 'HEAD' }, agent),
    post,
    async submit(from, path, filledIn = [], to = rig) {
      const { body } = await ask(to, from, { headers }, agent)
      return post(path, [...fieldsOf(body, path), ...filledIn], to)
    },
  }
}

/** What the form for an act holds, its token among it. Throws if the page has none. */
export function fieldsOf(html: string, path: string): [name: string, value: string][] {
  const form = html
    .split('<form ')
    .slice(1)
    .map((part) => part.split('</form>')[0]!)
    .find((part) => part.includes(`action="${path}"`))
  if (form === undefined) throw new Error(`the page has no form for ${path}`)
  const hidden = [...form.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)]
  const button = new RegExp(`formaction="${path}" name="form_token" value="([^"]*)"`).exec(form)
  const first = /name="form_token" value="([^"]*)"/.exec(form)
  const token = (button ?? first)?.[1] ?? ''
  const others = hidden.filter(([, name]) => name !== 'form_token')
  return [
    ...others.map(([, name = '', value = '']): [string, string] => [name, unescape(value)]),
    ['form_token', token],
  ]
}

const entities: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&#34;': '"',
  '&#39;': "'",
}

function unescape(text: string): string {
  return text.replaceAll(/&(?:amp|lt|gt|#34|#39);/g, (entity) => entities[entity]!)
}

// oxlint-disable-next-line typescript/no-explicit-any -- each test knows the answer that it reads
export type Json = any

export interface ApiAnswer {
  status: number
  json: Json
  text: string
  headers: Answer['headers']
}

interface ApiAsked {
  body?: object
  as?: keyof typeof tokens
  headers?: Record<string, string>
}

/** Asks the API as a program does; with a body it acts. */
export async function askApi(
  rig: To,
  path: string,
  { body, as = 'robot', headers = {} }: ApiAsked = {},
): Promise<ApiAnswer> {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) }
  const authorization = `Bearer ${tokens[as]}`
  const asked = { headers: { authorization, ...headers }, ...sent }
  const answer = await ask(rig, `/api/v1${path}`, asked, agent)
  const json: Json = answer.body === '' ? undefined : JSON.parse(answer.body)
  return { status: answer.status, json, text: answer.body, headers: answer.headers }
}

/** The cursor in an address of what is older. */
export function cursorIn(next: string | null): string | undefined {
  return next === null
    ? undefined
    : (new URL(next, 'http://x').searchParams.get('cursor') ?? undefined)
}

// The ledger as it stands ---------------------------------------------------------------------------

export interface StillPage {
  port: number
  /** What the page has asked of the engine. */
  asked: string[]
  stop(): Promise<void>
}

/** Stops the daemons and serves the page over what they left, so that nothing changes but by requests. */
export async function startStillPage(rig: PageRig): Promise<StillPage> {
  await rig.stopApps()
  return servePage(rig)
}

/** Serves the page over a ledger for which no daemon runs. */
export async function servePage(
  { redis, keys, config }: Pick<PageRig, 'redis' | 'keys' | 'config'>,
  clock: Clock = systemClock,
): Promise<StillPage> {
  const open = (account: string) => openLedger({ redis, keys, account, config: config.ledger })
  const ledgers = await Promise.all(config.accounts.map(({ name }) => open(name)))
  const asked: string[] = []
  const note = (what: string) => async (of: string) => void asked.push(`${what} ${of}`)
  const engine = {
    config,
    store: { redis, keys, ledgers },
    generation: { number: 1, sinceMs: 0, by: undefined },
    triageEvent: note('triage'),
    noteEvent: note('note'),
  }
  const metrics = createMetrics()
  const shared = { logger: silent, metrics, clock }
  const page = createPage({
    ...shared,
    version: 'test',
    redis,
    keys,
    http: () => config.http,
    engine: () => engine,
  })
  const server = createHttpServer({
    ...config.http,
    ...shared,
    health: () => ({ ok: true, loops: [] }),
    ready: async () => ({ ok: true, reasons: [] }),
    page: { ...page, publicUrl: () => undefined },
  })
  const { url } = await server.start()
  return { port: Number(new URL(url).port), asked, stop: () => server.stop() }
}

/** Every key that a pattern finds, with its type, value and the time at which it ends. */
export async function dumpKeys(redis: Redis, pattern = '*'): Promise<Map<string, string>> {
  const names = await redis.keys(pattern)
  const dumped = names.toSorted().map(async (name): Promise<[string, string]> => {
    const [value, endsAtMs] = [await redis.dumpBuffer(name), await redis.pexpiretime(name)]
    return [name, `${String(value?.toString('base64'))} ${endsAtMs}`]
  })
  return new Map(await Promise.all(dumped))
}
