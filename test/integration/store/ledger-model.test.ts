/*
 * Any order of what replicas, operators and retention do to one ledger, each script possibly executed twice
 * or cut off by a crash. After every step what is counted agrees with what is there, no two replicas hold
 * the same, and every send that may be a repeat says so. In the end every item is final, nothing that
 * collects is left, and no message was sent again as if for the first time.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createRerouter, rerouteAll } from '../../../src/delivery/relief/reroute.ts'
import { blockedGroup, type SinkDigest } from '../../../src/grouping/placement.ts'
import { unfreezeMessage } from '../../../src/grouping/freeze.ts'
import { createSchedule } from '../../../src/lib/cron-schedule.ts'
import { createMetrics } from '../../../src/lib/metrics/metrics.ts'
import type { Verdict } from '../../../src/routing/suppression.ts'
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
import { pendingStates, readPayload, scanRecords } from '../../../src/store/records.ts'
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

const given = redisForTests()

const sinks = ['soc', 'oncall', 'siem'] as const
const uids = Array.from({ length: 10 }, (_, n) => `paste/site/${n}`)
const batchWaits = { soc: false, oncall: false, siem: false } as const

const outcomes: Outcome[] = [
  { outcome: 'delivered', answer: '204' },
  { outcome: 'unsent' },
  { outcome: 'retry', inMs: 2 * leaseMs, counts: true, reason: 'unavailable' },
  { outcome: 'retry', inMs: 0, counts: true, reason: 'unavailable' },
  { outcome: 'retry', inMs: 0, counts: true, answerLost: true, reason: 'timeout' },
  { outcome: 'dead', reason: 'invalid' },
  { outcome: 'split', reason: 'invalid' },
]

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
]

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
  /** Every script is executed twice, its first reply lost. */
  isTwice: boolean
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
    isTwice: false,
    reroute: (sink) => rerouteAll({ ledger, sink, rerouter, nowMs: rig.clock.now() }, paging),
  }
  around(ledger, async (script, run) => {
    if (world.crash?.script === script && (world.crash.left -= 1) === 0) {
      world.crash = undefined
      throw new Killed(script)
    }
    if (world.isTwice) await run()
    return run()
  })
  return world
}

/** What a step chooses from: each number picks from a list by its remainder. */
const draws = { a: fc.nat(9_999), b: fc.nat(9_999), c: fc.nat(9_999), twice: fc.boolean() }
type Draws = Record<'a' | 'b' | 'c', number> & { twice: boolean }

function pick<T>(among: readonly T[], at: number): T | undefined {
  return among[at % Math.max(1, among.length)]
}

const replicaOf = ({ a }: Draws): string => pick(['r1', 'r2'], a)!
const sinkOf = ({ b }: Draws): (typeof sinks)[number] => pick(sinks, b)!

type Step = (world: World, drawn: Draws) => unknown

/** By weight. */
const steps: Record<string, [weight: number, run: Step]> = {
  page: [8, takePage],
  // as replicas do, of which each knows what it holds
  claim: [
    7,
    ({ claims }, drawn) =>
      claims.claim(replicaOf(drawn), sinkOf(drawn), 1 + (drawn.c % 4), drawn.twice),
  ],
  open: [8, ({ claims, ledger }, drawn) => claims.open(replicaOf(drawn), drawn.b, ledger)],
  renew: [2, ({ claims, ledger }, drawn) => claims.renew(replicaOf(drawn), ledger)],
  expire: [4, ({ claims }, drawn) => claims.expire(replicaOf(drawn), drawn.b, drawn.c % 3 === 0)],
  'give back': [
    1,
    ({ claims, ledger }, drawn) =>
      claims.giveBack(replicaOf(drawn), pick([undefined, 0, leaseMs], drawn.b), ledger),
  ],
  'begin any': [3, beginAny],
  settle: [7, ({ claims, ledger }, { a, b }) => claims.settle(a, pick(outcomes, b)!, ledger)],
  freeze: [
    4,
    ({ claims, ledger }, drawn) =>
      claims.freeze(replicaOf(drawn), 'siem', 1 + (drawn.b % 3), ledger),
  ],
  // as a whole replica does
  wait: [
    4,
    ({ rig }, { a }) =>
      void (rig.clock.aheadMs += pick([3_000, 12_000, 40_000, 400_000, 90_000_000], a)!),
  ],
  flush: [5, ({ rig }) => rig.flush()],
  compose: [4, ({ rig }) => rig.seal()],
  deliver: [5, (world, drawn) => deliverDue(world, sinkOf(drawn))],
  answer: [
    3,
    (world, drawn) =>
      world.sinks
        .get(sinkOf(drawn))!
        .next(pick(['unavailable', 'timeout', 'invalid', 'ok'], drawn.a)!),
  ],
  rule: [
    2,
    ({ rules }, { a, b }) => void rules.set(pick(uids, a)!, pick(['none', 'silence', 'mute'], b)!),
  ],
  reroute: [2, ({ reroute }, drawn) => reroute(sinkOf(drawn))],
  gather: [3, gatherSingles],
  release: [2, ({ ledger }, { a }) => release(ledger, pick(uids, a)!)],
  unfreeze: [2, unfreeze],
  wake: [1, ({ ledger }, drawn) => makeRetriesDue(ledger, sinkOf(drawn), 2)],
  crash: [
    2,
    (world, { a, b }) => void (world.crash = { script: pick(crashes, a)!, left: 1 + (b % 2) }),
  ],
  // as operators and retention do
  move: [
    1,
    (world, drawn) =>
      redirect(world, drawn, (ref, placed) =>
        moveItem(
          world.ledger,
          { ...placed, ref },
          [{ sink: 'siem', destination: 'siem', batchWaitMs: undefined }],
          'ann',
        ),
      ),
  ],
  discard: [
    1,
    (world, drawn) => redirect(world, drawn, (ref) => discardItem(world.ledger, ref, 'ann')),
  ],
  resend: [2, (world, drawn) => resend(world, drawn)],
  // a sink leaves the configuration, and comes back
  leave: [1, ({ ledger }, drawn) => ledger.redis.sadd(ledger.key('gone'), sinkOf(drawn))],
  'come back': [2, ({ ledger }, drawn) => ledger.redis.srem(ledger.key('gone'), sinkOf(drawn))],
  trim: [1, trim],
}

