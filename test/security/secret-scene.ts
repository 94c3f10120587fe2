/**
 * A daemon with a secret of every kind, for whom everything goes wrong that can: whoever it speaks to
 * refuses it in every way, and echoes what it was told.
 */
import { Redis } from 'ioredis'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { startEchoGateway, type EchoGateway } from '../support/echo-gateway.ts'
import { freePort } from '../support/free-port.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'
import { leaked, operators } from './planted-secrets.ts'

export interface SecretScene {
  redis: TestRedis
  /** A connection of its own. */
  admin: Redis
  /** Every command that reached Redis so far. */
  commands: () => string
  sandbox: Sandbox
  gateway: EchoGateway
  /** Events that every sink which accepts any will get. */
  events: number
  /** How many refusals each way of refusing must have met before there is anything to search. */
  refusals: readonly number[]
  httpPort: number
  yaml: string
  close(): Promise<void>
}

const refusals = [400, 401, 403, 404, 422, 429, 500, 502, 302] as const

export async function startSecretScene(): Promise<SecretScene> {
  const redis = await startRedis({ settings: [`requirepass ${operators.redisPassword}`] })
  const sandbox = await startTargetSandbox()
  const refusingMail = await startSandbox()
  const gateway = await startEchoGateway(sandbox.url, operators.grantedToken)
  const admin = new Redis(redis.port, '127.0.0.1', { password: operators.redisPassword })
  const monitor = await admin.monitor()
  // its password is changed under it, too
  monitor.on('error', () => undefined)
  const commands: string[] = []
  monitor.on('monitor', (_time: string, words: string[]) => commands.push(words.join(' ')))
  refusingMail.faults.add({ on: 'smtp:auth', effect: 'status', status: 535, message: echoed })
  plant(sandbox)
  const httpPort = await freePort()
  const parts = { redis, sandbox, refusingMail, gateway, httpPort }
  return {
    redis,
    admin,
    commands: () => commands.join('\n'),
    sandbox,
    gateway,
    events: sandbox.events().filter(({ raw }) => raw === undefined).length,
    refusals,
    httpPort,
    yaml: await configuration(parts),
    async close() {
      monitor.disconnect()
      admin.disconnect()
      await Promise.all([sandbox.close(), refusingMail.close(), gateway.close()])
      await redis.stop()
    },
  }
}

const inBase64 = Buffer.from(`\0analyst\0${operators.smtpPassword}`).toString('base64')
const echoed = `who is analyst with ${operators.smtpPassword} or ${inBase64}`

function startTargetSandbox(): Promise<Sandbox> {
  const limits = { search: 50, basic: 100 }
  const groups = [1042, 2042, 3042].map((id) => ({
    id,
    name: `Group ${id}`,
    tenantId: 42,
    identifiers: [{ id: id + 77, name: 'example.com' }],
  }))
  return startSandbox({
    organizations: [{ id: 7, limits, keys: [{ key: operators.apiKey, tenants: [42] }] }],
    groups,
    webhookSecret: operators.signingSecret,
    slackLimit: { perSecond: 1_000, burst: 1_000 },
  })
}

const detail = {
  identity_name: 'bob@example.com',
  password: leaked.detail,
  content: `found:\nbob@example.com:${leaked.combo}\ncookie: sid=${leaked.cookieHeader}`,
  credentials: [{ url: 'https://example.com', deeper: { user_password: leaked.deepDetail } }],
  autofill: [{ name: 'password', value: leaked.autofill }],
  cookies: [{ domain: 'example.com', name: 'sid', value: leaked.cookie }],
  link: `https://bob:${leaked.url}@example.com/`,
}

function plant(sandbox: Sandbox): void {
  sandbox.addEvents(20, { severity: 'high', ignoredAtMs: null })
  sandbox.addEvent({
    uid: 'stealer_log/planted/1',
    severity: 'high',
    type: 'stealer_log',
    ignoredAtMs: null,
    groupIds: [1042],
    notes: `seen with password: ${leaked.note}`,
    tags: ['reset', `bob@example.com:${leaked.tag}`],
    highlights: {
      'credentials.password': [leaked.highlight],
      content: [`<mark>bob@example.com</mark>:${leaked.markedCombo}`],
      cookies: [leaked.cookieHighlight],
    },
    data: detail,
  })
  sandbox.addRawItem(1042, `bob@example.com:${leaked.rawText}`)
  sandbox.addRawItem(1042, {
    metadata: { severity: 5 },
    password: leaked.raw,
    cookies: [{ name: 'sid', value: leaked.rawCookie }],
  })
  sandbox.addRawItem(1042, { metadata: { uid: { password: leaked.rawUid } } })
  const credential = { hashType: null, identifierIds: [1119], ignoredAtMs: null }
  sandbox.addCredentials([
    { ...credential, identityName: 'eve@example.com', hash: leaked.credential },
    { ...credential, identityName: `eve@example.com:${leaked.identityPair}`, hash: 'x-y-z-1-2' },
  ])
}

