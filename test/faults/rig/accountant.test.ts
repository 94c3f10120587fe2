import { expect, test } from 'vitest'
import type { Received } from '../../../src/sandbox/receivers/received.ts'
import { redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { beginAttempt, settleAttempt } from '../../support/attempts.ts'
import { giveVerdict, type Inbox } from './accountant.ts'

const rig = redisForTests()

function message(uid: string, more: Partial<Received> = {}): Received {
  return {
    sink: 'webhook',
    id: uid,
    atMs: 1_000,
    to: '/hooks/soc',
    headers: {},
    body: '',
    json: null,
    mail: null,
    uids: [uid],
    ...more,
  }
}

function inbox(received: Received[]): Inbox {
  return { destination: 'soc', received, saysRepeat: ({ body }) => body === 'maybe again' }
}

/** One event of the ledger, sent so often that its answer was lost, and then delivered. */
async function aLedger(uid: string, lostAnswers: number) {
  const ledger = await rig.ledger()
  const accepted = await takeIn(ledger, [routed({ uid })])
  const ref = accepted.status === 'committed' ? accepted.changes[0]!.ref : ''
  for (let attempt = 0; attempt <= lostAnswers; attempt += 1) {
    const token = String(attempt)
    await beginAttempt(ledger, ref, token, 30_000)
    const outcome =
      attempt < lostAnswers
        ? ({ outcome: 'retry', inMs: 0, answerLost: true } as const)
        : ({ outcome: 'delivered' } as const)
    await settleAttempt(ledger, { ref, token, replica: 'r' }, outcome)
  }
  return ledger
}

test('what never arrived is lost', async () => {
  const ledger = await aLedger('a/1', 0)
  const verdict = await giveVerdict({ ledger: ledger, uids: ['a/1'], inboxes: [inbox([])] })
  expect(verdict.lost).toEqual(['soc a/1'])
})

test('a repeat that the ledger cannot explain is unexplained', async () => {
  const ledger = await aLedger('a/1', 0)
  const received = [message('a/1'), message('a/1', { body: 'maybe again' })]
  const verdict = await giveVerdict({ ledger: ledger, uids: ['a/1'], inboxes: [inbox(received)] })
  expect(verdict).toMatchObject({ lost: [], repeated: 1, explained: 0, unexplained: ['soc a/1'] })
})

test('a repeat after a lost answer is explained, and has to say that it may be one', async () => {
  const ledger = await aLedger('a/1', 1)
  const marked = [message('a/1'), message('a/1', { body: 'maybe again' })]
  const unmarked = [message('a/1'), message('a/1')]
  const verdictOn = (received: Received[]) =>
    giveVerdict({ ledger: ledger, uids: ['a/1'], inboxes: [inbox(received)] })
  expect(await verdictOn(marked)).toMatchObject({ repeated: 1, explained: 1, unmarked: [] })
  expect(await verdictOn(unmarked)).toMatchObject({ explained: 1, unmarked: ['soc a/1'] })
})

test('one lost answer explains one repeat, not two', async () => {
  const ledger = await aLedger('a/1', 1)
  const again = message('a/1', { body: 'maybe again' })
  const verdict = await giveVerdict({
    ledger: ledger,
    uids: ['a/1'],
    inboxes: [inbox([message('a/1'), again, again])],
  })
  expect(verdict).toMatchObject({ repeated: 2, explained: 1, unexplained: ['soc a/1'] })
})

test('a failover right after a delivery explains that it came again unmarked, an earlier one does not', async () => {
  const ledger = await aLedger('a/1', 0)
  const inboxes = [inbox([message('a/1'), message('a/1', { atMs: 9_000 })])]
  const verdictWith = (lossMs: number) =>
    giveVerdict({ ledger: ledger, uids: ['a/1'], inboxes, lossesMs: [lossMs] })
  expect(await verdictWith(2_000)).toMatchObject({ explained: 1, unexplained: [], unmarked: [] })
  expect(await verdictWith(500)).toMatchObject({ unexplained: ['soc a/1'] })
})
