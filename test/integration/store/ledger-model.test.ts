/*
 * Any order of what replicas, operators and retention do to one ledger, each script possibly executed twice
 * or cut off by a crash. After every step what is counted agrees with what is there, no two replicas hold
 * the same, and every send that may be a repeat says so. In the end every item is final, nothing that
 * collects is left, and no message was sent again as if for the first time. What once went wrong is
 * performed first, step by step.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readAnsweredMessage } from '../../../src/delivery/claims.ts'
import { createRerouter, rerouteAll } from '../../../src/delivery/relief/reroute.ts'
import { severityRank } from '../../../src/event.ts'
import { blockedGroup, type SinkDigest } from '../../../src/grouping/placement.ts'
import { unfreezeMessage } from '../../../src/grouping/freeze.ts'
import { createSchedule } from '../../../src/lib/cron-schedule.ts'
import { createMetrics } from '../../../src/lib/metrics/metrics.ts'
import type { Verdict } from '../../../src/routing/suppression.ts'
import type { SinkReason } from '../../../src/sinks/sink.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { sumPending } from '../../../src/store/accounts.ts'
import {
  discardItem,
  groupItems,
  makeRetriesDue,
  moveItem,
  readPendingRefs,
  readSinkNames,
  releaseDetail,
  resendItem,
} from '../../../src/store/pending-items.ts'
import { readDueRefs } from '../../support/due-refs.ts'
import { pendingStates, readRecord, scanRecords } from '../../../src/store/records.ts'
import { type Outcome, peekBatch, sealBatch } from '../../support/attempts.ts'
import { relievedAs } from '../../support/failover.ts'
import { aGatheringRig, around, type GatheringRig } from '../../support/grouping.ts'
import {
  expectConservation,
  expectNothingStranded,
  redisForTests,
  scanPendingItems,
  takeIn,
} from '../../support/ledger.ts'
import { leaseMs, RehearsedClaims } from '../../support/rehearsed-claims.ts'
import { aRehearsedSink, type RehearsedSink } from '../../support/rehearsed-sink.ts'
import { runs } from '../../support/runs.ts'
import { traces } from './ledger-traces.ts'

const given = redisForTests()

const sinks = ['soc', 'oncall', 'siem'] as const
const uids = Array.from({ length: 10 }, (_, n) => `paste/site/${n}`)
const batchWaits = { soc: false, oncall: false, siem: false } as const

const outcomes = {
  delivered: { outcome: 'delivered', answer: '204' },
  unsent: { outcome: 'unsent' },
  later: { outcome: 'retry', inMs: 2 * leaseMs, counts: true, reason: 'unavailable' },
  again: { outcome: 'retry', inMs: 0, counts: true, reason: 'unavailable' },
  lost: { outcome: 'retry', inMs: 0, counts: true, answerLost: true, reason: 'timeout' },
  dead: { outcome: 'dead', reason: 'invalid' },
  split: { outcome: 'split', reason: 'invalid' },
} satisfies Record<string, Outcome>

/** Calls to scripts before which the process may die. */
const crashes = [
  'claim-timer',
  'freeze-members',
  'close-flush',
  'claim-due',
  'advance-claims',
  'settle-members',
  'drop-message',
  'unfreeze-message',
  'redirect-item',
  'group-items',
] as const

/** Calls to scripts after which a process may sleep. */
const naps = ['claim-timer', 'freeze-members', 'close-flush'] as const

const noon: SinkDigest = {
  schedule: createSchedule({ cron: '0 12 * * *', timeZone: 'UTC' }),
  timeZone: 'UTC',
  immediate: 'critical',
  sendsEmpty: false,
  maxItems: 3,
}

class Killed extends Error {}

interface World {
  rig: GatheringRig
  ledger: AccountLedger
  claims: RehearsedClaims
  sinks: Map<string, RehearsedSink>
  rules: Map<string, 'none' | 'silence' | 'mute'>
  /** Script and how many more calls until the process dies before it. */
  crash: { script: string; left: number } | undefined
  /** After which script the process sleeps through the turns of others, and whether it runs that again. */
  nap: { script: string; isAgain: boolean; meanwhile: () => Promise<void> } | undefined
  /** Every script is executed twice, its first reply lost. */
  isTwice: boolean
  /** Retention has dropped records: what went where is not known any more. */
  hasForgotten: boolean
  reroute: (sink: string) => Promise<unknown>
}

