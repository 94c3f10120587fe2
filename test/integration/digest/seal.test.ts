import { expect, test } from 'vitest'
import { returnedPlace } from '../../../src/digest/placement.ts'
import { closeSeal, messageIdOf, sealMembers } from '../../../src/digest/seal.ts'
import { claimTurn, dueTimers, membersOf } from '../../../src/digest/timers.ts'
import { readAccounting } from '../../../src/ledger/accounting.ts'
import { beginAttempt } from '../../../src/ledger/attempts.ts'
import { holdOrphan, returnOrphans } from '../../../src/ledger/collecting.ts'
import { readRecord } from '../../../src/ledger/records.ts'
import { aSlackRig, type SlackRig } from '../../support/gathering.ts'
import { expectConservation, redisForTests, takeIn } from '../../support/ledger.ts'

const given = redisForTests()

interface Rig extends SlackRig {
  show(uid: string, severity?: string): Promise<string>
}

async function aRig(): Promise<Rig> {
  const rig = await aSlackRig(given)
  return {
    ...rig,
    async show(uid: string, severity = 'high') {
      await takeIn(rig.book, [rig.event({ uid, severity })])
      return `i:${rig.book.digests.recordId(uid)}:0:soc`
    },
  }
}

function going(ref: string) {
  return { ref, destination: 'soc', verdict: { act: 'send' } as const, order: 0 }
}

test('an event that waits with others is not sent by itself, whoever asks for it', async () => {
  const rig = await aRig()
  const ref = await rig.show('a/b/1')
  expect(await beginAttempt(rig.book, ref, 'token', 1_000)).toEqual({ status: 'final' })
  await rig.deliver(ref)
  expect(rig.soc.received).toEqual([])
  expect((await readAccounting(rig.book)).sinks['soc']!.pending).toEqual({ group: 1 })
})

test('a replica that slept through its turn adds nothing to a message that is closed', async () => {
  const rig = await aRig()
  await rig.show('a/b/1')
  rig.clock.aheadMs = 11_000
  const [timer] = await dueTimers(rig.book, { nowMs: rig.clock.now(), count: 10 })
  const slept = (await claimTurn(rig.book, timer!, rig.clock.now()))!
  rig.clock.aheadMs = 50_000
  expect(await rig.flush()).toBe(1)
  const late = await rig.show('a/b/2')
  const turn = { leadId: slept.id, messageId: messageIdOf(slept), fence: slept.fence }
  expect(await sealMembers(rig.book, turn, [going(late)])).toBe(false)
  expect(await membersOf(slept)).toEqual([late])
  await expectConservation(rig.book)
})

test('a message is not closed over members that it has not counted', async () => {
  const rig = await aRig()
  const refs = [await rig.show('a/b/1'), await rig.show('a/b/2')]
  rig.clock.aheadMs = 11_000
  const [timer] = await dueTimers(rig.book, { nowMs: rig.clock.now(), count: 10 })
  const turn = (await claimTurn(rig.book, timer!, rig.clock.now()))!
  const messageId = messageIdOf(turn)
  await sealMembers(rig.book, { leadId: turn.id, messageId, fence: turn.fence }, refs.map(going))
  const closing = { messageId, turns: [{ turn, nextMs: undefined }] }
  expect(await closeSeal(rig.book, { ...closing, members: 1 })).toEqual({ status: 'again' })
  expect(await closeSeal(rig.book, { ...closing, members: 2 })).toMatchObject({ status: 'closed' })
})

test('a critical event that comes while its group is being sealed does not wait for the interval', async () => {
  const rig = await aRig()
  await rig.show('a/b/1')
  rig.clock.aheadMs = 11_000
  const { run } = rig.book
  Object.assign(rig.book, {
    run: async (script: string, ...args: (string | number)[]) => {
      if (script === 'close-seal') {
        Object.assign(rig.book, { run })
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

test('a message says that it may be a repeat when the answer about one of its members was lost', async () => {
  const rig = await aRig()
  rig.soc.next('timeout')
  await takeIn(rig.book, [rig.event({ uid: 'a/b/1' }, { grouping: { waitMs: 0 } })])
  const ref = `i:${rig.book.digests.recordId('a/b/1')}:0:soc`
  await rig.deliver(ref)
  await holdOrphan(rig.book, ref)
  await rig.show('a/b/2')
  await holdOrphan(rig.book, `i:${rig.book.digests.recordId('a/b/2')}:0:soc`)
  const places = { soc: returnedPlace('soc') }
  expect(await returnOrphans(rig.book, { sink: 'soc', mode: false, places }, 10)).toBe(2)
  const back = await readRecord(rig.book, rig.book.digests.recordId('a/b/1'))
  expect(back!.items[0]).toMatchObject({ state: 'group', heldFor: undefined })
  rig.clock.aheadMs = 16_000
  expect(await rig.flush()).toBe(1)
  expect(rig.soc.received[1]!.summary).toMatchObject({ kind: 'group', total: 2 })
  expect(rig.soc.received.map(({ mayBeRepeat }) => mayBeRepeat)).toEqual([false, true])
})
