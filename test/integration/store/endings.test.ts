/** Endings: what their stream says of each way in which items end, and lists of it over several accounts. */
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { ownFeed } from '../../../src/event.ts'
import { advanceClaims } from '../../../src/delivery/claims.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { findDeliveryItems, findMessage } from '../../../src/store/deliveries.ts'
import {
  CursorError,
  type EndingFilter,
  listEndings,
} from '../../../src/store/history/ending-list.ts'
import { type Ending, readEntries } from '../../../src/store/history/endings.ts'
import {
  discardItem,
  moveItem,
  resendItem,
  suppressItems,
} from '../../../src/store/pending-items.ts'
import { readRecord } from '../../../src/store/records.ts'
import { attemptOf, beginAttempt, sealBatch } from '../../support/attempts.ts'
import { aDigestRig } from '../../support/digest-rig.ts'
import {
  expectConservation,
  readEndings,
  redisForTests,
  redisMs,
  routed,
  takeIn,
} from '../../support/ledger.ts'
import { runs } from '../../support/runs.ts'
import { runScriptAt } from '../../support/script-clock.ts'

const tests = redisForTests()

const dayMs = 86_400_000

function recordOf(ledger: AccountLedger, id: string): string {
  return ledger.fingerprints.recordId(`a/b/${id}`)
}

function refOf(ledger: AccountLedger, id: string, sink = 'soc', index = 0): string {
  return `i:${recordOf(ledger, id)}:${index}:${sink}`
}

async function show(ledger: AccountLedger, ids: string[], severity = 'high'): Promise<void> {
  const nowMs = await redisMs(ledger.redis)
  const events = ids.map((id) => routed({ uid: `a/b/${id}`, severity, matchedAtMs: nowMs - 7_000 }))
  await takeIn(ledger, events, { requestedAtMs: nowMs })
}

/** All of an account, the oldest first, without what changes from run to run. */
async function told(ledger: AccountLedger): Promise<object[]> {
  const endings = await readEndings(ledger, { count: 100 })
  return endings
    .toReversed()
    .map(({ account: _account, id: _id, atMs: _at, items, toldAfterMs, ...rest }) => ({
      ...rest,
      items: items.map(({ recordId, index }) => `${recordId}.${index}`),
      isTimed: toldAfterMs !== undefined,
    }))
}

const plain = {
  destination: 'soc',
  sink: 'soc',
  severity: 'high',
  messageId: undefined,
  reason: undefined,
  rule: undefined,
  attempts: 0,
  isOwn: false,
  isTimed: false,
}

test('what is sent singly is an ending each, what is suppressed for one reason is one', async () => {
  const ledger = await tests.ledger()
  await show(ledger, ['1', '2', '3', '4', '5', '6', '7'])
  await attemptOf(ledger, refOf(ledger, '1'), { outcome: 'retry', inMs: 0, counts: true })
  await attemptOf(ledger, refOf(ledger, '1'), { outcome: 'delivered' })
  await attemptOf(ledger, refOf(ledger, '2'), { outcome: 'dead', reason: 'gone' })
  const [third, fourth, fifth] = ['3', '4', '5'].map((id) => ({ ref: refOf(ledger, id) }))
  const silenced = { act: 'suppress', reason: 'silence', rule: 's1' } as const
  await suppressItems(ledger, [
    { ...third!, ...silenced },
    { ...fourth!, ...silenced },
    { ...fifth!, ...silenced, rule: 's2' },
  ])
  await discardItem(ledger, refOf(ledger, '6'), 'by ann')
  const record = (await readRecord(ledger, recordOf(ledger, '7')))!
  const lake = { sink: 'lake', destination: 'lake', batchWaitMs: undefined }
  await moveItem(ledger, { ref: refOf(ledger, '7'), record, item: record.items[0]! }, [lake], 'ann')

  const items = (...ids: string[]): string[] => ids.map((id) => `${recordOf(ledger, id)}.0`)
  const suppressed = { ...plain, outcome: 'suppressed', reason: 'silence' }
  expect(await told(ledger)).toEqual([
    { ...plain, outcome: 'delivered', attempts: 2, isTimed: true, items: items('1') },
    { ...plain, outcome: 'dead', reason: 'gone', attempts: 1, items: items('2') },
    { ...suppressed, rule: 's1', items: items('3', '4') },
    { ...suppressed, rule: 's2', items: items('5') },
    { ...plain, outcome: 'dead', reason: 'discarded', rule: 'by ann', items: items('6') },
    { ...plain, outcome: 'diverted', reason: 'moved', rule: 'ann', items: items('7') },
  ])
  const [first] = (await readEndings(ledger, { count: 100 })).slice(-1)
  expect(first!.toldAfterMs).toBeGreaterThanOrEqual(7_000)
  expect(first!.toldAfterMs).toBeLessThan(60_000)
})