async function aWorld(): Promise<World> {
  const keys = given.keys()
  const raw = await given.ledger({ keys })
  const ledger = { ...raw }
  const all = [
    aRehearsedSink('soc', { type: 'slack' }),
    aRehearsedSink('oncall', { type: 'email' }),
    aRehearsedSink('siem'),
  ]
  const rules: World['rules'] = new Map()
  const judge = (uid: string): Verdict => {
    const rule = rules.get(uid) ?? 'none'
    if (rule === 'silence') return { act: 'suppress', reason: 'silence', rule: 's1' }
    const untilMs = rig.clock.now() + 50_000
    return rule === 'mute' ? { act: 'hold', rule: 'night', untilMs } : { act: 'send' }
  }
  const rerouter = createRerouter({
    // every attempt that was cut off counts as dead at once
    outlets: relievedAs(
      all.map((one) => ({ ...one, sendTimeoutMs: -60_000 })),
      { fallbacks: { soc: 'oncall', siem: 'oncall' } },
    ),
    ledgers: [ledger],
    drains: { announceChanges: () => undefined },
    metrics: createMetrics(),
  })
  const rig: GatheringRig = aGatheringRig({
    rerouter,
    redis: given.redis,
    keys,
    ledgers: [ledger],
    sinks: all,
    digests: { oncall: noon },
    gate: judge,
  })
  const paging = { mayContinue: () => Promise.resolve(true), alive: () => undefined }
  const world: World = {
    rig,
    ledger,
    claims: new RehearsedClaims(raw),
    sinks: new Map(all.map((one) => [one.name, one])),
    rules,
    crash: undefined,
    nap: undefined,
    isTwice: false,
    hasForgotten: false,
    reroute: (sink) => rerouteAll({ ledger, sink, rerouter, nowMs: rig.clock.now() }, paging),
  }
  around(ledger, async (script, run) => {
    if (world.crash?.script === script && (world.crash.left -= 1) === 0) {
      world.crash = undefined
      throw new Killed(script)
    }
    const answer = await run()
    const nap = world.nap?.script === script ? world.nap : undefined
    if (nap) world.nap = undefined
    await nap?.meanwhile()
    return world.isTwice || nap?.isAgain ? run() : answer
  })
  return world
}

/** What steps choose from. */
const draws = {
  replica: fc.constantFrom('r1', 'r2'),
  sink: fc.constantFrom(...sinks),
  to: fc.constantFrom(...sinks),
  uid: fc.constantFrom(...uids),
  /** Which of those that are there. */
  place: fc.nat(9_999),
  count: fc.integer({ min: 1, max: 4 }),
  events: fc.array(
    fc.record({
      uid: fc.constantFrom(...uids),
      severity: fc.constantFrom('low', 'high', 'critical', 'a new word'),
      kind: fc.constantFrom('batch', 'group', 'single', 'batch', 'other', 'backlog'),
      to: fc.subarray([...sinks]),
      wantsDetail: fc.nat(3).map((n) => n === 0),
    }),
    { minLength: 1, maxLength: 5, size: 'max' },
  ),
  feed: fc.constantFrom('one', 'two'),
  malformed: fc.nat(5),
  outcome: fc.constantFrom(...(Object.keys(outcomes) as (keyof typeof outcomes)[])),
  answer: fc.constantFrom<(SinkReason | 'ok')[]>('unavailable', 'timeout', 'invalid', 'ok'),
  rule: fc.constantFrom('none' as const, 'silence' as const, 'mute' as const),
  waitMs: fc.constantFrom(3_000, 12_000, 40_000, 400_000, 90_000_000),
  backMs: fc.constantFrom(undefined, 0, leaseMs),
  isJump: fc.nat(2).map((n) => n === 0),
  crash: fc.constantFrom(...crashes),
  nap: fc.constantFrom(...naps),
  /** Left out: that of the configuration. */
  historyMs: fc.constantFrom(undefined, 0),
  /** Every script, or the one after which a process slept. */
  twice: fc.boolean(),
}
export type Draws = {
  [name in keyof typeof draws]: (typeof draws)[name] extends fc.Arbitrary<infer T> ? T : never
}

