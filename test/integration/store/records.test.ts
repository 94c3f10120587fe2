/** What the ledger tells of one event afterwards: where it was seen, where it went, and how that ended. */
import { expect, test } from 'vitest'
import { beginAttempt, settleAttempt, sealBatch } from '../../support/attempts.ts'
import { findDeliveryItems } from '../../../src/store/deliveries.ts'
import {
  deliveryIdPattern,
  readItems,
  readPayloads,
  readRecord,
} from '../../../src/store/records.ts'
import { redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()
const uid = 'a/b/1'

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

test('when an event was created is known although its content has expired', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid, createdAtMs: 7 })])
  const recordId = ledger.fingerprints.recordId(uid)
  await tests.redis.del(ledger.key('pay', recordId))
  expect(await readRecord(ledger, recordId)).toMatchObject({ createdAtMs: 7 })
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
