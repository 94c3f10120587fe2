/** The ledger proves itself: what is planted behind its back is found and named, whatever runs meanwhile. */
import { describe, expect, test } from 'vitest'
import {
  tallyLater,
  tallyItem,
  type LedgerCheck,
  countDiscrepancies,
  isConsistent,
  counterError,
  type PendingTallies,
} from '../../../src/audit/ledger-check.ts'
import { deriveMessageId } from '../../../src/grouping/freeze.ts'
import { claimFlush } from '../../../src/grouping/timers.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { holdOrphan, replayDeadLetter, returnOrphans } from '../../../src/store/pending-items.ts'
import { type Item, readRecord } from '../../../src/store/records.ts'
import { beginAttempt, sealBatch, settleAttempt } from '../../support/attempts.ts'
import { aSlackRig, type SlackRig, uids } from '../../support/grouping.ts'
import {
  pastThisMillisecond,
  proofOf,
  redisForTests,
  routed,
  takeIn,
} from '../../support/ledger.ts'
import { until } from '../../support/until.ts'

const tests = redisForTests()

async function proofOfOne(book: AccountLedger): Promise<LedgerCheck> {
  return (await proofOf([book]))[0]!
}

async function aBookWith(
  count: number,
  options: { batchWaitMs?: number } = {},
): Promise<AccountLedger> {
  const book = await tests.book()
  const events = uids(count).map((one) => routed(one, ['soc']))
  await takeIn(book, events, options)
  return book
}

function refOf(book: AccountLedger, n: number, index = 0): string {
  return `i:${book.fingerprints.recordId(`paste/site/${n}`)}:${index}:soc`
}

/** Three events that wait in one group of Slack. */
async function aGroup(): Promise<{ rig: SlackRig; timer: string }> {
  const rig = await aSlackRig(tests)
  await takeIn(
    rig.ledger,
    uids(3).map((one) => rig.event(one)),
  )
  const [timer = ''] = await tests.redis.zrange(rig.ledger.key('timers'), '0', '-1')
  return { rig, timer }
}

async function settle(
  book: AccountLedger,
  ref: string,
  outcome: 'delivered' | 'dead',
): Promise<void> {
  await beginAttempt(book, ref, 't', 60_000)
  await settleAttempt(book, { ref, token: 't', replica: 'r' }, { outcome })
}

describe('counters', () => {
  test('that agree with the records are found whole, with their numbers', async () => {
    const book = await aBookWith(3)
    await settle(book, refOf(book, 0), 'delivered')
    const proof = await proofOfOne(book)
    expect(isConsistent(proof)).toBe(true)
    expect(proof).toMatchObject({ records: 3, differences: [], stranded: [], dangling: [] })
    expect(proof.accounting.sinks['soc']).toMatchObject({ created: 3, delivered: 1 })
    expect(countDiscrepancies([proof])).toEqual({ soc: 0 })
  })

  test('that drifted in a way in which they still add up differ from the records', async () => {
    const book = await aBookWith(3)
    await tests.redis.hincrby(book.key('counters'), 's|soc|pending|queued', -2)
    await tests.redis.hincrby(book.key('counters'), 's|soc|delivered', 2)
    await pastThisMillisecond(tests.redis) // what was made within it may count or not
    const proof = await proofOfOne(book)
    expect(proof.accounting.sinks['soc']?.unaccounted).toBe(0)
    expect(proof.differences).toEqual([{ sink: 'soc', counted: 1, found: 3 }])
    expect(countDiscrepancies([proof])).toEqual({ soc: 2 })
    expect(isConsistent(proof)).toBe(false)
  })

  test('whose item vanished with its record are off by it, and its place dangles', async () => {
    const book = await aBookWith(2)
    await tests.redis.del(book.key('rec', book.fingerprints.recordId('paste/site/1')))
    const { differences, dangling } = await proofOfOne(book)
    expect(differences).toEqual([{ sink: 'soc', counted: 2, found: 1 }])
    const ref = refOf(book, 1)
    expect(dangling).toEqual([
      { ref, sink: 'soc', place: 'due', why: 'gone' },
      { ref: ref.split(':')[1], sink: '', place: 'records', why: 'gone' },
    ])
  })

  test('of a feed that lost an event do not add up', async () => {
    const book = await aBookWith(2)
    await tests.redis.hincrby(book.key('counters'), 'f|brand|new', -1)
    const proof = await proofOfOne(book)
    expect(proof.accounting.feeds['brand']?.unaccounted).toBe(1)
    expect(isConsistent(proof)).toBe(false)
  })

  test('are compared as of the moment at which they were read', () => {
    const tallies: PendingTallies = new Map()
    const item = (state: string, createdAtMs: number, endedAtMs?: number): Item =>
      ({ sink: 'soc', state, createdAtMs, endedAtMs }) as unknown as Item
    tallyItem(tallies, item('queued', 90), 100)
    tallyItem(tallies, item('queued', 101), 100) // came later
    tallyItem(tallies, item('delivered', 80, 99), 100)
    tallyItem(tallies, item('delivered', 80, 101), 100) // ended later
    tallyItem(tallies, item('queued', 100), 100) // in that millisecond
    tallyLater(tallies, 100, 110)
    expect(tallies.get('soc')).toMatchObject({ least: 2, most: 3 })
    const off = [1, 2, 3, 5].map((counted) => counterError(counted, { least: 2, most: 3 }))
    expect(off).toEqual([-1, 0, 0, 2])
  })

  test('agree while the clock of Redis, which went back, has not caught up', async () => {
    const book = await aBookWith(3)
    await settle(book, refOf(book, 0), 'delivered')
    for (const n of [0, 1]) {
      const name = book.key('rec', book.fingerprints.recordId(`paste/site/${n}`))
      const record = JSON.parse((await tests.redis.get(name))!) as {
        i: [{ c: number; e?: number }]
      }
      const [item] = record.i
      if (item.e === undefined) item.c += 3_600_000
      else item.e += 3_600_000
      await tests.redis.set(name, JSON.stringify(record), 'KEEPTTL')
    }
    expect((await proofOfOne(book)).differences).toEqual([])
    await tests.redis.hincrby(book.key('counters'), 's|soc|pending|queued', -2)
    expect((await proofOfOne(book)).differences).toEqual([{ sink: 'soc', counted: 0, found: 2 }])
  })
})

