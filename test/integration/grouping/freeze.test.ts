import { expect, test } from 'vitest'
import {
  closeMessage,
  deriveMessageId,
  readFrozenRefs,
  freezeMembers,
  settleMembers,
  unfreezeMessage,
} from '../../../src/grouping/freeze.ts'
import { digestGroupId } from '../../../src/grouping/placement.ts'
import {
  claimFlush,
  peekFlush,
  readDueTimers,
  readAllMemberRefs,
  readFence,
} from '../../../src/grouping/timers.ts'
import { readDueRefs } from '../../support/due-refs.ts'
import { readRecord } from '../../../src/store/records.ts'
import { beginAttempt, claimRef } from '../../support/attempts.ts'
import { aThreatEvent } from '../../support/events.ts'
import { aDigestRig } from '../../support/digest-rig.ts'
import { aSlackRig, dieAt, type SlackRig, uids } from '../../support/grouping.ts'
import { expectConservation, redisForTests, takeIn, waitingIn } from '../../support/ledger.ts'

const given = redisForTests()

interface Rig extends SlackRig {
  show(uid: string, severity?: string): Promise<string>
}

async function aRig(): Promise<Rig> {
  const rig = await aSlackRig(given)
  return {
    ...rig,
    async show(uid: string, severity = 'high') {
      await takeIn(rig.ledger, [rig.event({ uid, severity })])
      return `i:${rig.ledger.fingerprints.recordId(uid)}:0:soc`
    },
  }
}

function going(ref: string) {
  return { ref, destination: 'soc', verdict: { act: 'send' } as const, order: 0 }
}

test('a message is not closed over members that it has not counted', async () => {
  const rig = await aRig()
  const refs = [await rig.show('a/b/1'), await rig.show('a/b/2')]
  rig.clock.aheadMs = 11_000
  const [timer] = await readDueTimers(rig.ledger, { nowMs: rig.clock.now(), count: 10 })
  const turn = (await claimFlush(rig.ledger, timer!, rig.clock.now()))!
  const messageId = deriveMessageId(turn)
  await freezeMembers(
    rig.ledger,
    { leadId: turn.id, messageId, fence: turn.fence },
    refs.map(going),
  )
  const closing = { messageId, flushes: [{ flush: turn, nextMs: undefined }] }
  expect(await closeMessage(rig.ledger, { ...closing, members: 1 })).toEqual({ status: 'again' })
  expect(await closeMessage(rig.ledger, { ...closing, members: 2 })).toMatchObject({
    status: 'closed',
  })
})

test('a critical event that comes while its group is being sealed does not wait for the interval', async () => {
  const rig = await aRig()
  await rig.show('a/b/1')
  rig.clock.aheadMs = 11_000
  const { run } = rig.ledger
  Object.assign(rig.ledger, {
    run: async (script: string, ...args: (string | number)[]) => {
      if (script === 'close-flush') {
        Object.assign(rig.ledger, { run })
        await rig.show('a/b/worst', 'critical')
      }
      return run(script, ...args)
    },
  })
  expect(await rig.flush()).toBe(1)
  rig.clock.aheadMs = 60_000
  expect(await rig.flush()).toBe(1)
  expect(rig.soc.received[1]!.members[0]!.event.uid).toBe('a/b/worst')
})

test('what comes without its content any more is judged by the source that its uid names', async () => {
  const judged: unknown[] = []
  const rig = await aSlackRig(given, {
    gate(_uid, { event }) {
      judged.push(event.event)
      return { act: 'suppress', reason: 'silence', rule: 's1' }
    },
  })
  await takeIn(rig.ledger, [rig.event({ uid: 'leak/forum_x/1', type: 'leak', severity: 'low' })])
  await rig.ledger.redis.del(
    rig.ledger.key('pay', rig.ledger.fingerprints.recordId('leak/forum_x/1')),
  )
  rig.clock.aheadMs = 11_000
  expect(await rig.flush()).toBe(0)
  expect(judged).toEqual([
    aThreatEvent({
      uid: 'leak/forum_x/1',
      type: 'leak',
      source: 'forum_x',
      severity: 'low',
      createdAtMs: null,
      matchedAtMs: null,
      url: null,
      identifiers: [],
      highlights: {},
    }),
  ])
})

test('a message that is being sent is taken apart only once its attempt has died', async () => {
  const rig = await aRig()
  const ref = await rig.show('a/b/1')
  rig.clock.aheadMs = 11_000
  const [message = ''] = await rig.seal()
  await beginAttempt(rig.ledger, message, 'token', 1_000)
  const options = { ledgers: [rig.ledger], batchWaitMs: undefined, groups: {} }
  expect(await unfreezeMessage(rig.ledger, message, { ...options, staleMs: 60_000 })).toBe('busy')
  expect(
    (await readRecord(rig.ledger, rig.ledger.fingerprints.recordId('a/b/1')))?.items,
  ).toMatchObject([{ state: 'batch' }])
  expect(await unfreezeMessage(rig.ledger, message, { ...options, staleMs: 0 })).toBe('open')
  expect(await readDueRefs(rig.ledger, 'soc', Date.now(), { offset: 0, count: 9 })).toEqual([ref])
  const freed = await readRecord(rig.ledger, rig.ledger.fingerprints.recordId('a/b/1'))
  const interrupted = { number: 1, outcome: 'answer lost', reason: 'interrupted' }
  expect(freed?.items).toMatchObject([{ state: 'queued', history: [interrupted] }])
  await expectConservation(rig.ledger)
})