async function takePage({ rig, ledger }: World, { a, b, c }: Draws): Promise<void> {
  const events = Array.from({ length: 1 + (a % 5) }, (_, n) => {
    const [place, severity, uid] = [b + 7 * n, c + n, pick(uids, a + 3 * n)!]
    const kind = pick(['batch', 'group', 'single', 'batch', 'other', 'backlog'], place)!
    const grouping = { waitMs: kind === 'single' ? 0 : 10_000, labels: { kind } }
    const to = kind === 'batch' ? ['siem'] : sinks.filter((_sink, at) => (place >> at) % 2 === 0)
    const planned = rig.event(
      { uid, severity: pick(['low', 'high', 'critical', 'a new word'], severity)! },
      { sinks: to, grouping, isBacklog: kind === 'backlog' },
    )
    return { kind, event: { ...planned, wantsDetail: severity % 4 === 0 } }
  })
  const malformed = a % 3 === 0 ? [{ uid: null, problem: 'x', raw: `{"x":${b % 2}}` }] : []
  const feed = pick(['one', 'two'], c)!
  const [batched, others] = [true, false].map((isBatched) =>
    events.filter(({ kind }) => (kind === 'batch') === isBatched).map(({ event }) => event),
  )
  await takeIn(ledger, others!, { feed, malformed })
  if (batched!.length > 0) await takeIn(ledger, batched!, { feed, batchWaitMs: 1 })
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
async function beginAny({ ledger, claims }: World, drawn: Draws): Promise<void> {
  const refs: string[] = []
  for await (const { recordId, items } of scanRecords(ledger)) {
    for (const { index, sink } of items) refs.push(`i:${recordId}:${index}:${sink}`)
  }
  const ref = pick(refs.toSorted(), drawn.a)
  if (ref !== undefined) await claims.beginAny(ref, ledger)
}

async function gatherSingles({ ledger }: World, drawn: Draws): Promise<void> {
  const name = sinkOf(drawn)
  const refs = await readPendingRefs(ledger, name, { offset: 0, count: 100 })
  const places = name === 'siem' ? {} : { [name]: blockedGroup(name) }
  const singles = refs.filter((ref) => ref.startsWith('i:'))
  await groupItems(ledger, singles, places)
}

async function release(ledger: AccountLedger, uid: string): Promise<void> {
  const recordId = ledger.fingerprints.recordId(uid)
  const payload = await readPayload(ledger, recordId)
  const full = payload && { payload: { ...payload, detail: { name: 'x' } } }
  await releaseDetail(ledger, recordId, batchWaits, full)
}

/** As if whatever is being sent had died. */
async function unfreeze({ ledger }: World, drawn: Draws): Promise<void> {
  const refs = await readPendingRefs(ledger, sinkOf(drawn), { offset: 0, count: 100 })
  const messages = refs.filter((one) => one.startsWith('b:'))
  const ref = pick(messages, drawn.a)
  const options = { ledgers: [ledger], staleMs: 0, batchWaitMs: undefined, groups: {} }
  if (ref !== undefined) await unfreezeMessage(ledger, ref, options)
}

type Placed = Parameters<typeof moveItem>[1]

async function redirect(
  { ledger }: World,
  { a }: Draws,
  act: (ref: string, placed: Placed) => Promise<unknown>,
): Promise<void> {
  for await (const placed of scanPendingItems(ledger)) {
    if (placed.item.sink === 'soc' && placed.record.uid === pick(uids, a))
      await act(placed.ref, placed)
  }
}

async function resend({ ledger }: World, { a }: Draws): Promise<void> {
  const recordId = ledger.fingerprints.recordId(pick(uids, a)!)
  for (const [at, name] of sinks.entries()) {
    await resendItem(ledger, `i:${recordId}:${at}:${name}`, { batchWaitMs: undefined, by: 'ann' })
  }
}

/** The endings that go with what is dropped come back, so that they can be counted. */
async function trim({ ledger }: World): Promise<void> {
  const copy = ledger.key('ended-before')
  await given.redis.copy(ledger.key('ended'), copy)
  await ledger.run('trim-records', ledger.retention.history, 2_000)
  if ((await given.redis.exists(copy)) === 1) await given.redis.rename(copy, ledger.key('ended'))
}

/** Who holds what, and what is kept of what waits. */
async function faultsOf({ ledger, claims }: World): Promise<string[]> {
  const faults = [...claims.faults]
  const due = new Set<string>()
  for (const name of await readSinkNames(ledger)) {
    const refs = await ledger.redis.zrange(ledger.key('due', name), '0', '-1')
    for (const ref of refs) due.add(ref)
  }
  for (const ref of await ledger.redis.hkeys(ledger.key('claims'))) {
    if (!due.has(ref)) faults.push(`${ref} is claimed and not due`)
  }
  for await (const { recordId, items } of scanRecords(ledger)) {
    if (!items.some(isPending)) continue
    for (const name of [ledger.key('rec', recordId), ledger.key('pay', recordId)]) {
      if ((await ledger.redis.pttl(name)) !== -1)
        faults.push(`${name} is pending and may be forgotten`)
    }
  }
  return faults
}

/** Time passes and nothing disturbs any more. */
async function settleAll(world: World): Promise<void> {
  const { rig, ledger, claims } = world
  Object.assign(world, { crash: undefined, isTwice: false })
  world.rules.clear()
  await claims.expireAll()
  await given.redis.del(ledger.key('gone'))
  for (let round = 0; round < 12; round += 1) {
    rig.clock.aheadMs += 90_000_000
    // Redis' own clock does not go with it: how many messages a destination may get now
    await given.redis.del(...sinks.map((name) => ledger.key('flushes', name)))
    for (const uid of uids) await release(ledger, uid)
    await rig.seal()
    for (const name of await readSinkNames(ledger)) await deliverDue(world, name)
  }
}

/** What should not be there any more, or should not have been sent. */
async function leftovers({ ledger, sinks: all }: World): Promise<string[]> {
  const { sinks: accounts } = await expectConservation(ledger)
  const waiting = Object.entries(accounts).filter(([, account]) => sumPending(account) > 0)
  const names = await given.redis.keys(`${ledger.key()}:*`)
  return [
    ...waiting.map(([name]) => `pending for ${name}`),
    ...names.filter((name) => /:(?:collect|members|batch|due):/.test(name)),
    ...[...all.values()].flatMap(unsaidRepeats),
  ]
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

async function perform(world: World, name: string, drawn: Draws): Promise<void> {
  world.isTwice = drawn.twice
  try {
    await steps[name]![1](world, drawn)
  } catch (error) {
    if (!(error instanceof Killed)) throw error
  }
  await world.claims.follow()
}

const step = fc.oneof(
  ...Object.entries(steps).map(([name, [weight]]) => {
    return { weight, arbitrary: fc.record({ name: fc.constant(name), ...draws }) }
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
        for (const [at, { name, ...drawn }] of all.entries()) {
          await perform(world, name, drawn)
          await expectConservation(world.ledger)
          expect(world.claims.faults).toEqual([])
          if (at % 5 !== 4) continue
          expect(await faultsOf(world)).toEqual([])
          await expectNothingStranded(world.ledger)
        }
        await settleAll(world)
        expect(await leftovers(world)).toEqual([])
        await expectNothingStranded(world.ledger)
      }),
      { numRuns, seed: 15 },
    )
  },
  60_000 * numRuns,
)