describe('an item is stranded', () => {
  async function strandedIn(
    book: AccountLedger,
  ): Promise<[uid: string, state: string, lacks: string][]> {
    const { stranded } = await proofOfOne(book)
    return stranded
      .toSorted((a, b) => (a.uid < b.uid ? -1 : 1))
      .map(({ uid, state, lacks }) => [uid, state, lacks])
  }

  test('whose time is lost, whether it waits, retries or is being sent', async () => {
    const book = await aBookWith(3)
    await beginAttempt(book, refOf(book, 1), 't', 60_000)
    await beginAttempt(book, refOf(book, 2), 't', 60_000)
    const retry = { outcome: 'retry', inMs: 60_000 } as const
    await settleAttempt(book, { ref: refOf(book, 2), token: 't', replica: 'r' }, retry)
    expect(await strandedIn(book)).toEqual([])
    await tests.redis.del(book.key('due', 'soc'))
    expect(await strandedIn(book)).toEqual([
      ['paste/site/0', 'queued', 'due'],
      ['paste/site/1', 'sending', 'due'],
      ['paste/site/2', 'retrying', 'due'],
    ])
    expect(countDiscrepancies(await proofOf([book]))).toEqual({ soc: 3 })
  })

  test('that is held for its full event and has no end to its wait', async () => {
    const book = await tests.book()
    await takeIn(book, [routed({ uid: 'paste/site/0' }, ['soc'], true)])
    expect(await strandedIn(book)).toEqual([])
    await tests.redis.zrem(book.key('due', 'soc'), refOf(book, 0))
    expect(await strandedIn(book)).toEqual([['paste/site/0', 'held', 'due']])
  })

  test('that was collected for a batch that is not due', async () => {
    const book = await aBookWith(1, { batchWaitMs: 60_000 })
    expect(await strandedIn(book)).toEqual([])
    await tests.redis.zrem(book.key('due', 'soc'), 'c:soc')
    expect(await strandedIn(book)).toEqual([['paste/site/0', 'queued', 'due']])
  })

  test('whose sealed batch is gone, or is not due', async () => {
    const book = await aBookWith(2, { batchWaitMs: 60_000 })
    const refs = [refOf(book, 0), refOf(book, 1)]
    const ref = await sealBatch(book, { sink: 'soc', destination: 'soc', waitMs: 1 }, refs)
    expect(await strandedIn(book)).toEqual([])
    await tests.redis.zrem(book.key('due', 'soc'), ref ?? '')
    const both = (lacks: string) => [0, 1].map((n) => [`paste/site/${n}`, 'batch', lacks])
    expect(await strandedIn(book)).toEqual(both('message_due'))
    await tests.redis.del(book.key('batch', ref?.split(':')[1] ?? ''))
    expect(await strandedIn(book)).toEqual(both('message'))
  })

  test('whose collection does not list it, or has no timer', async () => {
    const { rig, timer } = await aGroup()
    const { ledger: book } = rig
    expect(await strandedIn(book)).toEqual([])
    await tests.redis.zrem(book.key('collect', timer.split(':')[1] ?? ''), refOf(book, 1))
    expect(await strandedIn(book)).toEqual([['paste/site/1', 'group', 'collection']])
    await tests.redis.zrem(book.key('timers'), timer)
    const lacks = (await strandedIn(book)).map(([, , lack]) => lack)
    expect(lacks).toEqual(['timer', 'collection', 'timer'])
  })

  test('of a removed sink that nobody counts among its orphans', async () => {
    const book = await aBookWith(1)
    await holdOrphan(book, refOf(book, 0))
    expect(await strandedIn(book)).toEqual([])
    await tests.redis.del(book.key('orphans', 'soc'))
    const about = { ref: refOf(book, 0), uid: 'paste/site/0', sink: 'soc' }
    expect((await proofOfOne(book)).stranded).toEqual([
      { ...about, state: 'held', heldFor: 'orphaned', lacks: 'orphans' },
    ])
  })

  test('whose summary lost its head; while it is made, in whichever book, it is not', async () => {
    const keys = tests.keys()
    const first = await tests.book({ keys })
    const second = await tests.book({ keys, account: 'other' })
    const rig = await aSlackRig(tests, { keys, ledgers: [first, second] })
    await takeIn(first, [rig.event({ uid: 'a/b/1' })])
    await takeIn(second, [rig.event({ uid: 'a/b/2' })])
    const [timer = ''] = await tests.redis.zrange(first.key('timers'), '0', '-1')
    const turn = await claimFlush(first, timer, Date.now() + 60_000)
    const messageId = deriveMessageId(turn!)
    const id = second.fingerprints.recordId('a/b/2')
    const sealing = { lead: turn!.id, bid: messageId, retention: second.retention }
    // as a digest of two accounts is sealed: the second one first
    const member = { r: `i:${id}:0:soc`, a: 'keep', o: 0 }
    const opened = await tests.redis.hget(second.key('gather', turn!.id), 'opened')
    const ask = { ...sealing, opened, seq: 0, members: [member] }
    await second.run('freeze-members', JSON.stringify(ask))
    const found = async (books: AccountLedger[]): Promise<string[]> =>
      (await proofOf(books)).flatMap(({ stranded }) => stranded.map(({ lacks }) => lacks))
    expect(await found([first, second])).toEqual([])
    expect(await found([second])).toEqual(['message'])
    await tests.redis.zrem(first.key('timers'), timer)
    expect(await found([first, second])).toEqual(['timer', 'message'])
  })
})