test('a summary that is undone gives its members back in their order, and none of them says that it may be a repeat', async () => {
  const rig = await aRig()
  const refs = [await rig.show('a/b/1'), await rig.show('a/b/2'), await rig.show('a/b/3')]
  rig.clock.aheadMs = 11_000
  const [message = ''] = await rig.seal()
  expect(await claimRef(rig.ledger, message, 'r')).toMatchObject({ total: 3 })
  const undoOne = () =>
    rig.ledger.run(
      'unfreeze-message',
      JSON.stringify({ ref: message, stale: 0, max: 1, places: {} }),
    )
  const sealed = (): Promise<string[]> => readFrozenRefs(rig.ledger, message.split(':')[1]!)
  const order = await sealed()
  expect(order.toSorted()).toEqual(refs.toSorted())
  expect(JSON.parse(String(await undoOne()))).toMatchObject({ status: 'going', left: 2 })
  expect(await sealed()).toEqual(order.slice(1))
  await undoOne()
  await undoOne()
  const back = await readRecord(rig.ledger, rig.ledger.fingerprints.recordId('a/b/1'))
  expect(back!.items[0]).toMatchObject({ state: 'queued', repeatRisks: 0 })
})

test('a turn is claimed by one replica at a time, from the very millisecond on at which it is due', async () => {
  const rig = await aRig()
  await rig.show('a/b/1')
  const [timer = '', due] = await rig.ledger.redis.zrange(
    rig.ledger.key('timers'),
    '0',
    '-1',
    'WITHSCORES',
  )
  const dueMs = Number(due)
  expect(await claimFlush(rig.ledger, timer, dueMs - 1)).toBeUndefined()
  expect(await claimFlush(rig.ledger, timer, dueMs)).toMatchObject({ timer, dueAtMs: dueMs })
  expect(await claimFlush(rig.ledger, timer, dueMs)).toBeUndefined()
})

test('the window of an account ends with a digest that another one leads, whatever it had frozen as the lead', async () => {
  const { ledger, ...rig } = await aSlackRig(given)
  await takeIn(ledger, [rig.event({ uid: 'x/y/1' })])
  const nowMs = rig.clock.now() + 11_000
  const [timer = ''] = await readDueTimers(ledger, { nowMs, count: 1 })
  const flush = (await claimFlush(ledger, timer, nowMs))!
  const own = { messageId: deriveMessageId(flush), leadId: flush.id, fence: flush.fence }
  await freezeMembers(ledger, own, (await readAllMemberRefs(flush)).map(going))
  const closing = {
    messageId: 'of-the-other',
    members: 0,
    flushes: [{ flush, nextMs: nowMs + 60_000 }],
    window: { toMs: nowMs, note: '{}' },
  }
  expect(await closeMessage(ledger, closing)).toEqual({ status: 'closed', ref: '' })
  const seq = Number(flush.fence.seq) + 1
  expect(await readFence(ledger, flush.id)).toEqual({ ...flush.fence, seq })
})

test.each(['settled', 'undone'])(
  'a message of hundreds is %s three hundred members at a time: Redis answers others in between',
  async (how) => {
    const { ledger } = await aRig()
    const sealed = ledger.key('members', 'm1')
    const about = JSON.stringify({ accounts: [ledger.account] })
    const message = { k: 'soc', kind: 'group', n: 0, st: 'queued', about }
    await ledger.redis.set(ledger.key('batch', 'm1'), JSON.stringify(message))
    const refs = Array.from({ length: 310 }, (_none, n) => [n, `i:${n}:0:soc`] as const)
    await ledger.redis.zadd(sealed, ...refs.flat())
    const left: number[] = []
    const noteLeft = async () => void left.push(await ledger.redis.zcard(sealed))
    const { run } = ledger
    const runs = async (script: string, ...args: (string | number)[]): Promise<unknown> => {
      const answer = await run(script, ...args)
      await noteLeft()
      return answer
    }
    const watched = {
      ...ledger,
      run: runs,
      runJson: async <T>(...call: Parameters<typeof runs>) =>
        JSON.parse(String(await runs(...call))) as T,
    }
    if (how === 'settled') {
      await settleMembers(watched, 'b:m1:soc', { o: 'delivered', n: 1, about }, () => watched)
    } else {
      const options = { ledgers: [watched], staleMs: 0, batchWaitMs: undefined, groups: {} }
      await unfreezeMessage(watched, 'b:m1:soc', options)
    }
    expect(left.slice(0, 2)).toEqual([10, 0])
  },
)

test('a digest of two accounts that died before it was closed is undone in both', async () => {
  const rig = await aDigestRig(given, { accounts: 2 })
  const [lead, other] = rig.ledgers
  await rig.show(lead!, ...uids(2))
  await rig.show(other!, ...uids(3))
  rig.toMorning(1)
  dieAt(other!, 'close-flush', 1)
  await expect(rig.flusher.flushDigestsOnce()).rejects.toThrow('killed')
  const about = { id: digestGroupId('oncall:0'), nowMs: rig.clock.now() }
  const ref = `b:${deriveMessageId(await peekFlush(lead!, about))}:oncall`
  const undoing = { ledgers: rig.ledgers, staleMs: 0, batchWaitMs: undefined, groups: {} }
  expect(await unfreezeMessage(lead!, ref, undoing)).toBe('open')
  for (const [ledger, queued] of [
    [lead, 2],
    [other, 3],
  ] as const) {
    const { sinks } = await expectConservation(ledger!)
    expect(waitingIn(sinks['oncall'])).toEqual({ queued })
  }
})
