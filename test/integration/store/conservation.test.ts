import fc from 'fast-check'
import { expect, test } from 'vitest'
import { advanceClaims, claimDue } from '../../../src/delivery/claims.ts'
import { unfreezeMessage } from '../../../src/grouping/freeze.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import type { MalformedItem } from '../../../src/store/intake.ts'
import {
  rerouteItem,
  overflowItems,
  releaseDetail,
  type SinkBatchWaits,
  readSinkNames,
  makeRetriesDue,
} from '../../../src/store/pending-items.ts'
import { discardDeadLetter, replayDeadLetter } from '../../support/acts.ts'
import {
  type Item,
  pendingStates,
  readItems,
  readPayload,
  scanRecords,
} from '../../../src/store/records.ts'
import { makeDue, type Outcome, peekBatch, sealBatch } from '../../support/attempts.ts'
import {
  expectConservation,
  expectNothingStranded,
  redisForTests,
  routed,
  takeIn,
  waitingIn,
} from '../../support/ledger.ts'
import { leaseMs, RehearsedClaims } from '../../support/rehearsed-claims.ts'
import { runs } from '../../support/runs.ts'

const tests = redisForTests()

/*
 * Any sequence of what replicas do to one ledger, each step possibly executed twice, as happens when the
 * connection breaks before the reply. After every step the ledger is whole, no two replicas hold the same,
 * every attempt counts once and every send that may be a repeat has said so. In the end all of it leaves by
 * claims alone.
 */

const uids = Array.from({ length: 10 }, (_, n) => `a/b/${n}`)
const destinations = ['soc', 'siem', 'oncall:a', 'oncall:b']
const replicas = ['r1', 'r2']
const outcomes: Outcome[] = [
  { outcome: 'delivered', answer: '204' },
  { outcome: 'unsent' },
  { outcome: 'retry', inMs: 2 * leaseMs, counts: true, reason: 'unavailable' },
  { outcome: 'retry', inMs: 0, counts: true, reason: 'unavailable' },
  { outcome: 'retry', inMs: 0, counts: true, answerLost: true, reason: 'timeout' },
  { outcome: 'dead', reason: 'invalid' },
  { outcome: 'split', reason: 'invalid' },
  { outcome: 'split', reason: 'invalid' },
]

const place = fc.nat({ max: 1_000 })
const events = fc.array(
  fc.record({
    uid: fc.constantFrom(...uids),
    severity: fc.constantFrom('low', 'high', 'critical', 'a new word'),
    to: fc.subarray(destinations),
    wantsDetail: fc.nat({ max: 3 }).map((one) => one === 0),
  }),
  { minLength: 2, maxLength: 6, size: 'max' },
)

type Step = { twice: boolean; batches: boolean } & (
  | {
      do: 'page'
      feed: string
      events: { uid: string; severity: string; to: string[]; wantsDetail: boolean }[]
      malformed: string[]
    }
  | { do: 'claim'; replica: string; sink: string; max: number }
  | { do: 'open' | 'renew' | 'expire' | 'jump'; replica: string; place: number }
  | { do: 'give back'; replica: string; inMs: number | undefined }
  | { do: 'begin any' | 'replay' | 'discard' | 'release'; place: number }
  | { do: 'unseal' | 'divert' | 'overflow'; place: number }
  | { do: 'settle'; place: number; outcome: Outcome }
  | { do: 'seal'; replica: string; sink: string; count: number }
  | { do: 'wake'; sink: string }
)

