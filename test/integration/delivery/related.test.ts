/** What a claim tells a message beside the event's content, on a real Redis. */
import { expect, test } from 'vitest'
import type { Member } from '../../../src/delivery/claims.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import type { Victims } from '../../../src/event.ts'
import type { RoutedEvent } from '../../../src/store/intake.ts'
import {
  moveItem,
  resendItem,
  releaseDetail,
  suppressItems,
} from '../../../src/store/pending-items.ts'
import {
  type FoundItem,
  otherDestinations,
  readItems,
  readRecord,
} from '../../../src/store/records.ts'
import { beginAttempt, claimRef, settleAttempt } from '../../support/attempts.ts'
import { pastThisMillisecond, redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()
const uid = 'a/b/1'

async function bring(ledger: AccountLedger, event: RoutedEvent, feed = 'brand'): Promise<void> {
  await takeIn(ledger, [event], { feed })
  await pastThisMillisecond(tests.redis)
}

function refOf(ledger: AccountLedger, index: number, sink: string): string {
  return `i:${ledger.fingerprints.recordId(uid)}:${index}:${sink}`
}

async function claimed(ledger: AccountLedger, ref: string): Promise<Member> {
  const claim = await claimRef(ledger, ref, 'r1')
  if (claim?.kind !== 'item') throw new Error(`claimed ${claim?.kind}`)
  return claim.members[0]!
}

async function silence(ledger: AccountLedger, ref: string): Promise<void> {
  await suppressItems(ledger, [{ ref, act: 'suppress', reason: 'silence', rule: 's1' }])
  await pastThisMillisecond(tests.redis)
}

async function moveToLake(ledger: AccountLedger, ref: string): Promise<void> {
  const [{ record, item }] = (await readItems(ledger, [ref])) as [FoundItem]
  const lake = [{ sink: 'lake', destination: 'lake', batchWaitMs: undefined }]
  expect(await moveItem(ledger, { ref, record, item }, lake, 'ann')).toBe('done')
}

test('a claim names where else its event was routed, and the same again whatever becomes of those', async () => {
  const ledger = await tests.ledger()
  const event = routed({ uid }, ['soc', 'oncall:a', 'oncall:b', 'siem', 'trial'])
  event.items[4]!.isShadow = true
  await bring(ledger, event)
  const ref = refOf(ledger, 0, 'soc')
  const others = ['oncall:a', 'oncall:b', 'siem']
  expect((await claimed(ledger, ref)).otherDestinations).toEqual(others)
  await silence(ledger, refOf(ledger, 1, 'oncall'))
  await beginAttempt(ledger, refOf(ledger, 2, 'oncall'), 't1', 30_000)
  const attempt = { ref: refOf(ledger, 2, 'oncall'), token: 't1', replica: 'r1' }
  await settleAttempt(ledger, attempt, { outcome: 'dead', reason: 'invalid' })
  await moveToLake(ledger, refOf(ledger, 3, 'siem'))
  await bring(ledger, routed({ uid }, ['mobile']), 'leaks')
  const destinations = (await readRecord(ledger, ledger.fingerprints.recordId(uid)))!.items
  expect(destinations.map(({ destination }) => destination).slice(5)).toEqual(['lake', 'mobile'])
  expect((await claimed(ledger, ref)).otherDestinations).toEqual(others)
  for (const [index, sink] of [
    [1, 'oncall'],
    [2, 'oncall'],
    [4, 'trial'],
  ] as const) {
    await resendItem(ledger, refOf(ledger, index, sink), { batchWaitMs: undefined, by: 'ann' })
  }
  expect((await claimed(ledger, ref)).otherDestinations).toEqual(others)
  const [{ record, item }] = (await readItems(ledger, [ref])) as [FoundItem]
  expect(otherDestinations(record.items, item)).toEqual(others)
})

test('a claim has what was seen before of the logins and hosts of its event', async () => {
  const ledger = await tests.ledger()
  const victims = { logins: ['joe@acme.com'], hosts: ['PC'] }
  await bring(ledger, { ...routed({ uid: 'a/b/0' }), victims })
  await bring(ledger, { ...routed({ uid }), victims })
  const { seenBefore } = await claimed(ledger, refOf(ledger, 0, 'soc'))
  expect(seenBefore.map(({ kind, times }) => [kind, times])).toEqual([
    ['login', 1],
    ['host', 1],
  ])
  const { recordId, lastMs } = seenBefore[0]!
  expect(recordId).toBe(ledger.fingerprints.recordId('a/b/0'))
  expect(lastMs).toBeGreaterThan(Date.now() - 60_000)
})

test('a message says what was seen before of the full event that it waited for, and of no later one', async () => {
  const ledger = await tests.ledger()
  const victims = { logins: ['joe@acme.com'], hosts: ['PC'] }
  await bring(ledger, { ...routed({ uid: 'a/b/0' }), victims })
  await bring(ledger, { ...routed({ uid }, ['siem']), wantsDetail: true })
  const recordId = ledger.fingerprints.recordId(uid)
  const said = async (): Promise<string[]> => {
    const found = await readItems(ledger, [refOf(ledger, 0, 'siem')])
    const { seenBefore } = found[0]!.record
    return seenBefore.flatMap(({ kind, isLate }) => (isLate ? [] : kind))
  }
  const release = async (named: Victims): Promise<void> =>
    void (await releaseDetail(ledger, recordId, { siem: false }, { detail: {}, victims: named }))
  await release({ logins: ['joe@acme.com'], hosts: [] })
  expect(await said()).toEqual(['login'])
  await beginAttempt(ledger, refOf(ledger, 0, 'siem'), 't1', 30_000)
  await release({ logins: [], hosts: ['PC'] })
  expect(await said()).toEqual(['login'])
})
