/** The parts of delivery on a real Redis, driven one pass at a time. */
import { setTimeout } from 'node:timers/promises'
import { createCircuit, type Circuit } from '../../src/delivery/circuit.ts'
import { Drains } from '../../src/delivery/drains.ts'
import { createGoneSinks } from '../../src/delivery/relief/gone-sinks.ts'
import { createRerouter } from '../../src/delivery/relief/reroute.ts'
import { createSendPace } from '../../src/delivery/send/attempt.ts'
import type { MemberOptions } from '../../src/delivery/send/delivery-member.ts'
import { SinkDrain, type DrainOptions } from '../../src/delivery/sink-drain.ts'
import type { Outlet } from '../../src/grouping/placement.ts'
import type { AccountLedger, Standing } from '../../src/store/account-ledger.ts'
import type { SinkBatchWaits } from '../../src/store/pending-items.ts'
import type { Keys } from '../../src/redis/keys.ts'
import type { Redis } from '../../src/redis/client.ts'
import { systemClock, type Clock } from '../../src/lib/clock.ts'
import { createMetrics } from '../../src/lib/metrics/metrics.ts'
import type { Sink } from '../../src/sinks/sink.ts'
import { makeDue } from './attempts.ts'
import { aStanding, silent } from './ledger.ts'

/** What became of one piece of work: `later`, in the ledger's time; or nothing is left of it to be sent. */
export type DeliverOutcome =
  | { next: 'done'; halves: string[] }
  | { next: 'later'; atMs: number; isCircuitOpen: boolean }

export interface DeliveryRig {
  circuit: Circuit
  drains: Drains
  options: DrainOptions
  /** One piece of work, due or not: claimed, judged, sent and settled. */
  deliver: (sink: Sink, ref: string) => Promise<DeliverOutcome>
}

export interface DeliveryRigOptions {
  redis: Redis
  keys: Keys
  ledger: AccountLedger
  /** All that the slow pass looks at; left out: that one. */
  ledgers?: readonly AccountLedger[]
  sinks: Sink[]
  clock?: Clock
  standing?: Standing
  leaseMs?: number
  drain?: Partial<DrainOptions>
  /** Left out: real ones. */
  createDrain?: (sink: Sink) => SinkDrain
  /** As which late items join their group. */
  outlets?: ReadonlyMap<string, Outlet>
  /** Members have joined groups of an account. */
  noteGroups?: (account: string) => void
}

export function aDeliveryRig(given: DeliveryRigOptions): DeliveryRig {
  const {
    redis,
    keys,
    ledger,
    ledgers = [ledger],
    clock = systemClock,
    standing = aStanding(),
  } = given
  const sinks = new Map(given.sinks.map((sink) => [sink.name, sink]))
  const modes = modesOf(given.sinks)
  const options: DrainOptions = {
    ...drainOptions({ redis, keys, ledgers: ledgers, clock }),
    standing,
    batchWaits: modes,
    release: (account, made) => drains.announceChanges(account, made),
    ...given.drain,
  }
  const goneSinks = createGoneSinks({
    ledgers,
    outlets: given.outlets ?? new Map(),
    standing,
    logger: silent,
  })
  const drains: Drains = new Drains({
    noteGroups: given.noteGroups ?? (() => undefined),
    sinks,
    createDrain: given.createDrain ?? ((sink) => new SinkDrain(sink, options)),
    ledgers: ledgers,
    goneSinks,
    standing,
    detailWaitMs: 20_000,
    leaseMs: given.leaseMs ?? 10_000,
    clock,
    logger: silent,
  })
  return {
    circuit: options.circuit,
    drains,
    options,
    deliver: (sink, ref) => deliverRef(options, ledger, sink, ref),
  }
}

export function modesOf(sinks: readonly Sink[]): SinkBatchWaits {
  return Object.fromEntries(sinks.map(({ name, batch }) => [name, batch?.waitMs ?? false]))
}