test('two messages that one script settles are an ending each', async () => {
  const ledger = await tests.ledger()
  await show(ledger, ['1', '2'])
  const refs = ['1', '2'].map((id) => refOf(ledger, id))
  for (const ref of refs) await beginAttempt(ledger, ref, 't', 30_000)
  const settle = refs.map((ref) => ({ ref, token: 't', outcome: { outcome: 'dead' } as const }))
  await advanceClaims(ledger, { owner: 't', leaseMs: 1_000, by: 'r' }, { settle })
  const endings = await readEndings(ledger, { count: 9 })
  expect(endings.map(({ items }) => items.length)).toEqual([1, 1])
})

test('a batch is one ending with the worst of its severities, and what Tocsin itself tells is marked', async () => {
  const ledger = await tests.ledger()
  const severities = ['low', 'a new word', 'high']
  const events = severities.map((severity, n) => routed({ uid: `a/b/${n}`, severity }, ['siem']))
  await takeIn(ledger, events, { batchWaitMs: 1_000 })
  await takeIn(ledger, [routed({ uid: 'a/b/3' }, ['siem'])], { feed: ownFeed, batchWaitMs: 1_000 })
  const refs = [3, 0, 1, 2].map((n) => refOf(ledger, String(n), 'siem'))
  const batch = (await sealBatch(ledger, { sink: 'siem', destination: 'siem' }, refs))!
  await attemptOf(ledger, batch, { outcome: 'delivered' })
  await takeIn(ledger, [routed({ uid: 'canary/tocsin/1' })], { feed: ownFeed })
  const canary = ledger.fingerprints.recordId('canary/tocsin/1')
  await attemptOf(ledger, `i:${canary}:0:soc`, { outcome: 'delivered' })
  const [message, own] = (await readEndings(ledger, { count: 9 })).toReversed()
  expect(message).toMatchObject({
    messageId: `b${batch.split(':')[1]}`,
    severity: 'a new word',
    isOwn: false,
  })
  expect(message!.items.map(({ recordId }) => recordId)).toEqual(
    ['1', '3', '0', '2'].map((id) => recordOf(ledger, id)), // one of the worst first
  )
  expect(own).toMatchObject({ isOwn: true, messageId: undefined })
})

test('the halves of a batch that was refused are messages of their own', async () => {
  const ledger = await tests.ledger()
  const ids = ['1', '2', '3']
  await takeIn(
    ledger,
    ids.map((id) => routed({ uid: `a/b/${id}` }, ['siem'])),
    { batchWaitMs: 1_000 },
  )
  const refs = ids.map((id) => refOf(ledger, id, 'siem'))
  const batch = (await sealBatch(ledger, { sink: 'siem', destination: 'siem' }, refs))!
  const { halves = [] } = await attemptOf(ledger, batch, { outcome: 'split', reason: 'invalid' })
  for (const half of halves) await attemptOf(ledger, half, { outcome: 'delivered' })
  const endings = await readEndings(ledger, { count: 9 })
  expect(endings.map(({ messageId }) => messageId)).toEqual(
    halves.toReversed().map((ref) => `b${ref.split(':')[1]}`),
  )
  expect(endings.map(({ items }) => items.length)).toEqual([1, 2])
})

