/** `doctor` against a real Redis, the pretend service and its receivers. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { onTestFinished, expect, test } from 'vitest'
import type { Finding } from '../../../src/operator/probes/probe.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { noteLoss } from '../../../src/store/account-ledger.ts'
import { startHttpServer } from '../../support/http-server.ts'
import { connectTo, redisForTests } from '../../support/ledger.ts'
import { startRedis } from '../../support/redis.ts'
import { aFile, startTocsin, tocsin } from './tocsin.ts'

const tests = redisForTests()
const password = 'hush-hush-mail'
let prefixes = 0

async function aSandbox(): Promise<Sandbox> {
  const sandbox = await startSandbox({ enforceLimits: false })
  onTestFinished(() => sandbox.close())
  return sandbox
}

function configText(sandbox: Sandbox, redisUrl: string): string {
  prefixes += 1
  return `redis: { url: "${redisUrl}", prefix: doctor${prefixes} }
accounts:
  main: { base_url: "${sandbox.url}", api_key: ${sandbox.apiKeys[0]}, limits: { search: 100, basic: 100 } }
feeds:
  brand: { type: events, identifier_group: 1042, filters: { type: [stealer_log] } }
retention: { max_bytes: 100MiB }
sinks:
  soc: { type: slack, url: "${sandbox.slackUrl}", allow_private: true }
  chat: { type: teams, url: "${sandbox.teamsUrl}", allow_private: true }
  siem: { type: webhook, url: "${sandbox.webhookUrl}", secret: ${sandbox.webhookSecret}, allow_private: true }
  duty: { type: pagerduty, url: "${sandbox.pagerDutyUrl}", routing_key: ${sandbox.pagerDutyKey}, allow_private: true }
  oncall:
    type: email
    smtp: "smtp://ann:${password}@${new URL(sandbox.smtpUrl).host}"
    from: tocsin@example.com
    to: [ann@example.com, bob@example.com]
route: { sinks: [soc, chat, siem, duty, oncall] }
`
}

interface Seen {
  code: number | null
  findings: Finding[]
  /** Everything that was printed. */
  said: string
}

async function doctor(config: string, ...more: string[]): Promise<Seen> {
  const path = aFile('tocsin.yaml', config)
  const { code, out, err } = await tocsin('doctor', '--output=json', '--config', path, ...more)
  const findings = out === '' ? [] : (JSON.parse(out) as Finding[])
  return { code, findings, said: out + err }
}

function bad(findings: readonly Finding[]): string[] {
  return findings.flatMap(({ check, subject, status }) =>
    status === 'ok' ? [] : [`${status} ${check} ${subject}`],
  )
}

function countReceived({ received }: Sandbox): Record<string, number> {
  return Object.fromEntries(Object.entries(received).map(([sink, all]) => [sink, all.length]))
}

test('where all is well every check says so, and nobody gets a message', async () => {
  const sandbox = await aSandbox()
  const { code, findings } = await doctor(configText(sandbox, tests.server.url))
  expect(bad(findings).filter((line) => !/configuration/.test(line))).toEqual([])
  expect(code).toBe(0)
  expect([...new Set(findings.map(({ check }) => check))]).toEqual([
    'configuration',
    'redis',
    'redis safety',
    'redis memory',
    'ledger',
    'reach',
    'service',
    'key',
    'clock',
    'quota',
    'sink',
  ])
  const sinks = findings.filter(({ check }) => check === 'sink')
  expect(sinks.map(({ subject, detail }) => `${subject}: ${detail.replace(/:\d+/, '')}`)).toEqual([
    'soc (slack): TCP to 127.0.0.1',
    'chat (teams): TCP to 127.0.0.1',
    'siem (webhook): TCP to 127.0.0.1',
    'duty (pagerduty): TCP to 127.0.0.1',
    'oncall (email): signed in to 127.0.0.1',
  ])
  for (const finding of findings) {
    expect(Object.keys(finding)).toEqual(['check', 'subject', 'status', 'detail', 'remedy'])
  }
  expect(Object.values(countReceived(sandbox))).toEqual([0, 0, 0, 0, 0])
})

test('each thing that is wrong is a line with its remedy, and hides no other', async () => {
  const sandbox = await aSandbox()
  const redis = await startRedis({ settings: ['maxmemory-policy allkeys-lru', 'maxmemory 100mb'] })
  onTestFinished(() => redis.stop())
  sandbox.faults.add({ on: 'smtp:auth', effect: 'status', status: 535 })
  const text = configText(sandbox, redis.url)
    .replace(`api_key: ${sandbox.apiKeys[0]}`, 'api_key: fw_no_such_key')
    .replace(sandbox.webhookUrl, 'http://127.0.0.1:9/hook')
  const store = connectTo(redis.url)
  const prefix = `doctor${prefixes}`
  await noteLoss(store, createKeys(prefix), { atMs: Date.UTC(2026, 10, 25), stateMs: 0 })
  store.disconnect()
  const { code, findings, said } = await doctor(text)
  expect(code).toBe(1)
  expect(bad(findings).filter((line) => !/configuration/.test(line))).toEqual([
    'problem redis safety redis.url',
    'warning redis memory redis.url',
    `problem redis ledger ${prefix}`,
    'problem key main',
    'problem sink siem (webhook)',
    'problem sink oncall (email)',
  ])
  for (const { status, remedy } of findings) {
    expect(remedy === null).toBe(status === 'ok')
    expect(remedy ?? '').not.toMatch(/^(Check|The|No) |\.$/) // it follows a semicolon
  }
  for (const secret of [password, 'fw_no_such_key', sandbox.slackUrl, sandbox.pagerDutyKey]) {
    expect(said).not.toContain(secret)
  }
})

