import { expect, test } from 'vitest'
import { sumPending, readAccounting } from '../../src/store/accounts.ts'
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import { scanRecords } from '../../src/store/records.ts'
import { expectConservation } from '../support/ledger.ts'
import { nothingPending, until } from '../support/rehearsal.ts'
import { slack, startRig, webhook } from '../support/rig.ts'

const storm = 10_000

/** Ten events a page: 10,000 within twenty seconds. */
const perSecond = 50

/** What a destination gets at once, and how long it takes until it gets one more: a storm that is read slowly lasts. */
const burst = 8
const refillMs = 10_000

test('10,000 events in a minute are a few messages for people, and each by itself for a machine', async () => {
  await using rig = await startRig({ limit: perSecond })
  const { sandbox, arrived } = rig
  const { app, ledger } = await rig.start(
    rig.yaml({
      feeds: { brand: 'rescan: false' },
      sinks: {
        soc: slack(sandbox),
        siem: `${webhook(sandbox, 'siem')}, batch: {max: 100, wait: 1s}`,
      },
      route: ', group_interval: 20s',
    }),
  )
  await until('the feed is read to its end', async () => {
    const state = await ledger.redis.hget(ledger.key('feed', 'brand'), 'caught_up')
    return state !== null
  })
  const beganMs = performance.now()
  sandbox.addEvents(storm / 2, { severity: 'medium' })
  const worst = sandbox.addEvents(5, { severity: 'critical' }).map(({ uid }) => uid)
  sandbox.addEvents(storm / 2 - 5, { severity: 'medium' })
  await until('all are taken in', async () => (await takenIn(ledger)) === storm)
  await until('the machine has all', () => new Set(arrived()).size === storm)
  await until('people have all', () => isSettled(ledger, 'soc'))
  const promised = burst + Math.floor((performance.now() - beganMs) / refillMs)
  expect(sandbox.received.slack.length).toBeGreaterThan(1)
  expect(sandbox.received.slack.length).toBeLessThanOrEqual(promised)
  expect(arrived()).toHaveLength(storm)
  await until('all is settled', () => nothingPending(app))
  const waits = await waitsFor(ledger, worst)
  expect(waits.length).toBe(worst.length)
  // "within seconds": of what is less severe and told at the pace of the sink, little comes before
  const others = sandbox.received.slack.filter(({ body }) => !/critical/i.test(String(body)))
  expect(others.length).toBeGreaterThan(0)
  const before = waits.map(
    ({ fromMs, toMs }) => others.filter(({ atMs }) => atMs > fromMs && atMs < toMs).length,
  )
  expect(Math.max(...before)).toBeLessThanOrEqual(4)
  await expectConservation(ledger)
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