test('an item that is sent again and delivered again has two endings, and the second tells no delay', async () => {
  const ledger = await tests.ledger()
  await show(ledger, ['1'])
  const ref = refOf(ledger, '1')
  await attemptOf(ledger, ref, { outcome: 'delivered' })
  await resendItem(ledger, ref, { batchWaitMs: undefined, by: 'ann' })
  await attemptOf(ledger, ref, { outcome: 'delivered' })
  expect(await told(ledger)).toMatchObject([{ isTimed: true }, { isTimed: false }])
  await expectConservation(ledger)
})

test('a clock that is set back loses no ending and changes no order', async () => {
  const ledger = await tests.ledger()
  await show(ledger, ['1', '2'])
  await attemptOf(ledger, refOf(ledger, '1'), { outcome: 'delivered' })
  const earlierMs = (await redisMs(ledger.redis)) - dayMs
  const settle = [{ ref: refOf(ledger, '2'), outcome: 'delivered', token: 't' }]
  await beginAttempt(ledger, refOf(ledger, '2'), 't', 30_000)
  const ask = { owner: 't', lease: 1, by: 'r', retention: ledger.retention, settle }
  const at = { redis: ledger.redis, nowMs: earlierMs }
  await runScriptAt(at, 'advance-claims', [ledger.key()], [JSON.stringify(ask)])
  const endings = await readEndings(ledger, { count: 9 })
  expect(endings.map(({ items }) => items[0]!.recordId)).toEqual(
    ['2', '1'].map((id) => recordOf(ledger, id)),
  )
})

test('endings go with the history, and with the records that make room', async () => {
  const ledger = await tests.ledger()
  const nowMs = await redisMs(ledger.redis)
  const pastMs = nowMs - ledger.retention.history
  // entries go by whole nodes of a hundred
  for (let n = 0; n < 300; n += 1) await append(ledger, `${pastMs - 1_000}-${n}`)
  for (let n = 0; n < 300; n += 1) await append(ledger, `${nowMs - 2 * dayMs}-${n}`)
  await append(ledger, `${nowMs}-0`)
  const trim = (bytes: number): Promise<unknown> =>
    ledger.run('trim-records', ledger.retention.history, bytes)
  await trim(0)
  expect(await ledger.redis.xlen(ledger.key('ended'))).toBeLessThanOrEqual(401)
  await takeIn(ledger, [routed({ uid: 'a/b/1' }, [])])
  await ledger.redis.zadd(ledger.key('records'), nowMs - dayMs, recordOf(ledger, '1'))
  await trim(1)
  expect(await ledger.redis.xlen(ledger.key('ended'))).toBeLessThan(101)
})

test('a message is found by its id, near its time or without one, with what was sent again since', async () => {
  const ledger = await tests.ledger()
  const ids = ['1', '2']
  await takeIn(
    ledger,
    ids.map((id) => routed({ uid: `a/b/${id}` }, ['siem'])),
    { batchWaitMs: 1_000 },
  )
  const refs = ids.map((id) => refOf(ledger, id, 'siem'))
  const batch = (await sealBatch(ledger, { sink: 'siem', destination: 'siem' }, refs))!
  const id = `b${batch.split(':')[1]}`
  const find = async (aroundMs?: number): Promise<string[]> => {
    const uids: string[] = []
    for await (const { record } of findMessage([ledger], id, aroundMs)) uids.push(record.uid)
    return uids.toSorted()
  }
  expect(await find()).toEqual(['a/b/1', 'a/b/2'])
  await attemptOf(ledger, batch, { outcome: 'delivered' })
  await resendItem(ledger, refs[0]!, { batchWaitMs: undefined, by: 'ann' })
  await attemptOf(ledger, refs[0]!, { outcome: 'delivered' })
  const nowMs = await redisMs(ledger.redis)
  for (const aroundMs of [undefined, nowMs, nowMs - 30 * dayMs])
    expect(await find(aroundMs)).toEqual(['a/b/1', 'a/b/2'])
  const left = []
  for await (const { record } of findDeliveryItems([ledger], id)) left.push(record.uid)
  expect(left).toEqual(['a/b/2'])
})