const always = { twice: fc.boolean(), batches: fc.boolean() }
const sink = fc.constantFrom('soc', 'siem', 'oncall')
const replica = fc.constantFrom(...replicas)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      ...always,
      do: fc.constant('page'),
      feed: fc.constantFrom('one', 'two'),
      events,
      malformed: fc.array(fc.constantFrom('{"x":1}', '{"x":2}'), { maxLength: 2 }),
    }),
  },
  {
    weight: 9,
    arbitrary: fc.record({
      ...always,
      do: fc.constant('claim'),
      replica,
      sink,
      max: fc.integer({ min: 1, max: 4 }),
    }),
  },
  { weight: 12, arbitrary: fc.record({ ...always, do: fc.constant('open'), replica, place }) },
  {
    weight: 7,
    arbitrary: fc.record({
      ...always,
      do: fc.constantFrom('renew', 'expire', 'jump', 'expire'),
      replica,
      place,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      ...always,
      do: fc.constant('give back'),
      replica,
      inMs: fc.constantFrom(undefined, 0, leaseMs),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      ...always,
      do: fc.constant('settle'),
      place,
      outcome: fc.constantFrom(...outcomes),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      ...always,
      do: fc.constant('seal'),
      replica,
      sink: fc.constant('siem'),
      count: fc.integer({ min: 2, max: 4 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ ...always, do: fc.constantFrom('wake'), sink }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      ...always,
      do: fc.constantFrom('begin any', 'replay', 'discard', 'release'),
      place,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      ...always,
      do: fc.constantFrom('unseal', 'divert', 'overflow'),
      place,
    }),
  },
) as fc.Arbitrary<Step>

/** Runs every script twice and answers as the second time: what a broken connection makes of a call. */
function executedTwice(ledger: AccountLedger): AccountLedger {
  const run: AccountLedger['run'] = async (script, ...args) => {
    await ledger.run(script, ...args)
    return ledger.run(script, ...args)
  }
  return {
    ...ledger,
    run,
    runJson: async <T>(script: string, ...args: (string | number)[]) =>
      JSON.parse(String(await run(script, ...args))) as T,
  }
}

interface Rehearsal {
  ledger: AccountLedger
  claims: RehearsedClaims
}

function pick<T>(among: T[], at: number): T | undefined {
  return among[at % Math.max(1, among.length)]
}

async function dueRefs(ledger: AccountLedger): Promise<string[]> {
  const bySink = (await readSinkNames(ledger)).toSorted()
  const refs = await Promise.all(
    bySink.map((name) => ledger.redis.zrange(ledger.key('due', name), '0', '-1')),
  )
  return refs.flat()
}

function modesOf({ batches }: Step): SinkBatchWaits {
  return { soc: false, oncall: false, siem: batches ? 1 : false }
}

async function perform({ ledger: stored, claims }: Rehearsal, next: Step): Promise<void> {
  const ledger = next.twice ? executedTwice(stored) : stored
  const modes = modesOf(next)
  switch (next.do) {
    case 'page':
      return takePage(ledger, next)
    case 'claim':
      return claims.claim(next.replica, next.sink, next.max, next.twice)
    case 'open':
      return claims.open(next.replica, next.place, ledger)
    case 'renew':
      return claims.renew(next.replica, ledger)
    case 'expire':
    case 'jump':
      return claims.expire(next.replica, next.place, next.do === 'jump')
    case 'give back':
      return claims.giveBack(next.replica, next.inMs, ledger)
    case 'begin any': {
      const ref = pick(await everyRef(stored), next.place)
      return ref === undefined ? undefined : claims.beginAny(ref, ledger)
    }
    case 'settle':
      return claims.settle(next.place, next.outcome, ledger)
    case 'seal':
      return claims.freeze(next.replica, next.sink, next.count, ledger)
    case 'wake':
      await makeRetriesDue(ledger, next.sink, 2)
      return undefined
    case 'unseal': {
      const sealed = (await dueRefs(ledger)).filter((ref) => ref.startsWith('b:'))
      const ref = pick(sealed, next.place)
      return ref === undefined ? undefined : unseal(ledger, ref, modes)
    }
    case 'divert': {
      const ref = pick(await everyRef(stored), next.place)
      return ref === undefined ? undefined : divert(ledger, ref)
    }
    case 'overflow': {
      const ref = pick(await everyRef(stored), next.place)
      if (ref !== undefined)
        await overflowItems(ledger, [ref], { sink: ref.split(':').at(-1)!, keep: 0 })
      return undefined
    }
    case 'release':
      return release(ledger, pick(uids, next.place)!, modes)
    case 'replay':
    case 'discard': {
      const letters = await deadLetters(ledger)
      const ref = pick(letters, next.place)
      if (ref === undefined) return undefined
      const wait = modes[ref.split(':')[3]!] || undefined
      await (next.do === 'replay'
        ? replayDeadLetter(ledger, ref, wait)
        : discardDeadLetter(ledger, ref))
    }
  }
}