/** One account, and a configuration that says nothing about events. */
export const bareMembers: MemberOptions = {
  serviceLink: () => null,
  pageAddress: () => undefined,
  findLabel: () => undefined,
  namesAccounts: false,
  findTenant: () => undefined,
  findGuidance: () => undefined,
}

/** As the daemon builds them, with nothing to judge, divert or wake. */
export function drainOptions({
  redis,
  keys,
  ledgers,
  clock,
}: {
  redis: Redis
  keys: Keys
  ledgers: readonly AccountLedger[]
  clock: Clock
}): DrainOptions {
  const metrics = createMetrics({ clock })
  const drains = { announceChanges: () => undefined }
  return {
    findLedger: (account) => ledgers.find((one) => one.account === account),
    ...bareMembers,
    rerouter: createRerouter({ outlets: new Map(), ledgers: [...ledgers], drains, metrics }),
    circuit: createCircuit(redis, keys),
    pace: createSendPace(redis, keys),
    holder: { owner: 'r1', leaseMs: 10_000 },
    circuitRecheckMs: 5_000,
    batchWaits: {},
    release: () => undefined,
    replica: 'r1',
    standing: aStanding(),
    clock,
    logger: silent,
    metrics,
  }
}

let owners = 0

/** A process of its own that claims this piece of work once, and does what its drain does with it. */
export async function deliverRef(
  options: DrainOptions,
  ledger: AccountLedger,
  sink: Sink,
  ref: string,
): Promise<DeliverOutcome> {
  await makeDue(ledger, ref)
  const { watched, seen } = watchClaims(ledger, ref)
  const drain = new SinkDrain(sink, {
    ...options,
    findLedger: (account) => (account === ledger.account ? watched : options.findLedger(account)),
    holder: { owner: `r1-${(owners += 1)}`, leaseMs: 10_000 },
  })
  drain.nudge(ledger.account)
  for (;;) {
    const ready = Promise.withResolvers<void>()
    drain.onReady(ready.resolve)
    const waitMs = await drain.tick()
    const failure = drain.takeFailure()
    if (failure) throw failure.error
    if (drain.inHand === 0 && (seen.hasClaimed || waitMs !== 0)) break
    if (waitMs === undefined) await ready.promise
    else await Promise.race([ready.promise, setTimeout(waitMs)]) // real time: Redis answers meanwhile
  }
  const score = await ledger.redis.zscore(ledger.key('due', sink.name), ref)
  const atMs = Number(score ?? 0)
  if (!seen.hasClaimed) return { next: 'later', atMs, isCircuitOpen: true }
  if (score !== null && atMs > Date.now() - 60_000)
    return { next: 'later', atMs, isCircuitOpen: false }
  return { next: 'done', halves: seen.halves }
}

/** The ledger of a process that sees this ref alone, and claims once. */
function watchClaims(
  ledger: AccountLedger,
  ref: string,
): { watched: AccountLedger; seen: { hasClaimed: boolean; halves: string[] } } {
  const seen: { hasClaimed: boolean; halves: string[] } = { hasClaimed: false, halves: [] }
  const run: AccountLedger['run'] = async (script, ...args) => {
    if (script !== 'claim-due') {
      const answer = await ledger.run(script, ...args)
      if (script === 'advance-claims') {
        const { settled = [] } = JSON.parse(String(answer)) as { settled?: { halves?: string[] }[] }
        seen.halves.push(...settled.flatMap(({ halves = [] }) => halves))
      }
      return answer
    }
    if (seen.hasClaimed) return ['{"left":0}']
    seen.hasClaimed = true
    return ledger.run(script, JSON.stringify({ ...JSON.parse(String(args[0])), ref }))
  }
  const ask: AccountLedger['runJson'] = async (script, ...args) =>
    JSON.parse(String(await run(script, ...args))) as never
  return { watched: { ...ledger, run, runJson: ask }, seen }
}
