/** The daemon between a Redis, the sandbox and its receivers. All of it ends with `await using rig = await startRig()`. */
import type { App } from '../../src/daemon/daemon.ts'
import type { Clock } from '../../src/lib/clock.ts'
import type { Logger } from '../../src/lib/logger.ts'
import type { SandboxOptions } from '../../src/sandbox/options.ts'
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts'
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import { startRedis, type TestRedis } from './redis.ts'
import { aReplica } from './rehearsal.ts'

export interface RigOptions {
  sandbox?: SandboxOptions
  /** Of a server of its own. */
  redis?: Parameters<typeof startRedis>[0]
  /** Requests a second that the service grants. */
  limit?: number
}

/** A configuration of one account `main`; what a test does not say is as plain as can be. */
export interface Parts {
  /** By name: keys beside type, group 1042, no details and 5 s. Default: `brand`. */
  feeds?: Readonly<Record<string, string>>
  /** By name, a whole sink; '' is a webhook. Default: the webhook `siem`. */
  sinks?: Readonly<Record<string, string>>
  /** Further keys of the root route, of the account, and further sections. */
  route?: string
  account?: string
  more?: string
}

export interface Running {
  app: App
  url: string
  ledger: AccountLedger
  metrics: () => Promise<string>
}

export interface Rig extends AsyncDisposable {
  sandbox: Sandbox
  server: TestRedis
  yaml: (parts?: Parts) => string
  /** A replica that is not started yet. */
  replica: (yaml?: string, logger?: Logger, clock?: Clock) => App
  start: (yaml?: string, logger?: Logger, clock?: Clock) => Promise<Running>
  /** The uids that a webhook got, in order of arrival. */
  arrived: (sink?: string) => string[]
  hasAll: (sink: string, events: readonly { uid: string }[]) => boolean
}

export async function startRig({
  sandbox: given,
  redis,
  limit = 20,
}: RigOptions = {}): Promise<Rig> {
  const parts = new AsyncDisposableStack()
  const server = parts.adopt(await startRedis(redis), (one) => one.stop())
  const limits = { search: limit, basic: limit }
  const organizations = [{ id: 7, limits, keys: [{ key: 'fw_sandbox', tenants: [42] }] }]
  const started = await startSandbox({ organizations, ...given })
  const sandbox = parts.adopt(started, (one) => one.close())
  const yaml = (asked: Parts = {}): string => configOf(sandbox, server.url, limit, asked)
  const replica: Rig['replica'] = (text = yaml(), ...more) =>
    parts.adopt(aReplica(text, ...more), (app) => app.stop())
  const arrived = (sink = 'siem'): string[] =>
    sandbox.received.webhook
      .filter(({ to }) => to === `/hooks/${sink}`)
      .flatMap((message) => message.uids)
  return {
    sandbox,
    server,
    yaml,
    replica,
    async start(...asked) {
      const app = replica(...asked)
      const { url } = await app.start()
      const metrics = async (): Promise<string> => (await fetch(`${url}/metrics`)).text()
      return { app, url, ledger: app.ledgers[0]!, metrics }
    },
    arrived,
    hasAll(sink, events) {
      const got = new Set(arrived(sink))
      return events.every(({ uid }) => got.has(uid))
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
}

function configOf(sandbox: Sandbox, redisUrl: string, limit: number, parts: Parts): string {
  const { feeds = { brand: '' }, sinks = { siem: '' }, route = '', account = '', more = '' } = parts
  const key = sandbox.apiKeys[0]
  const feed = ([name, keys]: [string, string]): string => {
    const group = keys.includes('identifier_group') ? '' : 'identifier_group: 1042, '
    const detail = keys.includes('detail:') ? '' : 'detail: [], '
    return `  ${name}: {type: events, ${group}${detail}every: 5s${keys && `, ${keys}`}}`
  }
  const sink = ([name, whole]: [string, string]): string =>
    `  ${name}: {${whole || webhook(sandbox, name)}}`
  return `redis: {url: '${redisUrl}'}
http: {port: 0}
accounts:
  main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: ${key}, limits: {search: ${limit}, basic: ${limit}}${account}}
feeds:
${Object.entries(feeds).map(feed).join('\n')}
sinks:
${Object.entries(sinks).map(sink).join('\n')}
route: {sinks: [${Object.keys(sinks).join(', ')}]${route}}
${more}
`
}

/** The keys of a webhook sink of the sandbox. */
export function webhook({ url, webhookSecret }: Sandbox, name: string): string {
  return `type: webhook, url: '${url}/hooks/${name}', secret: '${webhookSecret}', allow_private: true`
}

export function slack({ slackUrl }: Sandbox): string {
  return `type: slack, url: '${slackUrl}', allow_private: true`
}

export function mail({ smtpUrl }: Sandbox, ...to: string[]): string {
  return `type: email, smtp: '${smtpUrl}', from: tocsin@example.com, to: [${to.join(', ')}], tls: off`
}