interface Parts {
  redis: TestRedis
  sandbox: Sandbox
  refusingMail: Sandbox
  gateway: EchoGateway
  httpPort: number
}

async function configuration({
  redis,
  sandbox,
  refusingMail,
  gateway,
  httpPort,
}: Parts): Promise<string> {
  const { url } = gateway
  const closed = `http://127.0.0.1:${await freePort()}`
  const hook = (path: string, more = ''): string =>
    `{type: webhook, url: '${path}/${operators.webhookPath}?token=${operators.webhookQuery}', headers: [{name: Authorization, value: 'Splunk ${operators.authorization}'}], allow_private: true${more}}`
  const signed = `, secret: '${operators.signingSecret}'`
  const rotating = `, secret: '${operators.rotatedSecret}'`
  const login = `analyst:${encodeURIComponent(operators.smtpPassword)}`
  const mail = (smtpUrl: string): string =>
    `{type: email, smtp: 'smtp://${login}@127.0.0.1:${new URL(smtpUrl).port}', from: tocsin@example.com, to: [a@example.com], tls: off}`
  const refusing = refusals.map((status) => ({
    hook: hook(`${url}/echo/${status}/hooks`, rotating),
    slack: `{type: slack, url: '${url}/echo/${status}/plain/${operators.slackToken}', allow_private: true, limit: 50/s}`,
    status,
  }))
  return `
redis: {url: 'redis://default:${encodeURIComponent(operators.redisPassword)}@127.0.0.1:${redis.port}'}
http: {port: ${httpPort}}
canary: {every: 1m, sinks: [siem], ping: '${url}/echo/500/${operators.pingPath}', allow_private: true}
accounts:
  main: {base_url: '${url}', api_key: '${operators.apiKey}', limits: {search: 50, basic: 100}}
  proxied: {base_url: '${url}', api_key: '${operators.otherApiKey}', organization_id: 9, proxy: 'http://analyst:${operators.proxyPassword}@127.0.0.1:${new URL(url).port}'}
  closed: {base_url: '${closed}', api_key: '${operators.otherApiKey}', organization_id: 8}
${refusals.flatMap((status) => refusedAccounts(url, status)).join('\n')}
feeds:
  main: {type: events, account: main, identifier_group: 1042, every: 5s, initial_poll: send, detail: [high]}
  staff: {type: credentials, account: main, identifier: 1119, every: 5s, initial_poll: send, severity: high}
  proxied: {type: events, account: proxied, identifier_group: 1, detail: [], every: 5s}
  closed: {type: events, account: closed, identifier_group: 1, detail: [], every: 5s}
${refusals.flatMap((status) => refusedFeeds(status)).join('\n')}
sinks:
  siem: ${hook(`${url}/hooks`, signed)}
  vault: ${hook(`${url}/hooks/vault`, `${signed}, reveal: true`)}
  vault400: ${hook(`${url}/echo/400/vault`, `${signed}, reveal: true`)}
  soc: {type: slack, url: '${url}/slack/${operators.slackToken}', allow_private: true, limit: 50/s}
  oncall: ${mail(sandbox.smtpUrl)}
  unanswered: ${hook(closed, signed)}
  tls: ${hook(url.replace('http:', 'https:'), signed)}
  refusedmail: ${mail(refusingMail.smtpUrl)}
${refusing.map(({ status, hook: to }) => `  hook${status}: ${to}`).join('\n')}
${refusing.map(({ status, slack }) => `  slack${status}: ${slack}`).join('\n')}
route:
  sinks: [siem, vault, vault400, soc, oncall, unanswered, tls, refusedmail, ${refusals.flatMap((status) => [`hook${status}`, `slack${status}`]).join(', ')}]
  group_wait: 0s
`
}

/** One that refuses the key, and one that gives a token and refuses everything else. */
function refusedAccounts(url: string, status: number): string[] {
  const rest = `api_key: '${operators.otherApiKey}', limits: {search: 50, basic: 50}`
  return [
    `  key${status}: {base_url: '${url}/echo/${status}/key', organization_id: ${status}, ${rest}}`,
    `  tok${status}: {base_url: '${url}/echo/${status}/grant', organization_id: ${1000 + status}, ${rest}}`,
  ]
}

function refusedFeeds(status: number): string[] {
  return ['key', 'tok'].map(
    (kind) =>
      `  ${kind}${status}: {type: events, account: ${kind}${status}, identifier_group: 1, every: 5s}`,
  )
}
