/** The page of a message, of which some items were sent again since. */
import { expect, test } from 'vitest'
import type { Asker } from '../../../src/page/asker.ts'
import { localUser } from '../../../src/page/access/user.ts'
import { type MessageAnswer, messageQuestion } from '../../../src/page/questions/message.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { resendItem } from '../../../src/store/pending-items.ts'
import { attemptOf, sealBatch } from '../../support/attempts.ts'
import { pastThisMillisecond, redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()

async function askMessage(ledger: AccountLedger, id: string): Promise<MessageAnswer> {
  const ledgers = [ledger]
  const store = { redis: tests.redis, keys: tests.keys(), ledgers }
  const asker = {
    user: localUser,
    store,
    ledgers,
    config: { sinks: [] },
    labels: new Map(),
  } as unknown as Asker
  return messageQuestion.ask(asker, { id, at: undefined })
}

test('its time and outcome are those of the message, whatever was sent again since', async () => {
  const ledger = await tests.ledger()
  const severities = ['critical', 'low']
  const events = severities.map((severity) =>
    routed({ uid: `a/b/${severity}`, severity }, ['siem']),
  )
  await takeIn(ledger, events, { batchWaitMs: 1_000 })
  const [worst, other] = events.map(({ event }) => {
    const recordId = ledger.fingerprints.recordId(event.uid)
    return { recordId, ref: `i:${recordId}:0:siem` }
  })
  const refs = [worst!.ref, other!.ref]
  const batch = (await sealBatch(ledger, { sink: 'siem', destination: 'siem' }, refs))!
  await attemptOf(ledger, batch, { outcome: 'dead', reason: 'gone' })
  await tests.redis.del(refs.map((ref) => ledger.key('pay', ref.split(':')[1]!)))
  const id = `b${batch.split(':')[1]}`
  const before = await askMessage(ledger, id)
  expect(before).toMatchObject({ outcome: 'dead', severity: 'critical', total: 2 })
  await pastThisMillisecond(tests.redis)
  for (const { recordId, ref } of [worst!, other!]) {
    await tests.redis.set(ledger.key('pay', recordId), '{}')
    await resendItem(ledger, ref, { batchWaitMs: undefined, by: 'ann' })
    await attemptOf(ledger, ref, { outcome: 'delivered' })
    await tests.redis.del(ledger.key('pay', recordId))
    const { at, outcome, severity } = await askMessage(ledger, id)
    expect({ at, outcome, severity }).toEqual({
      at: before.at,
      outcome: 'dead',
      severity: 'critical',
    })
  }
})
