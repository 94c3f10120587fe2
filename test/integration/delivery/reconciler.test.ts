import { expect, test } from 'vitest'
import { beginAttempt, settleAttempt } from '../../../src/ledger/attempts.ts'
import type { Book } from '../../../src/ledger/book.ts'
import { peekCollection, sealBatch } from '../../../src/ledger/collecting.ts'
import { activateGeneration, confirmGeneration } from '../../../src/ledger/generation.ts'
import { readPayload, readRecord } from '../../../src/ledger/records.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import type { Sink } from '../../../src/sinks/sink.ts'
import {
  aDeliveryRig,
  clockAhead,
  type DeliveryRig,
  type DeliveryRigOptions,
} from '../../support/delivery.ts'
import { expectConservation, redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'

const tests = redisForTests()
const batch = { max: 10, waitMs: 500, maxBytes: 100_000 }

interface Rig extends DeliveryRig {
  book: Book
  keys: Keys
  /** The same ledger under another configuration. */
  with: (sinks: Sink[], options?: Partial<DeliveryRigOptions>) => DeliveryRig
  jobs: () => Promise<string[]>
  forgetJobs: () => Promise<void>
}

/** A minute ahead, so that whatever is pending is overdue. */
async function rig(...sinks: Sink[]): Promise<Rig> {
  const keys = tests.keys()
  const book = await tests.book({ keys })
  const shared = { redis: tests.redis, keys, book, clock: clockAhead(60_000) }
  const jobKeys = async (): Promise<string[]> =>
    (await tests.redis.keys(`${keys.queuePrefix}:sink-*`)).toSorted()
  return {
    book,
    keys,
    ...aDeliveryRig({ ...shared, sinks }),
    with: (others, options = {}) => aDeliveryRig({ ...shared, sinks: others, ...options }),
    async jobs() {
      const names = await jobKeys()
      return names.filter((name) => /:main\./.test(name)).map((name) => name.split(':main.')[1]!)
    },
    async forgetJobs() {
      const names = await jobKeys()
      if (names.length > 0) await tests.redis.del(names)
    },
  }
}

async function itemOf(book: Book, uid: string, index = 0) {
  return (await readRecord(book, book.digests.recordId(uid)))!.items[index]!
}

test('every job that was lost is made again: queued, retrying, interrupted, sealed, collected', async () => {
  const { book, reconciler, jobs, forgetJobs } = await rig(
    aRehearsedSink('soc'),
    aRehearsedSink('siem', { batch }),
  )
  for (const uid of ['a/b/1', 'a/b/2', 'a/b/3']) await takeIn(book, [routed({ uid }, ['soc'])])
  const ref = (uid: string): string => `i:${book.digests.recordId(uid)}:0:soc`
  await beginAttempt(book, ref('a/b/2'), 't', 1_000)
  await beginAttempt(book, ref('a/b/3'), 't', 1_000)
  const retry = { outcome: 'retry' as const, atMs: Date.now() }
  await settleAttempt(book, { ref: ref('a/b/3'), token: 't', replica: 'r' }, retry)
  await takeIn(book, [routed({ uid: 'a/b/4' }, ['siem'])], { batchWaitMs: 500 })
  const [collected] = await peekCollection(book, 'siem', 1)
  const sealed = await sealBatch(book, { sink: 'siem', destination: 'siem', waitMs: 500 }, [
    collected!.ref,
  ])
  await takeIn(book, [routed({ uid: 'a/b/5' }, ['siem'])], { batchWaitMs: 500 })

  for (let times = 0; times < 2; times += 1) {
    expect(await reconciler.reconcileOnce()).toMatchObject({ added: 5 })
    expect(await reconciler.reconcileOnce()).toMatchObject({ added: 0 })
    const expected = ['a/b/1', 'a/b/2', 'a/b/3'].map(ref).concat(sealed!, 'c:siem')
    expect(await jobs()).toEqual(expected.map((text) => text.replaceAll(':', '.')).toSorted())
    await forgetJobs()
  }
})

test('items that wait too long for their full event go without it, and their message will say so', async () => {
  const { book, reconciler, jobs } = await rig(
    aRehearsedSink('soc'),
    aRehearsedSink('siem', { batch }),
  )
  await takeIn(book, [routed({ uid: 'a/b/1' }, ['soc', 'siem'], true)])
  await reconciler.reconcileOnce()
  expect(await itemOf(book, 'a/b/1', 0)).toMatchObject({ state: 'queued' })
  expect(await itemOf(book, 'a/b/1', 1)).toMatchObject({ state: 'queued' })
  const recordId = book.digests.recordId('a/b/1')
  expect((await readPayload(book, recordId))?.detail).toBe('unavailable')
  expect(await jobs()).toEqual(['c.siem', `i.${recordId}.0.soc`])
  await expectConservation(book)
})

test('an item on its way singly still gets its job when its sink has begun to batch', async () => {
  const { book, with: under, jobs } = await rig()
  await takeIn(book, [routed({ uid: 'a/b/1' }, ['siem'])])
  await under([aRehearsedSink('siem', { batch })]).reconciler.reconcileOnce()
  expect(await jobs()).toEqual([`i.${book.digests.recordId('a/b/1')}.0.siem`])
})

test('a long backlog hides nothing behind it', async () => {
  const { book, reconciler, jobs } = await rig(aRehearsedSink('soc'))
  const events = Array.from({ length: 1_203 }, (_, i) => routed({ uid: `a/b/${i}` }, ['soc']))
  await takeIn(book, events)
  for (let pass = 0; pass < 3; pass += 1) await reconciler.reconcileOnce()
  expect(await jobs()).toHaveLength(1_203)
})

test('of two configurations only the active one holds or takes back: nothing goes to and fro', async () => {
  const { book, with: under } = await rig()
  await takeIn(book, [routed({ uid: 'a/b/1' }, ['soc'])])
  const active = under([])
  const older = under([aRehearsedSink('soc')], { confirmGeneration: () => Promise.resolve(false) })
  expect(await active.reconciler.reconcileOnce()).toMatchObject({
    orphaned: 1,
    unknownSinks: ['soc'],
  })
  expect(await older.reconciler.reconcileOnce()).toMatchObject({ returned: 0 })
  expect(await active.reconciler.reconcileOnce()).toMatchObject({ orphaned: 0 })
  expect(await itemOf(book, 'a/b/1')).toMatchObject({ state: 'held', heldFor: 'orphaned' })
  const again = under([aRehearsedSink('soc')])
  expect(await again.reconciler.reconcileOnce()).toMatchObject({ returned: 1 })
  expect(await itemOf(book, 'a/b/1')).toMatchObject({ state: 'queued' })
  await expectConservation(book)
})

test('the configuration started last is active; one that nobody confirms any more gives way', async () => {
  const keys = tests.keys()
  const confirm = (hash: string, patienceMs?: number) =>
    confirmGeneration(tests.redis, keys, hash, patienceMs)
  expect(await activateGeneration(tests.redis, keys, 'one')).toBe(1)
  expect(await activateGeneration(tests.redis, keys, 'one')).toBe(1)
  expect(await activateGeneration(tests.redis, keys, 'two')).toBe(2)
  expect(await confirm('one')).toBeUndefined()
  expect(await confirm('two')).toBe(2)
  expect(await confirm('one', -1)).toBe(3)
  expect(await confirm('two')).toBeUndefined()
})
