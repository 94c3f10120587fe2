/**
 * What version 0.4.0 left in Redis (test/fixtures/store-0.4.json, written by its own code) is taken up:
 * known events stay known, and what was on its way arrives.
 */
import { beforeEach, expect, test } from 'vitest'
import { createKeys } from '../../../src/redis/keys.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { openFeed } from '../../../src/store/feed-state.ts'
import type { CredentialPair, RoutedEvent } from '../../../src/store/intake.ts'
import {
  listDeadLetters,
  readDueRefs,
  replayDeadLetter,
  readSinkNames,
} from '../../../src/store/pending-items.ts'
import { readPayload, readRecord } from '../../../src/store/records.ts'
import { aThreatEvent } from '../../support/events.ts'
import { aGatheringRig } from '../../support/grouping.ts'
import {
  expectConservation,
  expectNothingStranded,
  redisForTests,
  routed,
  takeIn,
  waitingIn,
} from '../../support/ledger.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'
import { loadStoreOf04 } from '../../support/store-of-0.4.ts'

const tests = redisForTests()
const keys = createKeys('tocsin')
let ledger: AccountLedger

beforeEach(async () => {
  await loadStoreOf04(tests.redis)
  ledger = await tests.ledger({ keys, account: 'main' })
})

const known = ['queued', 'delivered', 'retrying', 'dead', 'grouped', 'trimmed', 'batch1', 'batch2']
const pair: CredentialPair = { id: 'aa11', source: 'combo2', forMs: 3_600_000, isSentAgain: false }

function leak(id: number): RoutedEvent {
  const event = { uid: `credential/${id}`, kind: 'credential', type: 'credential' } as const
  return { ...routed(event, ['lake']), pair }
}

function shown(severity = 'high', names = known): RoutedEvent[] {
  return names.map((name) => routed({ uid: `paste/x/${name}`, severity }, ['lake']))
}

test('no event that 0.4.0 took in is new after an upgrade, nor what it set aside or found below the start', async () => {
  const below = { ...routed({ uid: 'paste/x/below' }, []), isBaseline: true }
  const odd = { uid: 'paste/x/odd', problem: 'metadata.severity: not a string', raw: '{"odd":1}' }
  const trimmedWas = shown('medium', ['trimmed'])
  const others = shown(
    'high',
    known.filter((name) => name !== 'trimmed'),
  )
  const page = [...others, ...trimmedWas, leak(1), below]
  expect(await takeIn(ledger, page, { malformed: [odd] })).toMatchObject({
    counts: { fetched: 11, new: 0, duplicate: 11, quarantined: 0, raised: 0 },
    changes: [],
  })
})

test('an event that becomes more severe after an upgrade is told, though 0.4.0 had dropped its record', async () => {
  expect(await takeIn(ledger, shown('critical', ['trimmed']))).toMatchObject({
    counts: { new: 0, raised: 1 },
    changes: [{ sv: 'critical' }],
  })
})

test('a pair of login and secret that 0.4.0 told is not told again from another source', async () => {
  await takeIn(ledger, [leak(2)])
  const record = await readRecord(ledger, ledger.fingerprints.recordId('credential/2'))
  expect(record?.items).toMatchObject([{ state: 'suppressed', heldFor: 'seen_again' }])
})

test('a feed goes on at the cursor and behind the fence of 0.4.0', async () => {
  const state = await openFeed(ledger, 'brand', 1_000)
  expect(state).toMatchObject({ sequence: 3, generation: 1, isEnded: true, scan: { cursor: 'c' } })
})

test('a record of 0.4.0 tells the same history', async () => {
  const id = ledger.fingerprints.recordId('paste/x/dead')
  const record = await readRecord(ledger, id)
  expect(record).toMatchObject({
    uid: 'paste/x/dead',
    type: 'stealer_log',
    severity: 'high',
    sightings: [
      { feed: 'brand', severity: 'high', labels: { team: 'soc' }, decisions: [{ route: 'root' }] },
    ],
    items: [
      {
        id: 'e05083261432773df3242e44739a4bea2',
        sink: 'lake',
        destination: 'lake',
        state: 'dead',
        attempts: 1,
        history: [{ outcome: 'dead', reason: 'invalid', answer: 'HTTP 422', replica: 'r1' }],
      },
    ],
  })
  const payload = await readPayload(ledger, id)
  expect(payload?.event).toMatchObject({
    ...aThreatEvent({ uid: 'paste/x/dead' }),
    createdAtMs: expect.any(Number),
    matchedAtMs: expect.any(Number),
  })
})

test('what waited when 0.4.0 stopped arrives once: single, retried, sealed, grouped and replayed', async () => {
  const lake = aRehearsedSink('lake')
  const siem = aRehearsedSink('siem', { batch: { max: 9, waitMs: 1_000, maxBytes: 100_000 } })
  const soc = aRehearsedSink('soc', { type: 'slack' })
  const sinks = [lake, siem, soc]
  const rig = aGatheringRig({ redis: tests.redis, keys, ledgers: [ledger], sinks })
  const { letters } = await listDeadLetters(ledger, 'lake', { offset: 0, count: 9 })
  expect(letters.map(({ record }) => record.uid)).toEqual(['paste/x/dead'])
  await replayDeadLetter(ledger, letters[0]!.ref, undefined)
  rig.clock.aheadMs = 11_000
  expect(await rig.flush()).toBe(1)
  for (const sink of await readSinkNames(ledger)) {
    const due = await readDueRefs(ledger, sink, rig.clock.now(), { offset: 0, count: 9 })
    for (const ref of due) await rig.deliver(ref)
  }
  const uids = ({ received }: typeof lake): string[] =>
    received.flatMap(({ members }) => members.map(({ event }) => event.uid)).toSorted()
  expect(uids(lake)).toEqual(['credential/1', 'paste/x/dead', 'paste/x/queued', 'paste/x/retrying'])
  expect(uids(siem)).toEqual(['paste/x/batch1', 'paste/x/batch2'])
  expect(uids(soc)).toEqual(['paste/x/grouped'])
  const retried = lake.received.find(({ members }) => members[0]?.event.uid === 'paste/x/retrying')
  expect(retried).toMatchObject({ attempt: 2, mayBeRepeat: true })
  const { sinks: accounts } = await expectConservation(ledger)
  for (const name of ['lake', 'siem', 'soc']) expect(waitingIn(accounts[name])).toEqual({})
  await expectNothingStranded(ledger)
})
