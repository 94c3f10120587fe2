import { expect, test } from 'vitest'
import { readUndelivered, type UndeliveredWindow } from '../../../src/grouping/undelivered.ts'
import { createPageAddress } from '../../../src/messages/page-links.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { aDigestRig, type DigestRig } from '../../support/digest-rig.ts'
import { redisForTests } from '../../support/ledger.ts'

const given = redisForTests()

const window: UndeliveredWindow = {
  sink: 'oncall',
  destination: 'oncall:0',
  fromMs: 0,
  toMs: 9e12,
  namesAccounts: false,
}

async function kill(rig: DigestRig, ...severities: string[]): Promise<AccountLedger> {
  const [ledger] = rig.ledgers
  rig.oncall.next(...severities.map(() => 'recipient_refused' as const))
  await rig.show(
    ledger!,
    ...severities.map((severity, at) => ({ uid: `stealer_log/b/${at}`, severity })),
  )
  return ledger!
}

test('the worst of what died is named first, with its title and its page', async () => {
  const rig = await aDigestRig(given, { digest: { immediate: 'info' } })
  const ledger = await kill(rig, 'low', 'critical', 'high')
  const page = createPageAddress('https://tocsin.test')
  const { total, worst } = await readUndelivered([ledger], window, page)
  expect(total).toBe(3)
  expect(worst.map(({ severity, uid }) => [severity, uid])).toEqual([
    ['critical', 'stealer_log/b/1'],
    ['high', 'stealer_log/b/2'],
    ['low', 'stealer_log/b/0'],
  ])
  expect(worst[0]!.title).toMatch(/^Stealer log/)
  expect(worst[0]!.pageUrl).toMatch(/^https:\/\/tocsin\.test\/events\/a0\/[0-9a-f]{24}$/)
  expect(worst[0]!.account).toBeUndefined()
})

test('the five worst are named, with their account among several, and all are counted', async () => {
  const rig = await aDigestRig(given, { digest: { immediate: 'info' } })
  const ledger = await kill(rig, ...Array.from({ length: 7 }, () => 'high'))
  const named = { ...window, namesAccounts: true }
  const { total, worst } = await readUndelivered([ledger], named, () => undefined)
  expect([total, worst.length]).toEqual([7, 5])
  expect(worst[0]).toMatchObject({ account: ledger.account })
  expect(worst[0]!.pageUrl).toBeUndefined()
})

test('what died for another recipient, or outside of the window, is not named', async () => {
  const rig = await aDigestRig(given, { recipients: 2, digest: { immediate: 'info' } })
  const ledger = await kill(rig, 'high', 'high') // the first event, for one recipient each
  const [, atMs] = await given.redis.zrange(ledger.key('dead', 'oncall'), '0', '0', 'WITHSCORES')
  const read = (given: Partial<UndeliveredWindow>): Promise<number> =>
    readUndelivered([ledger], { ...window, ...given }, () => undefined).then(({ total }) => total)
  expect(await read({})).toBe(1)
  expect(await read({ toMs: Number(atMs) - 1 })).toBe(0)
  expect(await read({ fromMs: 8e12 })).toBe(0)
})