/** What a trace does not say. */
const usual: Draws = {
  replica: 'r1',
  sink: 'soc',
  to: 'siem',
  uid: uids[0]!,
  place: 0,
  count: 4,
  events: [],
  feed: 'one',
  malformed: 5,
  outcome: 'delivered',
  answer: 'ok',
  rule: 'none',
  waitMs: 12_000,
  backMs: undefined,
  isJump: false,
  crash: 'close-flush',
  nap: 'close-flush',
  historyMs: undefined,
  twice: false,
}

function pick<T>(among: readonly T[], at: number): T | undefined {
  return among[at % Math.max(1, among.length)]
}

/** A step of a trace, and what it chooses where that matters. */
export type Doing = [step: keyof typeof steps, chosen?: Partial<Draws>]

/** Resolves with false where there was nothing to do. */
type Step = (world: World, drawn: Draws) => unknown

/** By weight. */
const steps = {
  page: [8, takePage],
  // as replicas do, of which each knows what it holds
  claim: [
    7,
    ({ claims }, { replica, sink, count, twice }) => claims.claim(replica, sink, count, twice),
  ],
  open: [8, ({ claims, ledger }, { replica, place }) => claims.open(replica, place, ledger)],
  renew: [2, ({ claims, ledger }, { replica }) => claims.renew(replica, ledger)],
  expire: [4, ({ claims }, { replica, place, isJump }) => claims.expire(replica, place, isJump)],
  'give back': [
    1,
    ({ claims, ledger }, { replica, backMs }) => claims.giveBack(replica, backMs, ledger),
  ],
  'begin any': [3, beginAny],
  settle: [
    7,
    ({ claims, ledger }, { place, outcome }) => claims.settle(place, outcomes[outcome], ledger),
  ],
  freeze: [
    4,
    ({ claims, ledger }, { replica, count }) => claims.freeze(replica, 'siem', count, ledger),
  ],
  // as a whole replica does
  wait: [4, ({ rig }, { waitMs }) => void (rig.clock.aheadMs += waitMs)],
  flush: [5, ({ rig }) => rig.flush()],
  compose: [4, async ({ rig }) => (await rig.seal()).length > 0],
  deliver: [5, (world, { sink }) => deliverDue(world, sink)],
  answer: [3, (world, { sink, answer }) => world.sinks.get(sink)!.next(answer)],
  rule: [2, ({ rules }, { uid, rule }) => void rules.set(uid, rule)],
  reroute: [2, ({ reroute }, { sink }) => reroute(sink)],
  gather: [3, gatherSingles],
  release: [2, (world, { uid }) => release(world, uid)],
  unfreeze: [2, unfreeze],
  wake: [1, ({ ledger }, { sink }) => makeRetriesDue(ledger, sink, { max: 2 })],
  crash: [
    2,
    (world, { crash: script, place }) => void (world.crash = { script, left: 1 + (place % 2) }),
  ],
  nap: [1, nap],
  // as operators and retention do
  move: [1, move],
  discard: [
    1,
    (world, drawn) => redirect(world, drawn, (ref) => discardItem(world.ledger, ref, 'ann')),
  ],
  resend: [2, resend],
  // a sink leaves the configuration, and comes back
  leave: [1, ({ ledger }, { sink }) => ledger.redis.sadd(ledger.key('gone'), sink)],
  'come back': [2, ({ ledger }, { sink }) => ledger.redis.srem(ledger.key('gone'), sink)],
  trim: [1, trim],
} satisfies Record<string, [weight: number, run: Step]>