describe('a reference dangles', () => {
  async function danglingIn(book: AccountLedger): Promise<string[]> {
    const { dangling } = await proofOfOne(book)
    return dangling.map(({ place, why, ref }) => `${place} ${why} ${ref}`).toSorted()
  }

  test('where what it names is gone, or does not belong there', async () => {
    const book = await aBookWith(4)
    await settle(book, refOf(book, 0), 'delivered')
    await settle(book, refOf(book, 1), 'dead')
    expect(await danglingIn(book)).toEqual([])
    const { redis } = tests
    await redis.zadd(book.key('due', 'soc'), 1, refOf(book, 0), 2, 'b:gone:soc', 3, 'c:soc')
    await redis.sadd(book.key('orphans', 'soc'), refOf(book, 2))
    await redis.zadd(book.key('dead', 'soc'), Date.now(), refOf(book, 3))
    await redis.zadd(book.key('timers'), 1, 'c:0123:soc')
    expect(await danglingIn(book)).toEqual(
      [
        `due other_state ${refOf(book, 0)}`,
        'due gone b:gone:soc',
        'due gone c:soc',
        `orphans other_state ${refOf(book, 2)}`,
        `dead other_state ${refOf(book, 3)}`,
        'timers gone c:0123:soc',
      ].toSorted(),
    )
  })

  /** Items for `soc`, by what became of them. */
  async function inEveryState(): Promise<{ ledger: AccountLedger; refs: Map<string, string> }> {
    const rig = await aSlackRig(tests)
    const { ledger: book } = rig
    const refOfOne = (name: string): string =>
      `i:${book.fingerprints.recordId(`a/b/${name}`)}:0:soc`
    const alone = ['queued', 'retrying', 'delivered', 'dead', 'orphaned']
    const inBatch = ['collected', 'batch']
    const events = alone.map((name) => routed({ uid: `a/b/${name}` }))
    const detailed = { ...rig.event({ uid: 'a/b/detail' }), wantsDetail: true }
    await takeIn(book, [...events, detailed, rig.event({ uid: 'a/b/group' })])
    const batched = inBatch.map((name) => routed({ uid: `a/b/${name}` }))
    await takeIn(book, batched, { batchWaitMs: 60_000 })
    await sealBatch(book, { sink: 'soc', destination: 'soc' }, [refOfOne('batch')])
    await settle(book, refOfOne('delivered'), 'delivered')
    await settle(book, refOfOne('dead'), 'dead')
    await beginAttempt(book, refOfOne('retrying'), 't', 60_000)
    const attempt = { ref: refOfOne('retrying'), token: 't', replica: 'r' }
    await settleAttempt(book, attempt, { outcome: 'retry', inMs: 60_000 })
    await holdOrphan(book, refOfOne('orphaned'))
    const names = [...alone, ...inBatch, 'detail', 'group']
    return { ledger: book, refs: new Map(names.map((name) => [name, refOfOne(name)])) }
  }

  test.each([
    ['due', ['batch', 'dead', 'delivered', 'group', 'orphaned']],
    [
      'orphans',
      ['batch', 'collected', 'dead', 'delivered', 'detail', 'group', 'queued', 'retrying'],
    ],
    [
      'dead',
      ['batch', 'collected', 'delivered', 'detail', 'group', 'orphaned', 'queued', 'retrying'],
    ],
    ['collect', ['dead', 'delivered', 'detail', 'group']],
  ])(
    'where %s has an item that something else moves, or nothing any more',
    async (place, wrong) => {
      const { ledger: book, refs } = await inEveryState()
      expect(await danglingIn(book)).toEqual([])
      for (const [name, ref] of refs) {
        const { firstSeenMs } = (await readRecord(book, book.fingerprints.recordId(`a/b/${name}`)))!
        if (place === 'orphans') await tests.redis.sadd(book.key(place, 'soc'), ref)
        else await tests.redis.zadd(book.key(place, 'soc'), firstSeenMs, ref)
      }
      expect(await danglingIn(book)).toEqual(
        wrong.map((name) => `${place} other_state ${refs.get(name)}`).toSorted(),
      )
    },
  )

  test.each(['due', 'orphans'])(
    'but not what left %s after it was read there, and before it was looked at',
    async (place) => {
      const { ledger: book, refs } = await inEveryState()
      expect(await book.run('find-dangling', place, 'soc', refs.get('delivered')!)).toEqual([])
    },
  )

  test('but not a letter whose history has expired', async () => {
    const book = await aBookWith(1)
    await settle(book, refOf(book, 0), 'dead')
    const id = book.fingerprints.recordId('paste/site/0')
    await tests.redis.del(book.key('rec', id))
    await tests.redis.zadd(book.key('records'), Date.now() - book.retention.history, id)
    expect(await danglingIn(book)).toEqual([])
  })

  test('nor one whose event came again after that', async () => {
    const book = await aBookWith(1)
    await settle(book, refOf(book, 0), 'dead')
    await tests.redis.del(book.key('rec', book.fingerprints.recordId('paste/site/0')))
    const [, diedAt] = await tests.redis.zrange(book.key('dead', 'soc'), '0', '0', 'WITHSCORES')
    await until('the clock has moved on', () => Date.now() > Number(diedAt))
    await takeIn(book, [routed({ uid: 'paste/site/0' }, ['oncall'])], { feed: 'second' })
    expect(await danglingIn(book)).toEqual([])
  })
})

