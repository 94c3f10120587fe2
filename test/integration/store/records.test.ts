/** What the ledger tells of one event afterwards: where it was seen, where it went, and how that ended. */
import { expect, test } from 'vitest'
import { beginAttempt, settleAttempt, sealBatch } from '../../support/attempts.ts'
import { itemId } from '../../../src/store/account-ledger.ts'
import { findDeliveryItems } from '../../../src/store/deliveries.ts'
import {
  deliveryIdPattern,
  readItems,
  readPayloads,
  readRecord,
  scanRecords,
} from '../../../src/store/records.ts'
import { redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()
const uid = 'a/b/1'
const lately: unknown = expect.toSatisfy(
  (ms: number) => Number.isInteger(ms) && Math.abs(Date.now() - ms) < 60_000,
)
const decisions = [{ route: 'root', path: ['root'], why: [] }]

function item(severity: string, destination: string, rest: object): object {
  return {
    id: itemId('main', uid, severity, destination),
    sink: destination.split(':')[0],
    destination,
    severity,
    routes: ['root'],
    sighting: 0,
    state: 'queued',
    heldFor: undefined,
    rule: undefined,
    groupId: undefined,
    messageId: undefined,
    raisedFrom: undefined,
    atMs: undefined,
    attempts: 0,
    repeatRisks: 0,
    replays: 0,
    past: [],
    createdAtMs: lately,
    endedAtMs: undefined,
    history: [],
    ...rest,
  }
}

test('the history of an event that was raised, tried, held and shadowed is whole', async () => {
  const ledger = await tests.ledger()
  const recordId = ledger.fingerprints.recordId(uid)
  const shadowed = routed({ uid, severity: 'low' }, ['soc', 'lake'])
  shadowed.items[1]!.isShadow = true
  await takeIn(ledger, [shadowed], { labels: { team: 'a' } })
  const ref = `i:${recordId}:0:soc`
  await beginAttempt(ledger, ref, 't1', 30_000)
  const lost = { outcome: 'retry', inMs: 0, counts: true, answerLost: true } as const
  const attempt = { ref, token: 't1', replica: 'r1' }
  await settleAttempt(ledger, attempt, { ...lost, reason: 'timeout', answer: 'none' })
  const raised = routed({ uid, severity: 'high', remediatedAtMs: 5 }, ['soc', 'siem'], true)
  const unread = {
    ...raised,
    title: 'Stealer log: joe',
    event: { ...raised.event, unread: ['tags'] },
  }
  await takeIn(ledger, [unread], { feed: 'second', labels: { team: 'b' } })
  await beginAttempt(ledger, ref, 't2', 30_000)
  await settleAttempt(ledger, { ...attempt, token: 't2' }, { outcome: 'delivered', answer: '204' })

  const record = await readRecord(ledger, recordId)
  expect(record).toEqual({
    account: 'main',
    recordId,
    uid,
    type: 'stealer_log',
    severity: 'high',
    title: 'Stealer log: joe',
    createdAtMs: raised.event.createdAtMs,
    matchedAtMs: raised.event.matchedAtMs,
    fetchedAtMs: lately,
    identifiers: ['example.com'],
    tags: [],
    firstSeenMs: lately,
    sightings: [
      {
        feed: 'brand',
        atMs: lately,
        visibleMs: raised.event.matchedAtMs,
        severity: 'low',
        labels: { team: 'a' },
        decisions,
      },
      {
        feed: 'second',
        atMs: lately,
        visibleMs: lately,
        severity: 'high',
        labels: { team: 'b' },
        decisions,
        unread: ['tags'],
      },
    ],
    items: [
      item('low', 'soc', {
        index: 0,
        state: 'delivered',
        attempts: 2,
        repeatRisks: 1,
        atMs: lately,
        endedAtMs: lately,
        history: [
          {
            number: 1,
            atMs: lately,
            outcome: 'retry',
            reason: 'timeout',
            answer: 'none',
            replica: 'r1',
          },
          {
            number: 2,
            atMs: lately,
            outcome: 'delivered',
            reason: undefined,
            answer: '204',
            replica: 'r1',
          },
        ],
      }),
      item('low', 'lake', {
        index: 1,
        state: 'suppressed',
        heldFor: 'shadow',
        endedAtMs: lately,
      }),
      ...['soc', 'siem'].map((to, at) =>
        item('high', to, {
          index: 2 + at,
          sighting: 1,
          state: 'held',
          heldFor: 'detail',
          raisedFrom: 'low',
          atMs: expect.toSatisfy((ms: number) => ms > Date.now()),
        }),
      ),
    ],
    closed: 'remediated',
    seenAgain: undefined,
    seenBefore: [],
  })
  const all = []
  for await (const one of scanRecords(ledger)) all.push(one)
  expect(all).toEqual([record])
  const refs = [`i:${recordId}:3:siem`, 'i:gone:0:soc', `i:${recordId}:9:soc`]
  expect(await readItems(ledger, refs)).toEqual([
    { ref: refs[0], record, item: record!.items[3], payload: expect.objectContaining({}) },
  ])
  const found = []
  for await (const one of findDeliveryItems([ledger], record!.items[2]!.id)) found.push(one)
  expect(found).toEqual([{ record, item: record!.items[2] }])
})

test('contents are read in the order in which they are asked for, and what has expired is left open', async () => {
  const ledger = await tests.ledger()
  const known = ['a/b/1', 'a/b/2', 'a/b/3']
  await takeIn(
    ledger,
    known.map((one) => routed({ uid: one })),
  )
  const ids = known.map((one) => ledger.fingerprints.recordId(one))
  await tests.redis.del(ledger.key('pay', ids[1]!))
  const contents = await readPayloads(ledger, ids.toReversed())
  expect(contents.map((one) => one?.event.uid)).toEqual(['a/b/3', undefined, 'a/b/1'])
  expect(await readPayloads(ledger, [])).toEqual([])
  expect(await readItems(ledger, [])).toEqual([])
  const items = await readItems(
    ledger,
    ids.toReversed().map((id) => `i:${id}:0:soc`),
  )
  expect(items.map(({ record, payload }) => [record.uid, payload?.event.uid])).toEqual([
    ['a/b/3', 'a/b/3'],
    ['a/b/2', undefined],
    ['a/b/1', 'a/b/1'],
  ])
})

test.each([
  [`e${'0a'.repeat(16)}`, true],
  [`b${'0a'.repeat(20)}`, true],
  [`e${'0a'.repeat(20)}`, false],
  [`b${'0a'.repeat(16)}`, false],
  [` e${'0a'.repeat(16)}`, false],
  [`b${'0a'.repeat(20)}0`, false],
  [`e${'0A'.repeat(16)}`, false],
  ['', false],
])('"%s" is the id of a delivery: %s', (id, isOne) => {
  expect(deliveryIdPattern.test(id)).toBe(isOne)
})

test('of a message each event is named once, though one came back more severe while they were read', async () => {
  const ledger = await tests.ledger()
  const event = { uid, severity: 'low' } as const
  await takeIn(ledger, [routed(event, ['siem'])], { batchWaitMs: 1_000 })
  const ref = `i:${ledger.fingerprints.recordId(uid)}:0:siem`
  const batch = await sealBatch(ledger, { sink: 'siem', destination: 'siem', waitMs: 1_000 }, [ref])
  await beginAttempt(ledger, batch!, 't1', 30_000)
  await settleAttempt(ledger, { ref: batch!, token: 't1', replica: 'r1' }, { outcome: 'delivered' })
  const found = []
  for await (const { item } of findDeliveryItems([ledger], `b${batch!.split(':')[1]}`)) {
    found.push(item.state)
    await takeIn(ledger, [routed({ ...event, severity: 'high' }, ['siem'])])
  }
  expect(found).toEqual(['delivered'])
})