async function takePage(world: World, { events: drawn, feed, malformed: n }: Draws): Promise<void> {
  const { rig, ledger } = world
  const events = drawn.map(({ uid, severity, kind, to, wantsDetail }) => {
    const grouping = { waitMs: kind === 'single' ? 0 : 10_000, labels: { kind } }
    const planned = rig.event(
      { uid, severity },
      { sinks: kind === 'batch' ? ['siem'] : to, grouping, isBacklog: kind === 'backlog' },
    )
    return { kind, event: { ...planned, wantsDetail } }
  })
  const malformed = n < 2 ? [{ uid: null, problem: 'x', raw: `{"x":${n}}` }] : []
  const [batched, others] = [true, false].map((isBatched) =>
    events.filter(({ kind }) => (kind === 'batch') === isBatched).map(({ event }) => event),
  )
  await takeIn(ledger, others!, { feed, malformed })
  if (batched!.length > 0) await takeIn(ledger, batched!, { feed, batchWaitMs: 1 })
  for (const { uid, severity } of drawn) {
    const record = await readRecord(ledger, ledger.fingerprints.recordId(uid))
    if (record && severityRank(record.severity) < severityRank(severity))
      world.claims.faults.push(`${uid} was shown as ${severity}, and is ${record.severity}`)
  }
}

/** While a process sleeps, others have a turn before each of the events comes. */
function nap(world: World, drawn: Draws): void {
  async function meanwhile(): Promise<void> {
    for (const event of drawn.events) {
      world.rig.clock.aheadMs += drawn.waitMs
      await world.rig.flush()
      await deliverDue(world, drawn.sink)
      await takePage(world, { ...drawn, events: [event] })
    }
  }
  world.nap = { script: drawn.nap, isAgain: drawn.twice, meanwhile }
}

/** What workers would do: everything that is due to a sink, once. */
async function deliverDue({ rig, ledger }: World, name: string): Promise<void> {
  for (const ref of await readDueRefs(ledger, name, rig.clock.now(), { offset: 0, count: 50 })) {
    if (!ref.startsWith('c:')) await rig.deliver(ref)
    else {
      const refs = (await peekBatch(ledger, name, 100)).map((member) => member.ref)
      await sealBatch(ledger, { sink: name, destination: name }, refs)
    }
  }
}

/** As somebody does who still knows the item, in whatever state it is. */
async function beginAny({ ledger, claims }: World, { place }: Draws): Promise<boolean> {
  const refs: string[] = []
  for await (const { recordId, items } of scanRecords(ledger)) {
    for (const { index, sink } of items) refs.push(`i:${recordId}:${index}:${sink}`)
  }
  const batches = await readPendingRefs(ledger, 'siem', { offset: 0, count: 100 })
  refs.push(...batches.filter((ref) => ref.startsWith('b:')))
  const ref = pick(refs.toSorted(), place)
  return ref !== undefined && claims.beginAny(ref, ledger)
}

async function gatherSingles({ ledger }: World, { sink: name }: Draws): Promise<void> {
  const refs = await readPendingRefs(ledger, name, { offset: 0, count: 100 })
  const places = name === 'siem' ? {} : { [name]: blockedGroup(name) }
  const singles = refs.filter((ref) => ref.startsWith('i:'))
  await groupItems(ledger, singles, places)
}

async function release({ ledger, claims }: World, uid: string): Promise<void> {
  const recordId = ledger.fingerprints.recordId(uid)
  const waiting = (await readRecord(ledger, recordId))?.items ?? []
  const full = { detail: { name: 'x' } }
  for (const { ref, kind } of await releaseDetail(ledger, recordId, batchWaits, full)) {
    const { groupId } = waiting[Number(ref.split(':')[2])]!
    if (groupId !== undefined && kind !== 'group') claims.faults.push(`${ref} has lost its group`)
  }
}

/** As if whatever is being sent had died. */
async function unfreeze({ ledger, claims }: World, { sink, place }: Draws): Promise<boolean> {
  const refs = await readPendingRefs(ledger, sink, { offset: 0, count: 100 })
  const messages = refs.filter((one) => one.startsWith('b:'))
  const ref = pick(messages, place)
  if (ref === undefined) return false
  const batchWaitMs = sink === 'siem' ? 1 : undefined
  const isAnswered = (await readAnsweredMessage(ledger, ref)) !== undefined
  const options = { ledgers: [ledger], staleMs: 0, batchWaitMs, groups: {} }
  const result = await unfreezeMessage(ledger, ref, options)
  if (isAnswered && result !== 'answered') claims.faults.push(`${ref} was answered, and unfrozen`)
  return true
}