test('a digest of two accounts is one ending, and its id finds the items of both', async () => {
  const rig = await aDigestRig(tests, { accounts: 2 })
  const [one, two] = rig.ledgers
  await rig.show(one!, { uid: 'a/b/1', severity: 'low' })
  await rig.show(two!, { uid: 'a/b/1', severity: 'low' }, { uid: 'a/b/2', severity: 'medium' })
  rig.toMorning(1)
  await rig.flush()
  const messageId = rig.oncall.received[0]!.id
  const { endings } = await listEndings(rig.ledgers, {}, { limit: 9, scanAtMost: 9 })
  expect(endings).toMatchObject([{ messageId, severity: 'medium', sink: 'oncall' }])
  expect(endings[0]!.items.map(({ account }) => account).toSorted()).toEqual(['a0', 'a1', 'a1'])
  const find = async (): Promise<string[]> => {
    const found: string[] = []
    for await (const { record } of findMessage(rig.ledgers, messageId)) found.push(record.account)
    return found
  }
  expect(await find()).toEqual(['a0', 'a1', 'a1'])
  // what was sent again since says nothing of when the message went
  const again = `i:${endings[0]!.items.find(({ account }) => account === 'a0')!.recordId}:0:oncall`
  await resendItem(one!, again, { batchWaitMs: undefined, by: 'ann' })
  await attemptOf(one!, again, { outcome: 'delivered' })
  const stream = two!.key('ended')
  const [[id, fields]] = (await two!.redis.xrange(stream, '-', '+')) as [[string, string[]]]
  await two!.redis.del(stream)
  await two!.redis.xadd(stream, `${Number.parseInt(id, 10) - 1_800_000}-0`, ...fields)
  expect(await find()).toEqual(['a0', 'a1', 'a1'])
})

test('a digest is in parts only where it is of several accounts', async () => {
  const isPart = async (accounts: number): Promise<boolean> => {
    const rig = await aDigestRig(tests, { accounts })
    for (const ledger of rig.ledgers) await rig.show(ledger, { uid: 'a/b/1', severity: 'low' })
    rig.toMorning(1)
    await rig.flush()
    return (await readEntries(rig.ledgers[0]!, { count: 1 }))[0]!.isPart
  }
  expect(await Promise.all([isPart(1), isPart(2)])).toEqual([false, true])
})

test('a message whose records are gone is looked for around its time alone', async () => {
  const ledger = await tests.ledger()
  const nowMs = await redisMs(ledger.redis)
  for (let n = 0; n < 1_200; n += 1) await append(ledger, `${nowMs - dayMs}-${n}`)
  await append(ledger, `${nowMs}-0`, { part: 'a'.repeat(40) })
  const reads = vi.spyOn(ledger.redis, 'xrevrange')
  for await (const found of findMessage([ledger], `b${'a'.repeat(40)}`, nowMs))
    expect(found).toBeUndefined()
  expect(reads.mock.calls.length).toBeLessThanOrEqual(2)
  reads.mockRestore()
})