test('without Redis the rest is looked at, and the keys are said to wait for it', async () => {
  const sandbox = await aSandbox()
  const { code, findings } = await doctor(configText(sandbox, 'redis://127.0.0.1:9'))
  expect(code).toBe(1)
  expect(findings).toContainEqual({
    check: 'redis',
    subject: 'redis.url',
    status: 'problem',
    detail: 'Redis at 127.0.0.1:9 is not reachable (ECONNREFUSED)',
    remedy: 'start it, or correct redis.url',
  })
  expect(findings).toContainEqual(
    expect.objectContaining({ check: 'key', subject: 'main', status: 'warning' }),
  )
  expect(findings).toContainEqual(expect.objectContaining({ check: 'reach', status: 'ok' }))
  expect(findings.filter(({ check, status }) => check === 'sink' && status === 'ok')).toHaveLength(
    5,
  )
})

function judged(findings: readonly Finding[], check: string): string[] {
  return findings.flatMap((one) => (one.check === check ? [`${one.status}: ${one.detail}`] : []))
}

test.each([
  [503, /^problem: their side: its health check says that the service failed \(503\)/],
  [404, /^ok: answers, but not how it is \(404\)$/],
  [200, /^ok: says that it is well$/],
])('a service is asked whether it is well, without a key: %i', async (status, said) => {
  const sandbox = await aSandbox()
  const on = '/firework/v4/healthz/'
  if (status !== 200) sandbox.faults.add({ on, effect: 'status', status })
  const text = configText(sandbox, tests.server.url)
  const { findings } = await doctor(text.replace(sandbox.apiKeys[0]!, 'fw_no_such_key'))
  expect(judged(findings, 'service')).toEqual([expect.stringMatching(said)])
  expect(findings.find(({ check }) => check === 'service')?.subject).toBe(new URL(sandbox.url).host)
})

/** How the service answers: how long ago, for which tenant, with which status, or not at all. */
interface Answered {
  ageMs?: number
  tenantId?: number
  status?: number
  isCut?: boolean
}

const hourAgo = { ageMs: 3_600_000 }
const isAhead = /^warning: this machine's clock is 60 min ahead of the service's$/

test.each<[string, Answered, RegExp, RegExp]>([
  ['works', hourAgo, /^ok: works;/, isAhead],
  ['is of another tenant', { tenantId: 43 }, /^ok: .* tenant 43,/, /^ok: within \d s of /],
  ['is refused', { ...hourAgo, status: 401 }, /^problem: .*401/, isAhead],
  ['is refused at the right time', { status: 401 }, /^problem: .*401/, /^ok: within \d s of /],
  ['gets no answer', { isCut: true }, /^problem: /, /^warning: not checked: no answer stated/],
])('the clock is judged once, where the key %s', async (_what, answered, key, clock) => {
  const sandbox = await aSandbox()
  const front = await startHttpServer()
  onTestFinished(() => front.stop())
  const { ageMs = 0, tenantId = 42, status, isCut = false } = answered
  front.script(async ({ method, path, headers: { authorization = '' }, body }) => {
    if (isCut) return 'cut'
    const asked = { authorization, 'content-type': 'application/json' }
    const request = { method, headers: asked, ...(body && { body }) }
    const answer = await fetch(sandbox.url + path, request)
    const headers = { date: new Date(Date.now() - ageMs).toUTCString() }
    const text = (await answer.text()).replace('"tenant_id":42', `"tenant_id":${tenantId}`)
    return { status: status ?? answer.status, headers, body: text }
  })
  const text = configText(sandbox, tests.server.url)
    .replace(sandbox.url, front.url)
    .replace('accounts:\n  main: {', '$& tenant_id: 42,')
  const { findings } = await doctor(text)
  expect(judged(findings, 'key')).toEqual([expect.stringMatching(key)])
  expect(judged(findings, 'clock')).toEqual([expect.stringMatching(clock)])
})

test('Ctrl-C ends it, and reports nothing of what it had not looked at', async () => {
  const sandbox = await aSandbox()
  const silent = createServer()
  await once(silent.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void silent.close())
  const { port } = silent.address() as AddressInfo
  const text = configText(sandbox, tests.server.url).replace(
    sandbox.webhookUrl,
    `https://127.0.0.1:${port}/hook`,
  )
  const connected = once(silent, 'connection') as Promise<[Socket]>
  const { child, ended } = startTocsin('doctor', '--config', aFile('tocsin.yaml', text))
  const [socket] = await connected
  onTestFinished(() => void socket.destroy())
  child.kill('SIGINT')
  expect(await ended).toEqual({ code: 130, out: '', err: '' })
})
