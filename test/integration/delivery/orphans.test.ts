import { expect, test } from 'vitest'
import { createOrphans, type Orphans, type OrphansOptions } from '../../../src/delivery/orphans.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { readAccounting } from '../../../src/store/accounts.ts'
import { returnedGroup } from '../../../src/grouping/placement.ts'
import { readRecord } from '../../../src/store/records.ts'
import { beginAttempt, makeDue } from '../../support/attempts.ts'
import { aDigestRig } from '../../support/digest-rig.ts'
import {
  aStanding,
  redisForTests,
  routed,
  silent,
  takeIn,
  waitingIn,
} from '../../support/ledger.ts'

const tests = redisForTests()

interface Line {
  sinks?: string[]
  items: number
}

function orphansOf(
  ledger: AccountLedger,
  given: Partial<OrphansOptions> = {},
): Orphans & { said: Line[] } {
  const said: Line[] = []
  const note = (about: Line): void => void said.push(about)
  const orphans = createOrphans({
    ledgers: [ledger],
    batchWaits: {},
    returnGroups: () => ({}),
    standing: aStanding(),
    clock: { ...systemClock, now: () => Date.now() + 1_000 },
    logger: Object.assign(Object.create(silent) as typeof silent, { warn: note, info: note }),
    ...given,
  })
  return { ...orphans, said }
}

async function bring(ledger: AccountLedger, count: number, sink = 'soc'): Promise<void> {
  const events = Array.from({ length: count }, (_, i) => routed({ uid: `${sink}/${i}` }, [sink]))
  for (let at = 0; at < count; at += 200) await takeIn(ledger, events.slice(at, at + 200))
}

async function waiting(ledger: AccountLedger, sink = 'soc'): Promise<Record<string, number>> {
  return waitingIn((await readAccounting(ledger)).sinks[sink])
}

test('what is due for a sink that no configuration has is held, five hundred at a time, and said once', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, 510)
  await bring(ledger, 1, 'siem')
  const orphans = orphansOf(ledger)
  await orphans.hold(ledger, 'soc')
  expect(await waiting(ledger)).toEqual({ queued: 10, held: 500 })
  await orphans.hold(ledger, 'siem')
  orphans.report()
  orphans.report()
  expect(orphans.said).toEqual([{ sinks: ['soc', 'siem'], items: 501 }])
})

test('a message that is known to have gone is settled and not held, though its sink is gone', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, 1)
  const message = { k: 'soc', d: 'soc', kind: 'group', n: 1, o: 'delivered' }
  await tests.redis.set(ledger.key('batch', 'm1'), JSON.stringify(message))
  await tests.redis.zadd(ledger.key('due', 'soc'), 1, 'b:m1:soc')
  const orphans = orphansOf(ledger)
  await orphans.hold(ledger, 'soc')
  orphans.report()
  expect(orphans.said).toEqual([{ sinks: ['soc'], items: 1 }])
  expect(await tests.redis.exists(ledger.key('batch', 'm1'))).toBe(0)
})

test.each(['lost', 'awaited'])(
  'a digest whose answer was %s when its sink went comes back as a possible repeat in every account',
  async (answer) => {
    const rig = await aDigestRig(tests, { accounts: 2 })
    const { ledgers } = rig
    for (const ledger of ledgers) await rig.show(ledger, { uid: 'a/b/1' })
    rig.toMorning(1)
    const [ref] = await rig.seal()
    rig.oncall.next('timeout')
    if (answer === 'lost') await rig.deliver(ref!)
    else await beginAttempt(ledgers[0]!, ref!, 'token', 1_000)
    await makeDue(ledgers[0]!, ref!)
    const orphans = orphansOf(ledgers[0]!, {
      ledgers: ledgers,
      batchWaits: { oncall: false },
      returnGroups: () => ({ 'oncall:0': returnedGroup('oncall:0') }),
    })
    await orphans.hold(ledgers[0]!, 'oncall')
    rig.oncall.received.length = 0
    for (const ledger of ledgers) {
      const { items } = (await readRecord(ledger, ledger.fingerprints.recordId('a/b/1')))!
      expect(items).toMatchObject([{ state: 'held', heldFor: 'orphaned', repeatRisks: 1 }])
      expect(await orphans.takeBack(ledger, 'oncall')).toBe(1)
    }
    rig.clock.aheadMs += 60_000
    await rig.flush()
    expect(rig.oncall.received.map(({ mayBeRepeat }) => mayBeRepeat)).toEqual([true, true])
  },
)

test('what is due waits for the newest configuration to say that its sink is gone, also while another stands in for it', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, 1)
  for (const isActive of [false, true]) {
    const standing = aStanding({ isActive, isNewest: false })
    await orphansOf(ledger, { standing }).hold(ledger, 'soc')
  }
  expect(await waiting(ledger)).toEqual({ queued: 1 })
})

test('hundreds that were held go on in one pass when their sink is back, and how many is said', async () => {
  const ledger = await tests.ledger()
  await bring(ledger, 450)
  const orphans = orphansOf(ledger)
  await orphans.hold(ledger, 'soc')
  expect(await orphansOf(ledger).takeBack(ledger, 'soc')).toBe(0)
  const modes = { soc: false } as const
  const standing = aStanding({ isActive: false })
  expect(await orphansOf(ledger, { batchWaits: modes, standing }).takeBack(ledger, 'soc')).toBe(0)
  expect(await waiting(ledger)).toEqual({ held: 450 })
  const back = orphansOf(ledger, { batchWaits: modes })
  expect(await back.takeBack(ledger, 'soc')).toBe(450)
  back.report()
  back.report()
  expect(back.said).toEqual([{ items: 450 }])
  expect(await waiting(ledger)).toEqual({ queued: 450 })
})