test('of a message under way members are read in parts, as many as are asked for, and no endings', async () => {
  const ledger = await tests.ledger()
  const ids = Array.from({ length: 400 }, (_none, n) => `${n}`)
  await show(ledger, ids)
  const id = 'a'.repeat(40)
  const members = ids.flatMap((one, n) => [n, refOf(ledger, one)])
  await ledger.redis.zadd(ledger.key('members', id), ...members)
  await ledger.redis.set(ledger.key('batch', id), JSON.stringify({ kind: 'digest' }))
  const [reads, searches] = [vi.spyOn(tests.redis, 'mget'), vi.spyOn(tests.redis, 'xrevrange')]
  for await (const { record } of findMessage([ledger], `b${id}`)) {
    expect(record.uid).toBe('a/b/0')
    break
  }
  expect(reads.mock.calls.map(([names]) => names.length)).toEqual([300])
  const uids: string[] = []
  for await (const { record } of findMessage([ledger], `b${id}`)) uids.push(record.uid)
  expect(new Set(uids).size).toBe(400)
  expect(searches).not.toHaveBeenCalled()
  for (const spy of [reads, searches]) spy.mockRestore()
})

// Lists ------------------------------------------------------------------------------------------

interface Written {
  /** b: a message whose members are settled in several runs. */
  part?: string | undefined
  isOwn?: boolean
  severity?: number | string
  outcome?: string
  by?: string
}

async function append(ledger: AccountLedger, id: string, given: Written = {}): Promise<void> {
  const { part, isOwn = false, severity = 3, outcome = 'd', by = '' } = given
  const flags = `${isOwn ? 'o' : ''}${part === undefined ? '' : 'p'}`
  const entry = [outcome, 'soc', severity, `${id}.0`, 5, 1, flags, part ?? '', '', by]
  await ledger.redis.xadd(ledger.key('ended'), id, 'e', JSON.stringify(entry))
}

interface PageOptions {
  limit: number
  scanAtMost?: number
  between?: () => Promise<void>
}

/** All pages of a list. */
async function listAll(
  ledgers: AccountLedger[],
  filter: EndingFilter,
  { limit, scanAtMost = 1_000, between }: PageOptions,
): Promise<Ending[]> {
  const all: Ending[] = []
  let before: string | undefined
  do {
    const page = await listEndings(ledgers, filter, { limit, before, scanAtMost })
    expect(page.endings.length).toBeLessThanOrEqual(limit)
    all.push(...page.endings)
    before = page.next
    await between?.()
  } while (before !== undefined)
  return all
}

async function threeLedgers(): Promise<AccountLedger[]> {
  const keys = tests.keys()
  return Promise.all(['a', 'b', 'c'].map((account) => tests.ledger({ keys, account })))
}

const numRuns = runs({ short: 25, long: 300 })

test('pages of any size have every ending of all accounts once, whatever comes meanwhile', async () => {
  const entry = fc.record({
    account: fc.nat(2),
    atMs: fc.integer({ min: 1, max: 6 }),
    part: fc.constantFrom(undefined, undefined, 'm1', 'm2'),
  })
  const given = {
    entries: fc.array(entry, { maxLength: 40 }),
    limit: fc.integer({ min: 1, max: 9 }),
    scanAtMost: fc.constantFrom(1, 3, 1_000),
  }
  await fc.assert(
    fc.asyncProperty(fc.record(given), async ({ entries, limit, scanAtMost }) => {
      const ledgers = await threeLedgers()
      const ids: string[] = []
      for (const { account, atMs, part } of entries.toSorted(
        (one, other) => one.atMs - other.atMs,
      )) {
        const id = `${atMs}-${ids.length}`
        await append(ledgers[account]!, id, { part })
        ids.push(id)
      }
      let n = 0
      const between = async (): Promise<void> => append(ledgers[n % 3]!, `${100 + (n += 1)}-0`)
      const found = await listAll(ledgers, {}, { limit, scanAtMost, between })
      const times = found.map(({ atMs }) => atMs)
      expect(times).toEqual(times.toSorted((one, other) => other - one))
      const items = found.flatMap((ending) => ending.items.map(({ recordId }) => recordId))
      expect(items.toSorted()).toEqual(ids.toSorted())
    }),
    { numRuns, seed: 7 },
  )
})