async function takePage(ledger: AccountLedger, next: Extract<Step, { do: 'page' }>): Promise<void> {
  const malformed: MalformedItem[] = next.malformed.map((raw) => ({ uid: null, problem: 'x', raw }))
  const routedEvents = next.events.map(({ uid, severity, to, wantsDetail }) =>
    routed({ uid, severity }, to, wantsDetail),
  )
  const waits = next.batches ? { batchWaitMs: 1 } : {}
  await takeIn(ledger, routedEvents, { feed: next.feed, malformed, ...waits })
}

/** As if whatever is being sent had died. */
async function unseal(ledger: AccountLedger, ref: string, modes: SinkBatchWaits): Promise<void> {
  const batchWaitMs = modes[ref.split(':')[2]!] || undefined
  await unfreezeMessage(ledger, ref, { ledgers: [ledger], staleMs: 0, batchWaitMs, groups: {} })
}

async function divert(ledger: AccountLedger, ref: string): Promise<void> {
  const [found] = await readItems(ledger, [ref])
  const targets = [{ sink: 'oncall', destination: 'oncall:b', batchWaitMs: undefined }]
  if (found) await rerouteItem(ledger, found, { to: 'oncall', targets, staleMs: 0 })
}

async function release(ledger: AccountLedger, uid: string, modes: SinkBatchWaits): Promise<void> {
  const recordId = ledger.fingerprints.recordId(uid)
  const payload = await readPayload(ledger, recordId)
  await releaseDetail(
    ledger,
    recordId,
    modes,
    payload && { payload: { ...payload, detail: { name: 'x' } } },
  )
}

/** Items in any state, as somebody may still know them. */
async function everyRef(ledger: AccountLedger): Promise<string[]> {
  const found: string[] = []
  for await (const record of scanRecords(ledger)) {
    for (const item of record.items) found.push(`i:${record.recordId}:${item.index}:${item.sink}`)
  }
  return found.toSorted()
}

async function deadLetters(ledger: AccountLedger): Promise<string[]> {
  const names = (await readSinkNames(ledger)).toSorted()
  return (
    await Promise.all(names.map((name) => ledger.redis.zrange(ledger.key('dead', name), '0', '-1')))
  ).flat()
}

/** Every lease ends, every sink is back and every wait is over: claims alone bring all of it to its end. */
async function expectAllLeaves({ ledger, claims }: Rehearsal): Promise<void> {
  const modes = { soc: false, oncall: false, siem: false } as const
  for (const uid of uids) await release(ledger, uid, modes)
  await claims.expireAll()
  for (const ref of await dueRefs(ledger)) await makeDue(ledger, ref)
  for (const name of Object.keys(modes)) while (await leaveSome(ledger, name));
  const { sinks } = await expectConservation(ledger)
  for (const [name, account] of Object.entries(sinks)) {
    expect({ [name]: waitingIn(account) }).toEqual({ [name]: {} })
  }
}

async function leaveSome(ledger: AccountLedger, name: string): Promise<boolean> {
  const holder = { owner: 'last', leaseMs, by: 'last' }
  const { claims } = await claimDue(ledger, holder, { sink: name, max: 3, leastRank: 1 })
  for (const { ref, kind } of claims) {
    if (kind === 'collection') {
      const refs = (await peekBatch(ledger, name, 100)).map((member) => member.ref)
      await sealBatch(ledger, { sink: name, destination: name }, refs)
    } else {
      await advanceClaims(ledger, holder, { begin: [{ ref, token: 'last' }] })
      const outcome = { outcome: 'delivered' } as const
      await advanceClaims(ledger, holder, { settle: [{ ref, token: 'last', outcome }] })
    }
  }
  return claims.length > 0
}