test('what ended and was replayed while the first scan went on is no difference', async () => {
  const book = await aBookWith(2)
  let calls = 0
  const replaying = new Proxy(tests.redis, {
    get(target, name) {
      const own = Reflect.get(target, name, target) as (...args: unknown[]) => Promise<unknown>
      if (name !== 'mget') return typeof own === 'function' ? own.bind(target) : own
      return async (names: string[]) => {
        calls += 1
        if (calls === 1) {
          await settle(book, refOf(book, 0), 'dead')
          await replayDeadLetter(book, refOf(book, 0), undefined)
        }
        return target.mget(names)
      }
    },
  })
  const proof = await proofOfOne({ ...book, redis: replaying })
  expect(proof.differences).toEqual([])
  expect(calls).toBe(2) // the first scan differed
})

test('an item that was accepted after all leaves the group in which it waited', async () => {
  const rig = await aSlackRig(tests)
  const { ledger: book } = rig
  await takeIn(book, [rig.event({ uid: 'paste/site/0' }, { grouping: { waitMs: 0 } })])
  await beginAttempt(book, refOf(book, 0), 't', 60_000)
  await holdOrphan(book, refOf(book, 0))
  const place = rig.event({ uid: 'paste/site/1' }).items[0]!.group!
  await returnOrphans(book, { sink: 'soc', batchWait: false, groups: { soc: place } }, 10)
  const late = { ref: refOf(book, 0), token: 't', replica: 'r' }
  await settleAttempt(book, late, { outcome: 'delivered' })
  expect(await proofOfOne(book)).toMatchObject({ stranded: [], dangling: [], differences: [] })
  rig.clock.aheadMs += 400_000
  await rig.flush()
  rig.clock.aheadMs += 400_000
  await rig.flush()
  expect(await tests.redis.zcard(book.key('timers'))).toBe(0)
})
