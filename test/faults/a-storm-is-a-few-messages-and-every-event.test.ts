import { expect, test } from 'vitest'
import { sumPending, readAccounting } from '../../src/store/accounts.ts'
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import { scanRecords } from '../../src/store/records.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { expectConservation } from '../support/ledger.ts'
import { startRedis } from '../support/redis.ts'
import { aReplica, nothingPending, until } from '../support/rehearsal.ts'

const storm = 10_000

/** Ten events a page: 10,000 within twenty seconds. */
const perSecond = 50

/** What a destination gets at once, and how long it takes until it gets one more: a storm that is read slowly lasts. */
const burst = 8
const refillMs = 10_000

test('10,000 events in a minute are a few messages for people, and each by itself for a machine', async () => {
  const redis = await startRedis()
  const sandbox = await startSandbox({
    organizations: [
      {
        id: 7,
        limits: { search: perSecond, basic: 20 },
        keys: [{ key: 'fw_sandbox', tenants: [42] }],
      },
    ],
  })
  const replica = aReplica(`
redis: {url: '${redis.url}'}
http: {port: 0}
accounts:
  main:
    base_url: '${sandbox.url}'
    link_hosts: [app.example.com]
    api_key: fw_sandbox
    limits: {search: ${perSecond}, basic: 20}
feeds: {brand: {type: events, identifier_group: 1042, detail: [], every: 5s, rescan: false}}
sinks:
  soc: {type: slack, url: '${sandbox.slackUrl}', allow_private: true}
  siem:
    type: webhook
    url: '${sandbox.url}/hooks/siem'
    secret: '${sandbox.webhookSecret}'
    allow_private: true
    batch: {max: 100, wait: 1s}
route: {sinks: [soc, siem], group_interval: 20s}
`)
  const webhookUids = (): string[] => sandbox.received.webhook.flatMap(({ uids }) => uids)
  try {
    await replica.start()
    const [ledger] = replica.ledgers
    await until('the feed is read to its end', async () => {
      const state = await ledger!.redis.hget(ledger!.key('feed', 'brand'), 'caught_up')
      return state !== null
    })
    const beganMs = performance.now()
    sandbox.addEvents(storm / 2, { severity: 'medium' })
    const worst = sandbox.addEvents(5, { severity: 'critical' }).map(({ uid }) => uid)
    sandbox.addEvents(storm / 2 - 5, { severity: 'medium' })
    await until('all are taken in', async () => (await takenIn(ledger!)) === storm)
    await until('the machine has all', () => new Set(webhookUids()).size === storm)
    await until('people have all', () => isSettled(ledger!, 'soc'))
    const promised = burst + Math.floor((performance.now() - beganMs) / refillMs)
    expect(sandbox.received.slack.length).toBeGreaterThan(1)
    expect(sandbox.received.slack.length).toBeLessThanOrEqual(promised)
    expect(webhookUids()).toHaveLength(storm)
    await until('all is settled', () => nothingPending(replica))
    const waits = await waitsFor(ledger!, worst)
    expect(waits.length).toBe(worst.length)
    // "within seconds": of what is less severe and told at the pace of the sink, little comes before
    const others = sandbox.received.slack.filter(({ body }) => !/critical/i.test(String(body)))
    expect(others.length).toBeGreaterThan(0)
    const before = waits.map(
      ({ fromMs, toMs }) => others.filter(({ atMs }) => atMs > fromMs && atMs < toMs).length,
    )
    expect(Math.max(...before)).toBeLessThanOrEqual(4)
    await expectConservation(ledger!)
  } finally {
    await replica.stop()
    await sandbox.close()
    await redis.stop()
  }
}, 900_000)

async function takenIn(ledger: AccountLedger): Promise<number> {
  return (await readAccounting(ledger)).feeds['brand']?.new ?? 0
}

async function isSettled(ledger: AccountLedger, sink: string): Promise<boolean> {
  const account = (await readAccounting(ledger)).sinks[sink]
  return account !== undefined && sumPending(account) === 0
}

/** From each event's arrival to its delivery to people, ms. */
async function waitsFor(
  ledger: AccountLedger,
  uids: readonly string[],
): Promise<{ fromMs: number; toMs: number }[]> {
  const waits: { fromMs: number; toMs: number }[] = []
  for await (const { uid, firstSeenMs, items } of scanRecords(ledger)) {
    const told = items.find(({ sink }) => sink === 'soc')
    if (uids.includes(uid) && told?.endedAtMs)
      waits.push({ fromMs: firstSeenMs, toMs: told.endedAtMs })
  }
  return waits
}