/** What breaks the rule that every item is either final and nowhere due, or pending and reachable. */
async function faultsOf(ledger: AccountLedger): Promise<string[]> {
  const faults: string[] = []
  const due = new Set(await dueRefs(ledger))
  const claimed = await ledger.redis.hkeys(ledger.key('claims'))
  for (const ref of claimed) if (!due.has(ref)) faults.push(`${ref} is claimed and not due`)
  for await (const record of scanRecords(ledger)) {
    const names = [ledger.key('rec', record.recordId), ledger.key('pay', record.recordId)]
    const livesMs = await Promise.all(names.map((name) => ledger.redis.pttl(name)))
    const isKept = livesMs.every((lifeMs) => lifeMs === -1) // both are there, and for good
    for (const item of record.items) {
      const ref = `i:${record.recordId}:${item.index}:${item.sink}`
      const isPending = (pendingStates as readonly string[]).includes(item.state)
      if (!isPending && due.has(ref)) faults.push(`${ref} is ${item.state} and due`)
      if (!isPending) continue
      const isInReach = await isReachable(ledger, due, ref, item)
      if (!isInReach) faults.push(`${ref} is out of reach: ${JSON.stringify(item)}`)
      if (!isKept) faults.push(`${ref} is pending and may be forgotten`)
    }
  }
  return faults
}

async function isReachable(
  ledger: AccountLedger,
  due: Set<string>,
  ref: string,
  item: Item,
): Promise<boolean> {
  if (item.state === 'batch') {
    const sealed = [...due].filter((other) => other.startsWith('b:'))
    const texts = await Promise.all(
      sealed.map((other) => ledger.redis.get(ledger.key('batch', other.split(':')[1]!))),
    )
    return (
      texts.filter((text) => (JSON.parse(text!) as { m: string[] }).m.includes(ref)).length === 1
    )
  }
  if (due.has(ref)) return true
  const isCollected = (await ledger.redis.zscore(ledger.key('collect', item.sink), ref)) !== null
  return isCollected && item.state === 'queued' && due.has(`c:${item.sink}`)
}

const numRuns = runs({ short: 8, long: 30 })

test(
  'whatever happens in whatever order, executed once or twice, the ledger stays whole',
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 40, maxLength: 100, size: 'max' }),
        async (steps) => {
          const ledger = await tests.ledger()
          const rehearsal = { ledger: ledger, claims: new RehearsedClaims(ledger) }
          const first = uids.slice(0, 4).map((uid) => routed({ uid }, ['soc', 'siem']))
          await takeIn(ledger, first, { batchWaitMs: 1 }) // so that there is a batch from the start
          for (const next of steps) {
            await perform(rehearsal, next)
            await rehearsal.claims.follow()
            await expectConservation(ledger)
            expect(await faultsOf(ledger)).toEqual([])
            expect(rehearsal.claims.faults).toEqual([])
          }
          await expectNothingStranded(ledger)
          await expectAllLeaves(rehearsal)
        },
      ),
      { numRuns, seed: 15 },
    )
  },
  60_000 * numRuns,
)

test('an event that its own feed shows again, more severe, is a new revision; a duplicate all the same', async () => {
  const ledger = await tests.ledger()
  const show = (severity: string) => takeIn(ledger, [routed({ uid: 'a/b/1', severity })])
  await show('medium')
  expect(await show('critical')).toMatchObject({
    counts: { new: 0, duplicate: 1 },
    changes: [{ sv: 'critical' }],
  })
  expect(await show('critical')).toMatchObject({ counts: { duplicate: 1 }, changes: [] })
  expect(await show('low')).toMatchObject({ counts: { duplicate: 1 }, changes: [] })
  const accounting = await expectConservation(ledger)
  expect(accounting.sinks['soc']).toMatchObject({ created: 2 })
})
