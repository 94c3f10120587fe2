/** The ledger proves itself: what is planted behind its back is found and named, whatever runs meanwhile. */
import { describe, expect, test } from 'vitest'
import { type LedgerCheck, isConsistent } from '../../../src/operator/audit/ledger-check.ts'
import { deriveMessageId } from '../../../src/grouping/freeze.ts'
import { claimFlush } from '../../../src/grouping/timers.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { groupItems } from '../../../src/store/pending-items.ts'
import { replayDeadLetter } from '../../support/acts.ts'
import { beginAttempt, sealBatch, settleAttempt } from '../../support/attempts.ts'
import { aSlackRig, type SlackRig, uids } from '../../support/grouping.ts'
import {
  pastThisMillisecond,
  proofOf,
  redisForTests,
  routed,
  takeIn,
} from '../../support/ledger.ts'

const tests = redisForTests()

async function proofOfOne(ledger: AccountLedger): Promise<LedgerCheck> {
  return (await proofOf([ledger]))[0]!
}

async function aLedgerWith(
  count: number,
  options: { batchWaitMs?: number } = {},
): Promise<AccountLedger> {
  const ledger = await tests.ledger()
  const events = uids(count).map((one) => routed(one, ['soc']))
  await takeIn(ledger, events, options)
  return ledger
}

function refOf(ledger: AccountLedger, n: number, index = 0): string {
  return `i:${ledger.fingerprints.recordId(`paste/site/${n}`)}:${index}:soc`
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
  ledger: AccountLedger,
  ref: string,
  outcome: 'delivered' | 'dead',
): Promise<void> {
  await beginAttempt(ledger, ref, 't', 60_000)
  await settleAttempt(ledger, { ref, token: 't', replica: 'r' }, { outcome })
}

describe('counters', () => {
  test('that agree with the records are found whole, with their numbers', async () => {
    const ledger = await aLedgerWith(3)
    await settle(ledger, refOf(ledger, 0), 'delivered')
    const proof = await proofOfOne(ledger)
    expect(isConsistent(proof)).toBe(true)
    expect(proof).toMatchObject({ records: 3, differences: [], stranded: [], misfiled: [] })
    expect(proof.accounting.sinks['soc']).toMatchObject({ created: 3, delivered: 1 })
  })

  test('that drifted in a way in which they still add up differ from the records', async () => {
    const ledger = await aLedgerWith(3)
    await tests.redis.hincrby(ledger.key('counters'), 's|soc|pending|queued', -2)
    await tests.redis.hincrby(ledger.key('counters'), 's|soc|delivered', 2)
    await pastThisMillisecond(tests.redis) // what was made within it may count or not
    const proof = await proofOfOne(ledger)
    expect(proof.accounting.sinks['soc']?.unaccounted).toBe(0)
    expect(proof.differences).toEqual([{ sink: 'soc', counted: 1, found: 3 }])
    expect(isConsistent(proof)).toBe(false)
  })

  test('whose item vanished with its record are off by it, and its place in the index is found', async () => {
    const ledger = await aLedgerWith(2)
    const recordId = ledger.fingerprints.recordId('paste/site/1')
    await tests.redis.del(ledger.key('rec', recordId))
    const { differences, misfiled } = await proofOfOne(ledger)
    expect(differences).toEqual([{ sink: 'soc', counted: 2, found: 1 }])
    expect(misfiled).toEqual([{ recordId, why: 'gone' }])
  })

  test('of a feed that lost an event do not add up', async () => {
    const ledger = await aLedgerWith(2)
    await tests.redis.hincrby(ledger.key('counters'), 'f|brand|new', -1)
    const proof = await proofOfOne(ledger)
    expect(proof.accounting.feeds['brand']?.unaccounted).toBe(1)
    expect(isConsistent(proof)).toBe(false)
  })
})