type Placed = Parameters<typeof moveItem>[1]

async function redirect(
  { ledger }: World,
  { sink, uid }: Draws,
  act: (ref: string, placed: Placed) => Promise<unknown>,
): Promise<boolean> {
  const answers: unknown[] = []
  for await (const placed of scanPendingItems(ledger)) {
    const isMeant = placed.item.sink === sink && placed.record.uid === uid
    if (isMeant) answers.push(await act(placed.ref, placed))
  }
  return answers.includes('done')
}

async function move(world: World, drawn: Draws): Promise<boolean> {
  const { to } = drawn
  if (to === drawn.sink) return false
  return redirect(world, drawn, (ref, placed) =>
    moveItem(
      world.ledger,
      { ...placed, ref },
      [{ sink: to, destination: to, batchWaitMs: undefined }],
      'ann',
    ),
  )
}

async function resend({ ledger }: World, { uid }: Draws): Promise<boolean> {
  const recordId = ledger.fingerprints.recordId(uid)
  const answers: unknown[] = []
  for (const { index, sink } of (await readRecord(ledger, recordId))?.items ?? []) {
    const ref = `i:${recordId}:${index}:${sink}`
    answers.push(await resendItem(ledger, ref, { batchWaitMs: undefined, by: 'ann' }))
  }
  return answers.includes('done')
}

/** The endings that go with what is dropped come back, so that they can be counted. */
async function trim(world: World, { historyMs }: Draws): Promise<void> {
  const { ledger } = world
  world.hasForgotten ||= historyMs === 0
  const copy = ledger.key('ended-before')
  await given.redis.copy(ledger.key('ended'), copy)
  await ledger.run('trim-records', historyMs ?? ledger.retention.history, 2_000)
  if ((await given.redis.exists(copy)) === 1) await given.redis.rename(copy, ledger.key('ended'))
}

/** Who holds what, what is kept of what waits, and which dead letters are listed. */
async function faultsOf({ ledger, claims }: World): Promise<string[]> {
  const faults = [...claims.faults]
  const due = new Set<string>()
  const letters: string[] = []
  for (const name of await readSinkNames(ledger)) {
    for (const ref of await ledger.redis.zrange(ledger.key('due', name), '0', '-1')) due.add(ref)
    letters.push(...(await ledger.redis.zrange(ledger.key('dead', name), '0', '-1')))
  }
  const dead: string[] = []
  for (const ref of await ledger.redis.hkeys(ledger.key('claims'))) {
    if (!due.has(ref)) faults.push(`${ref} is claimed and not due`)
  }
  for (const name of sinks) {
    const isEmpty = (await ledger.redis.exists(ledger.key('collect', name))) === 0
    if (isEmpty && due.has(`c:${name}`)) faults.push(`the batch of ${name} is due and empty`)
  }
  for await (const { recordId, items } of scanRecords(ledger)) {
    for (const { index, sink, state } of items)
      if (state === 'dead') dead.push(`i:${recordId}:${index}:${sink}`)
    if (!items.some(isPending)) continue
    for (const name of [ledger.key('rec', recordId), ledger.key('pay', recordId)]) {
      if ((await ledger.redis.pttl(name)) !== -1)
        faults.push(`${name} is pending and may be forgotten`)
    }
  }
  if (String(dead.toSorted()) !== String(letters.toSorted()))
    faults.push(`dead: ${dead.join(' ')}, letters: ${letters.join(' ')}`)
  return faults
}

/** Time passes and nothing disturbs any more. */
async function settleAll(world: World): Promise<void> {
  const { rig, ledger, claims } = world
  Object.assign(world, { crash: undefined, nap: undefined, isTwice: false })
  world.rules.clear()
  await claims.expireAll()
  await given.redis.del(ledger.key('gone'))
  for (let round = 0; round < 12; round += 1) {
    rig.clock.aheadMs += 90_000_000
    // Redis' own clock does not go with it: how many messages a destination may get now
    await given.redis.del(...sinks.map((name) => ledger.key('flushes', name)))
    for (const uid of uids) await release(world, uid)
    await rig.seal()
    for (const name of await readSinkNames(ledger)) await deliverDue(world, name)
  }
}

