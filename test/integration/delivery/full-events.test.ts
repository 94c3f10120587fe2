import { expect, test } from 'vitest'
import {
  createFullEvents,
  type FullEventsOptions,
  type WantedEvent,
} from '../../../src/delivery/send/full-events.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { titleOf } from '../../../src/messages/message.ts'
import { readPayload, readRecord } from '../../../src/store/records.ts'
import { redisForTests, routed, silent, takeIn } from '../../support/ledger.ts'
import { shortTimings, until } from '../../support/rehearsal.ts'

const tests = redisForTests()

interface Rig {
  /** Takes the events in, and fetches what they want. */
  take: (...events: ReturnType<typeof routed>[]) => Promise<void>
  ledger: AccountLedger
  /** How many items each release let go. */
  released: number[]
  stop: () => Promise<void>
}

async function rig(fetchDetail: FullEventsOptions['fetchDetail']): Promise<Rig> {
  const ledger = await tests.ledger({ keys: tests.keys(), account: 'main' })
  const released: number[] = []
  const fullEvents = createFullEvents({
    findLedger: () => ledger,
    fetchDetail,
    batchWaits: { soc: false },
    release: (_account, made) => void released.push(made.length),
    clock: systemClock,
    logger: silent,
    timings: { ...shortTimings, detailWaitMs: 60_000 },
  })
  return {
    async take(...events) {
      const accepted = await takeIn(ledger, events)
      if (accepted.status === 'committed') fullEvents.fetch('main', accepted.changes)
    },
    ledger,
    released,
    stop: () => fullEvents.stop(50),
  }
}

test('a record that wants its full event is asked for once for all its sinks, and no other is', async () => {
  const asked: WantedEvent[] = []
  const { take, released } = await rig((_account, event) => {
    asked.push(event)
    return Promise.resolve('unavailable')
  })
  await take(
    routed({ uid: 'first', severity: 'critical' }, ['soc', 'siem'], true),
    routed({ uid: 'as it is' }),
  )
  await until('it goes on', () => released.length === 1)
  expect(asked).toEqual([{ uid: 'first', rank: 5 }])
})

test('an event that came back more severe while its full event was fetched is told as it is now', async () => {
  const answers: PromiseWithResolvers<{ name: string }>[] = []
  const { take, ledger, released } = await rig(() => {
    const answer = Promise.withResolvers<{ name: string }>()
    answers.push(answer)
    return answer.promise
  })
  const shown = [namedBy('high', 0), namedBy('critical', 1)]
  for (const [at, event] of shown.entries()) {
    await take(event)
    await until('it is asked for', () => answers.length === at + 1)
  }
  answers[0]!.resolve({ name: 'full' })
  await until('both items go on', () => released.length === 1)
  const recordId = ledger.fingerprints.recordId('a/b/1')
  expect(await readPayload(ledger, recordId)).toMatchObject({
    event: { severity: 'critical' },
    detail: { name: 'full' },
  })
  expect((await readRecord(ledger, recordId))!.title).toBe(shown[1]!.title)
  expect(shown[1]!.title).not.toBe(shown[0]!.title)
  answers[1]!.resolve({ name: 'again' })
  await until('the second answer is done with', () => released.length === 2)
  expect(released).toEqual([2, 0])
  expect(await readPayload(ledger, recordId)).toMatchObject({ detail: { name: 'full' } })
})

test('a full event names its record anew', async () => {
  const detail = { name: 'full' }
  const { take, ledger, released } = await rig(() => Promise.resolve(detail))
  const { event, ...shown } = namedBy('high', 0)
  await take({ event, ...shown })
  await until('its item goes on', () => released.length === 1)
  const named = titleOf({ feed: 'brand', event, detail })
  expect(named).not.toBe(shown.title)
  const record = await readRecord(ledger, ledger.fingerprints.recordId('a/b/1'))
  expect(record!.title).toBe(named)
})

/** One event, whose title has the identifier that it matched. */
function namedBy(severity: string, id: number): ReturnType<typeof routed> {
  const identifiers = [{ id, name: `brand-${id}.example` }]
  const about = { uid: 'a/b/1', type: 'experimental', severity, highlights: {}, identifiers }
  return routed(about, ['soc'], true)
}

test('a full event says whether its machine was seen before', async () => {
  const { take, ledger, released } = await rig(() =>
    Promise.resolve({ victim_information: { hardware: ['HOSTNAME: DESKTOP-7'] } }),
  )
  const recordIds = ['a/b/1', 'a/b/2'].map((uid) => ledger.fingerprints.recordId(uid))
  for (const [at, uid] of ['a/b/1', 'a/b/2'].entries()) {
    await take(routed({ uid, type: 'stealer_log' }, ['soc'], true))
    await until('it is there', () => released.length === at + 1)
  }
  expect((await readRecord(ledger, recordIds[1]!))?.seenBefore).toMatchObject([
    { kind: 'host', times: 1, recordId: recordIds[0] },
  ])
})

test('a full event that is slow to come keeps no other waiting, and a stop breaks it off', async () => {
  let isBrokenOff = false
  const { take, ledger, released, stop } = await rig(async (_account, { uid }, signal) => {
    if (uid === 'slow') await systemClock.sleep(60_000, signal)
    isBrokenOff ||= signal.aborted
    return 'unavailable'
  })
  await take(routed({ uid: 'slow' }, ['soc'], true), routed({ uid: 'quick' }, ['soc'], true))
  await until('the quick one goes on', () => released.length === 1)
  await stop()
  await until('the slow one is broken off', () => isBrokenOff)
  const record = await readRecord(ledger, ledger.fingerprints.recordId('slow'))
  expect(record?.items[0]).toMatchObject({ state: 'held', heldFor: 'detail' })
  expect(released).toEqual([1])
})
