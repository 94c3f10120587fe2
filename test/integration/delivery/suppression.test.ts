/** What goes singly is judged right before its first try, and says the same on every try. */
import { expect, test } from 'vitest'
import { createCircuit } from '../../../src/delivery/circuit.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { readRecord } from '../../../src/store/records.ts'
import type { ThreatEvent } from '../../../src/event.ts'
import {
  aSlackRig,
  dieAt,
  type GatheringRigOptions,
  type SlackRig,
} from '../../support/grouping.ts'
import { expectConservation, redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'

const given = redisForTests()

interface Rig extends SlackRig {
  show(event: Partial<ThreatEvent>): Promise<string>
}

async function aRig(type: 'webhook' | 'slack', gate?: GatheringRigOptions['gate']): Promise<Rig> {
  const soc = aRehearsedSink('soc', { type })
  const rig = await aSlackRig(given, { sinks: [soc], ...(gate && { gate }) })
  return {
    ...rig,
    soc,
    async show(event: Partial<ThreatEvent>) {
      const taken = await takeIn(rig.ledger, [routed(event, ['soc'])])
      return (taken as { changes: { ref: string }[] }).changes[0]?.ref ?? ''
    },
  }
}

async function itemOf(ledger: AccountLedger, uid: string) {
  const record = await readRecord(ledger, ledger.fingerprints.recordId(uid))
  return record!.items[0]!
}

test('what is silenced is not sent because a worker died while it was judged', async () => {
  const rig = await aRig('slack', () => ({ act: 'suppress', reason: 'silence', rule: 's1' }))
  const ref = await rig.show({ uid: 'a/b/1' })
  dieAt(rig.ledger, 'suppress-items', 1)
  await expect(rig.deliver(ref)).rejects.toThrow('killed')
  await rig.deliver(ref)
  expect(rig.soc.received).toEqual([])
  expect(await itemOf(rig.ledger, 'a/b/1')).toMatchObject({
    state: 'suppressed',
    heldFor: 'silence',
    rule: 's1',
    attempts: 0,
  })
  await expectConservation(rig.ledger)
})

test('a probe that is suppressed, or finds its event delivered, leaves its place to the next', async () => {
  const silenced = { act: 'suppress', reason: 'silence', rule: 's1' } as const
  const rig = await aRig('slack', (uid) => (uid === 'a/b/1' ? silenced : { act: 'send' }))
  const [kept, sent, next] = [
    await rig.show({ uid: 'a/b/1' }),
    await rig.show({ uid: 'a/b/2' }),
    await rig.show({ uid: 'a/b/3' }),
  ]
  await rig.deliver(sent)
  await createCircuit(given.redis, rig.keys).report('soc', 'broken')
  const halfOpen = { until: 1 } // the time of its probe has come
  await given.redis.hset(rig.keys.shared('circuit', 'soc'), halfOpen)
  await rig.deliver(kept)
  await rig.deliver(sent)
  await rig.deliver(next)
  const uids = rig.soc.received.map(({ members }) => members[0]?.event.uid)
  expect(uids).toEqual(['a/b/2', 'a/b/3'])
})

test('what may have been accepted already is not taken back by a silence that began since', async () => {
  let isSilenced = false
  const rig = await aRig('webhook', () =>
    isSilenced ? { act: 'suppress', reason: 'silence', rule: 's1' } : { act: 'send' },
  )
  const ref = await rig.show({ uid: 'a/b/1' })
  rig.soc.next('timeout')
  await rig.deliver(ref)
  isSilenced = true
  await rig.deliver(ref)
  expect(rig.soc.received.map(({ mayBeRepeat }) => mayBeRepeat)).toEqual([false, true])
  expect(await itemOf(rig.ledger, 'a/b/1')).toMatchObject({ state: 'delivered' })
})