/** What should not be there any more, or should not have been sent. */
async function leftovers(world: World): Promise<string[]> {
  const { ledger, sinks: all } = world
  const { sinks: accounts } = await expectConservation(ledger)
  const waiting = Object.entries(accounts).filter(([, account]) => sumPending(account) > 0)
  const names = await given.redis.keys(`${ledger.key()}:*`)
  return [
    ...waiting.map(([name]) => `pending for ${name}`),
    ...names.filter((name) => /:(?:collect|members|batch|due):/.test(name)),
    ...[...all.values()].flatMap(unsaidRepeats),
    ...(world.hasForgotten ? [] : await gone(ledger)),
  ]
}

/** What left each of its sinks for another one. */
async function gone(ledger: AccountLedger): Promise<string[]> {
  const found: string[] = []
  for await (const { uid, items } of scanRecords(ledger)) {
    const isGone = items.length > 0 && items.every(({ state }) => state === 'diverted')
    if (isGone) found.push(`${uid} went nowhere`)
  }
  return found
}

function isPending({ state }: { state: string }): boolean {
  return (pendingStates as readonly string[]).includes(state)
}

/** A message is never sent again as if for the first time; single ones may be, where an operator asked. */
function unsaidRepeats({ received }: RehearsedSink): string[] {
  const first = received.filter(({ mayBeRepeat, attempt }) => !mayBeRepeat && attempt === 1)
  const ids = first.map(({ id }) => id).filter((id) => !id.startsWith('e'))
  return ids.filter((id, at) => ids.indexOf(id) !== at)
}

/** Resolves with whether there was something to do. */
async function perform(world: World, name: keyof typeof steps, drawn: Draws): Promise<boolean> {
  world.isTwice = drawn.twice && name !== 'nap'
  const answer = await Promise.resolve(steps[name][1](world, drawn)).catch((error: unknown) => {
    if (!(error instanceof Killed)) throw error
  })
  await world.claims.follow()
  await expectConservation(world.ledger)
  expect(world.claims.faults).toEqual([])
  return answer !== false
}

async function expectWhole(world: World): Promise<void> {
  expect(await faultsOf(world)).toEqual([])
  await expectNothingStranded(world.ledger)
}

/** What is left of it all in the end. */
async function endOf(world: World): Promise<string[]> {
  await settleAll(world)
  await expectNothingStranded(world.ledger)
  return leftovers(world)
}

test.each(Object.entries(traces))('what once went wrong does not: %s', async (_wrong, trace) => {
  const world = await aWorld()
  for (const [name, chosen] of trace) {
    const isDone = await perform(world, name, { ...usual, ...chosen })
    expect({ [name]: isDone }).toEqual({ [name]: true })
    await expectWhole(world)
  }
  expect([world.crash, world.nap]).toEqual([undefined, undefined]) // each has come
  expect(await endOf(world)).toEqual([])
})

const step = fc.oneof(
  ...(Object.keys(steps) as (keyof typeof steps)[]).map((name) => {
    const arbitrary = fc.record({ name: fc.constant(name), drawn: fc.record(draws) })
    return { weight: steps[name][0], arbitrary }
  }),
)

const numRuns = runs({ short: 25, long: 80 })

test(
  'whatever happens in whatever order, once, twice or cut off, the ledger stays whole and all of it ends',
  async () => {
    const history = fc.array(step, { minLength: 30, maxLength: 80, size: 'max' })
    await fc.assert(
      fc.asyncProperty(history, async (all) => {
        const world = await aWorld()
        for (const [at, { name, drawn }] of all.entries()) {
          await perform(world, name, drawn)
          if (at % 5 === 4) await expectWhole(world)
        }
        expect(await endOf(world)).toEqual([])
      }),
      { numRuns, seed: 15 },
    )
  },
  60_000 * numRuns,
)