test('a message settled in several runs and accounts is one row of a page, with the worst of it', async () => {
  const [one, two, three] = await threeLedgers()
  await append(one!, '1000-0', { part: 'm', severity: 5 })
  await append(two!, '1001-0', { part: 'm', severity: 2 })
  await append(three!, '1001-1')
  await append(two!, '1002-0', { part: 'm', severity: 3, isOwn: true })
  await append(one!, '1003-0')
  const rows = async (filter: EndingFilter, limit: number) =>
    (await listAll([one!, two!, three!], filter, { limit })).map(
      ({ atMs, messageId, items }) => `${atMs} ${messageId} ${items.length}`,
    )
  expect(await rows({}, 4)).toEqual(['1003 undefined 1', '1002 bm 3', '1001 undefined 1'])
  expect(await rows({}, 2)).toEqual([
    '1003 undefined 1',
    '1002 bm 2',
    '1001 undefined 1',
    '1000 bm 1',
  ])
  const [worst] = await listAll([one!, two!, three!], { leastSeverity: 'critical' }, { limit: 1 })
  expect(worst).toMatchObject({ id: '1002-0', severity: 'critical', isOwn: false })
  expect(worst!.items.map(({ account }) => account)).toEqual(['a', 'b', 'b'])
})

test('what ends of a message more than a minute before the rest is a row of its own', async () => {
  const [ledger] = await threeLedgers()
  for (const atMs of [1_000, 2_000, 70_000]) await append(ledger!, `${atMs}-0`, { part: 'm' })
  const found = await listAll([ledger!], {}, { limit: 9 })
  expect(found.map(({ items }) => items.length)).toEqual([1, 2])
})

test('a list narrows by outcome, severity, rule and time, and says how far back it looked', async () => {
  const [ledger] = await threeLedgers()
  await append(ledger!, '1000-0', { severity: 5 })
  await append(ledger!, '2000-0', { severity: 'a new word' })
  for (let n = 0; n < 20; n += 1) await append(ledger!, `3000-${n}`, { severity: 1 })
  await append(ledger!, '4000-0', { outcome: 's', by: 's1' })
  const list = async (filter: EndingFilter): Promise<number[]> =>
    (await listAll([ledger!], filter, { limit: 5 })).map(({ atMs }) => atMs)
  expect(await list({ leastSeverity: 'critical' })).toEqual([2_000, 1_000])
  expect(await list({ outcomes: new Set(['suppressed'] as const) })).toEqual([4_000])
  expect(await list({ rule: 's1' })).toEqual([4_000])
  expect(await list({ rule: 's2' })).toEqual([])
  expect(await list({ sink: 'siem' })).toEqual([])
  expect(await list({ fromMs: 1_500, toMs: 2_500 })).toEqual([2_000])
  const page = await listEndings(
    [ledger!],
    { leastSeverity: 'critical' },
    { limit: 5, scanAtMost: 10 },
  )
  expect(page).toMatchObject({ endings: [], scannedToMs: 3_000, next: expect.any(String) })
  const rest = { limit: 5, scanAtMost: 100, before: page.next }
  const { endings, scannedToMs } = await listEndings([ledger!], { leastSeverity: 'critical' }, rest)
  expect(endings.map(({ atMs }) => atMs)).toEqual([2_000, 1_000])
  expect(scannedToMs).toBeUndefined()
})

test.each(['', 'x', '!!', 'W10', Buffer.from('[1,2]').toString('base64url')])(
  'the cursor "%s" is refused',
  async (before) => {
    const [ledger] = await threeLedgers()
    await expect(listEndings([ledger!], {}, { limit: 1, scanAtMost: 1, before })).rejects.toThrow(
      CursorError,
    )
  },
)