describe('an item is stranded', () => {
  async function strandedIn(
    ledger: AccountLedger,
  ): Promise<[uid: string, state: string, lacks: string][]> {
    const { stranded } = await proofOfOne(ledger)
    return stranded
      .toSorted((a, b) => (a.uid < b.uid ? -1 : 1))
      .map(({ uid, state, lacks }) => [uid, state, lacks])
  }

  test('whose time is lost, whether it waits, retries or is being sent', async () => {
    const ledger = await aLedgerWith(3)
    await beginAttempt(ledger, refOf(ledger, 1), 't', 60_000)
    await beginAttempt(ledger, refOf(ledger, 2), 't', 60_000)
    const retry = { outcome: 'retry', inMs: 60_000 } as const
    await settleAttempt(ledger, { ref: refOf(ledger, 2), token: 't', replica: 'r' }, retry)
    expect(await strandedIn(ledger)).toEqual([])
    await tests.redis.del(ledger.key('due', 'soc'))
    expect(await strandedIn(ledger)).toEqual([
      ['paste/site/0', 'queued', 'due'],
      ['paste/site/1', 'sending', 'due'],
      ['paste/site/2', 'retrying', 'due'],
    ])
  })

  test('that is held for its full event and has no end to its wait', async () => {
    const ledger = await tests.ledger()
    await takeIn(ledger, [routed({ uid: 'paste/site/0' }, ['soc'], true)])
    expect(await strandedIn(ledger)).toEqual([])
    await tests.redis.zrem(ledger.key('due', 'soc'), refOf(ledger, 0))
    expect(await strandedIn(ledger)).toEqual([['paste/site/0', 'held', 'due']])
  })

  test('that was collected for a batch that is not due', async () => {
    const ledger = await aLedgerWith(1, { batchWaitMs: 60_000 })
    expect(await strandedIn(ledger)).toEqual([])
    await tests.redis.zrem(ledger.key('due', 'soc'), 'c:soc')
    expect(await strandedIn(ledger)).toEqual([['paste/site/0', 'queued', 'due']])
  })

  test('whose sealed batch is gone, or is not due', async () => {
    const ledger = await aLedgerWith(2, { batchWaitMs: 60_000 })
    const refs = [refOf(ledger, 0), refOf(ledger, 1)]
    const ref = await sealBatch(ledger, { sink: 'soc', destination: 'soc', waitMs: 1 }, refs)
    expect(await strandedIn(ledger)).toEqual([])
    await tests.redis.zrem(ledger.key('due', 'soc'), ref ?? '')
    const both = (lacks: string) => [0, 1].map((n) => [`paste/site/${n}`, 'batch', lacks])
    expect(await strandedIn(ledger)).toEqual(both('message_due'))
    await tests.redis.del(ledger.key('batch', ref?.split(':')[1] ?? ''))
    expect(await strandedIn(ledger)).toEqual(both('message'))
  })

  test('whose collection does not list it, or has no timer', async () => {
    const { rig, timer } = await aGroup()
    const { ledger } = rig
    expect(await strandedIn(ledger)).toEqual([])
    await tests.redis.zrem(ledger.key('collect', timer.split(':')[1] ?? ''), refOf(ledger, 1))
    expect(await strandedIn(ledger)).toEqual([['paste/site/1', 'group', 'collection']])
    await tests.redis.zrem(ledger.key('timers'), timer)
    const lacks = (await strandedIn(ledger)).map(([, , lack]) => lack)
    expect(lacks).toEqual(['timer', 'collection', 'timer'])
  })

  test('whose summary lost its head; while it is made, in whichever ledger, it is not', async () => {
    const keys = tests.keys()
    const first = await tests.ledger({ keys })
    const second = await tests.ledger({ keys, account: 'other' })
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
    const opened = await tests.redis.hget(second.key('group', turn!.id), 'opened')
    const ask = { ...sealing, opened, seq: 0, members: [member] }
    await second.run('freeze-members', JSON.stringify(ask))
    const found = async (ledgers: AccountLedger[]): Promise<string[]> =>
      (await proofOf(ledgers)).flatMap(({ stranded }) => stranded.map(({ lacks }) => lacks))
    expect(await found([first, second])).toEqual([])
    expect(await found([second])).toEqual(['message'])
    await tests.redis.zrem(first.key('timers'), timer)
    expect(await found([first, second])).toEqual(['timer', 'message'])
  })
})

test('what ended and was replayed while the first scan went on is no difference', async () => {
  const ledger = await aLedgerWith(2)
  let calls = 0
  const replaying = new Proxy(tests.redis, {
    get(target, name) {
      const own = Reflect.get(target, name, target) as (...args: unknown[]) => Promise<unknown>
      if (name !== 'mget') return typeof own === 'function' ? own.bind(target) : own
      return async (names: string[]) => {
        calls += 1
        if (calls === 1) {
          await pastThisMillisecond(tests.redis) // what ended within it may count or not
          await settle(ledger, refOf(ledger, 0), 'dead')
          await replayDeadLetter(ledger, refOf(ledger, 0), undefined)
        }
        return target.mget(names)
      }
    },
  })
  const proof = await proofOfOne({ ...ledger, redis: replaying })
  expect(proof.differences).toEqual([])
  expect(calls).toBe(2) // the first scan differed
})

test('an item that was accepted after all leaves the group in which it waited', async () => {
  const rig = await aSlackRig(tests)
  const { ledger } = rig
  await takeIn(ledger, [rig.event({ uid: 'paste/site/0' }, { grouping: { waitMs: 0 } })])
  const ref = refOf(ledger, 0)
  await beginAttempt(ledger, ref, 't', 60_000)
  await beginAttempt(ledger, ref, 't2', 60_000)
  await settleAttempt(
    ledger,
    { ref, token: 't2', replica: 'r' },
    { outcome: 'retry', inMs: 60_000 },
  )
  const place = rig.event({ uid: 'paste/site/1' }).items[0]!.group!
  expect(await groupItems(ledger, [ref], { soc: place })).toBe(1)
  const late = { ref, token: 't', replica: 'r' }
  await settleAttempt(ledger, late, { outcome: 'delivered' })
  expect(await proofOfOne(ledger)).toMatchObject({ stranded: [], misfiled: [], differences: [] })
  rig.clock.aheadMs += 400_000
  await rig.flush()
  rig.clock.aheadMs += 400_000
  await rig.flush()
  expect(await tests.redis.zcard(ledger.key('timers'))).toBe(0)
})
