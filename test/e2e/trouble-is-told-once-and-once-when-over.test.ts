import { expect, test } from 'vitest'
import type { App } from '../../src/daemon/daemon.ts'
import { systemClock, type Clock } from '../../src/lib/clock.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { startHttpServer } from '../support/http-server.ts'
import { expectConservation, silent } from '../support/ledger.ts'
import { startRedis } from '../support/redis.ts'
import { aReplica, nothingPending, until } from '../support/rehearsal.ts'

const settleMs = 10 * 60_000

const organizations = [
  { id: 7, limits: { search: 20, basic: 20 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
]

function configOf(sandbox: Sandbox, redisUrl: string, more: string): string {
  return `
redis: {url: '${redisUrl}'}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox, limits: {search: 20, basic: 20}}}
feeds: {brand: {type: events, identifier_group: 1042, detail: [], every: 5s, initial_poll: send}}
sinks:
  soc: {type: slack, url: '${sandbox.slackUrl}', limit: 20/s, allow_private: true}
  siem: {type: webhook, url: '${sandbox.webhookUrl}', secret: '${sandbox.webhookSecret}', allow_private: true}
${more}`
}

function aheadBy(aheadMs: () => number): Clock {
  return { ...systemClock, now: () => systemClock.now() + aheadMs() }
}

// The next canary is far away: the clock is set ahead, and a webhook of then is refused now.
test('two replicas tell of a refused key once, and once when it works again', async () => {
  const redis = await startRedis()
  const sandbox = await startSandbox({ organizations })
  const deadMan = await startHttpServer()
  const yaml = configOf(
    sandbox,
    redis.url,
    `
route: {sinks: [siem]}
self_alerts: {sink: soc}
canary: {every: 30d, sinks: [soc, siem], ping: '${deadMan.url}/ping', allow_private: true}
`,
  )
  let aheadMs = 0
  const replicas = [1, 2].map(() =>
    aReplica(
      yaml,
      silent,
      aheadBy(() => aheadMs),
    ),
  ) as [App, App]
  const naming = (uid: string): string[] =>
    sandbox.received.slack.map(({ body }) => body).filter((body) => body.includes(uid))
  const notices = (): string[] => naming('notice/tocsin/')
  const hasCome = (uid: string): boolean =>
    sandbox.received.webhook.some(({ uids }) => uids.includes(uid))
  try {
    await Promise.all(replicas.map((replica) => replica.start()))
    const first = sandbox.addEvent()
    await until('an event arrives', () => hasCome(first.uid))

    sandbox.tokens.refuseKey('fw_sandbox')
    await until('the trouble is told', () => notices().length > 0)
    sandbox.tokens.admitKey('fw_sandbox')
    const second = sandbox.addEvent()
    await until('it works again', () => hasCome(second.uid))
    const ledgers = replicas[0].ledgers
    const noted = (): Promise<string | null> =>
      ledgers[0]!.redis.hget('{tocsin}:notices', 'account-refused-main')
    await until('that is seen', async () => (await noted())?.includes('goneMs') ?? false)
    aheadMs = settleMs
    await until('the end is told', () => notices().length > 1)
    await until('all is settled', () => nothingPending(replicas[0]))

    const told = notices().map((body) => /notice\/tocsin\/([\w-]+)-\d+-(\w+)/.exec(body)?.slice(1))
    expect(told).toEqual([
      ['account-refused-main', 'begin'],
      ['account-refused-main', 'end'],
    ])
    const [begin, end] = notices()
    expect(begin).toContain('Tocsin: account main: key refused by the service')
    expect(begin).toContain('tocsin token test --account main')
    expect(end).toMatch(/Tocsin: over after .*: account main: key refused by the service/)
    const canaries = naming('canary/tocsin/')
    const slots = canaries.map((body) => /canary\/tocsin\/\d+/.exec(body)?.[0])
    expect(canaries[0]).toContain('TEST Canary: test of the whole way')
    expect(new Set(slots).size).toBe(slots.length)
    expect(deadMan.requests.map(({ path }) => path)).toEqual(slots.map(() => '/ping'))
    await expectConservation(ledgers[0]!)
  } finally {
    await Promise.all(replicas.map((replica) => replica.stop()))
    await deadMan.stop()
    await sandbox.close()
    await redis.stop()
  }
}, 300_000)
