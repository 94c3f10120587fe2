/** Collections on a real Redis, flushed and delivered one pass at a time under a clock that tests set. */
import type { DrainOptions } from '../../src/delivery/sink-drain.ts'
import type { ThreatEvent } from '../../src/event.ts'
import type { FlushContext } from '../../src/grouping/flush-context.ts'
import type { SuppressionInput, SuppressionRules } from '../../src/grouping/suppression-rules.ts'
import type { Verdict } from '../../src/routing/suppression.ts'
import { ensureDigests } from '../../src/grouping/digest-flush.ts'
import { createFlusher } from '../../src/grouping/flusher.ts'
import { type Outlet, type Grouping, placeItem } from '../../src/grouping/placement.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import type { Redis } from '../../src/redis/client.ts'
import type { Keys } from '../../src/redis/keys.ts'
import type { Sink } from '../../src/sinks/sink.ts'
import type { AccountLedger, Standing } from '../../src/store/account-ledger.ts'
import type { RoutedEvent } from '../../src/store/intake.ts'
import { readDueRefs } from './due-refs.ts'
import { deliverRef, drainOptions, modesOf } from './delivery.ts'
import { aStanding, type RedisForTests, routed, silent } from './ledger.ts'
import { aRehearsedSink, type RehearsedSink } from './rehearsed-sink.ts'

export interface GatheringRig {
  /** Settable: how far the flusher's clock is ahead of the wall clock, ms. */
  clock: Clock & { aheadMs: number }
  /** An event on its way to people, where the placement puts it. */
  event(overrides: Partial<ThreatEvent>, given?: GivenPlace): RoutedEvent
  /** One pass; what it sealed is delivered at once. Resolves with the number of messages made. */
  flush(): Promise<number>
  /** One pass without the delivery; resolves with the refs of the messages. */
  seal(): Promise<string[]>
  deliver(ref: string, ledger?: AccountLedger): Promise<void>
  suppressed: string[]
  ensureDigests(): Promise<void>
  options: FlushContext
  /** What makes the messages of one pass, without their delivery. */
  flusher: ReturnType<typeof createFlusher>
}

export interface GivenPlace {
  sinks?: string[]
  grouping?: Partial<Grouping>
  isBacklog?: boolean
}

export interface GatheringRigOptions {
  redis: Redis
  keys: Keys
  ledgers: AccountLedger[]
  sinks: Sink[]
  /** By sink. */
  digests?: Record<string, Outlet['digest']>
  gate?: (uid: string, judged: SuppressionInput) => Verdict
  intervalMs?: number
  isBlocked?: (sink: string, destination: string) => boolean | Promise<boolean>
  standing?: Standing
  rerouter?: DrainOptions['rerouter']
  retryNow?: DrainOptions['retryNow']
  clock?: GatheringRig['clock']
}

export function clockToSet(): GatheringRig['clock'] {
  const clock = {
    aheadMs: 0,
    now: () => systemClock.now() + clock.aheadMs,
    monotonic: () => systemClock.monotonic() + clock.aheadMs,
    sleep: () => Promise.resolve(),
  }
  return clock
}

const goes: Verdict = { act: 'send' }

export function aGatheringRig(given: GatheringRigOptions): GatheringRig {
  const { redis, keys, ledgers, intervalMs = 300_000, clock = clockToSet() } = given
  const sinks = new Map(given.sinks.map((sink) => [sink.name, sink]))
  const collecting = new Map(
    given.sinks.map((sink) => [sink.name, outletOf(sink, given.digests?.[sink.name])]),
  )
  const gate: SuppressionRules = {
    decide: (_ledger, items) =>
      Promise.resolve(items.map((judged) => given.gate?.(judged.event.event.uid, judged) ?? goes)),
    allowsAll: () => given.gate === undefined,
  }
  const told: { account: string; sink: string }[] = []
  const suppressed: string[] = []
  const options: FlushContext = {
    ledgers: ledgers,
    sinks: collecting,
    rules: gate,
    intervalMs: () => intervalMs,
    isBlocked: async (...place) => (await given.isBlocked?.(...place)) ?? false,
    standing: given.standing ?? aStanding(),
    readCoverage: () => Promise.resolve(() => []),
    pageAddress: (path) => `https://tocsin.test${path}`,
    announce(account, work) {
      told.push(...work.map(({ sink }) => ({ account, sink })))
    },
    onSuppressed: (sink, severity, reason) => void suppressed.push(`${sink} ${severity} ${reason}`),
    clock,
    logger: silent,
  }
  const flusher = createFlusher(options)
  async function flushAll(): Promise<number> {
    const digests = await flusher.flushDigestsOnce()
    const groups = await flusher.flushGroupsOnce()
    return digests.messages + groups.messages
  }
  const findLedger = (account: string): AccountLedger | undefined =>
    ledgers.find((ledger) => ledger.account === account)
  const drain: DrainOptions = {
    ...drainOptions({ redis, keys, ledgers: ledgers, clock }),
    pageAddress: options.pageAddress,
    rules: gate,
    batchWaits: modesOf(given.sinks),
    ...(given.rerouter && { rerouter: given.rerouter }),
    retryNow: given.retryNow,
  }

  async function deliver(ref: string, ledger: AccountLedger = ledgers[0]!): Promise<void> {
    await deliverRef(drain, ledger, sinks.get(ref.split(':').at(-1)!)!, ref)
  }

  /** What was made due since: messages, and what goes singly. */
  async function newlyDue(): Promise<{ ledger: AccountLedger; ref: string }[]> {
    const found: { ledger: AccountLedger; ref: string }[] = []
    for (const { account, sink } of told.splice(0)) {
      const ledger = findLedger(account)!
      const refs = await readDueRefs(ledger, sink, Date.now(), { offset: 0, count: 1_000 })
      const fresh = refs.filter((ref) => !found.some((one) => one.ref === ref))
      found.push(...fresh.map((ref) => ({ ledger: ledger, ref })))
    }
    return found
  }

  return {
    clock,
    suppressed,
    options,
    flusher,
    deliver,
    event(
      overrides,
      { sinks: to = [given.sinks[0]!.name], grouping = {}, isBacklog = false } = {},
    ) {
      const plan = routed(overrides, to)
      const items = plan.items.map((item) => {
        const asked = { destination: item.destination, severity: plan.event.severity }
        const place = { route: 'root', waitMs: 10_000, labels: {}, ...grouping }
        const where = { ...asked, feed: 'brand', isBacklog }
        return { ...item, ...placeItem(collecting.get(item.sink)!, where, place, clock.now()) }
      })
      return { ...plan, items }
    },
    async seal() {
      await flushAll()
      return (await newlyDue()).map(({ ref }) => ref)
    },
    async flush() {
      const messages = await flushAll()
      for (const { ledger, ref } of await newlyDue()) await deliver(ref, ledger)
      return messages
    },
    ensureDigests: () => ensureDigests(options, clock.now()),
  }
}

/** A rehearsed sink as configured, without a fallback. */
export function outletOf(sink: Sink, digest?: Outlet['digest']): Outlet {
  const { name, type, destinations, batch, sendTimeoutMs } = sink
  const batchWaitMs = batch?.waitMs
  const isForPeople = type !== 'webhook'
  const fallback = { fallback: undefined, fallbackAfterMs: 0 }
  return { name, isForPeople, destinations, digest, batchWaitMs, sendTimeoutMs, ...fallback }
}

/** A Slack sink alone. */
export interface SlackRig extends GatheringRig {
  keys: Keys
  ledger: AccountLedger
  soc: RehearsedSink
}

/** With another rig's `keys` and `ledgers` it is the same place under another configuration. */
export async function aSlackRig(
  given: RedisForTests,
  options: Partial<GatheringRigOptions> = {},
): Promise<SlackRig> {
  const { keys = given.keys(), ledgers: [ledger = await given.ledger({ keys })] = [] } = options
  const soc = aRehearsedSink('soc', { type: 'slack' })
  const parts = { redis: given.redis, sinks: [soc], ...options, keys, ledgers: [ledger] }
  return { ...aGatheringRig(parts), keys, ledger: ledger, soc }
}

export function uids(count: number, from = 0): Partial<ThreatEvent>[] {
  return Array.from({ length: count }, (_, i) => ({ uid: `paste/site/${from + i}` }))
}

/** The process dies when it runs the script for the nth time: before it reaches Redis. */
export function dieAt(ledger: AccountLedger, script: string, nth: number): void {
  let calls = 0
  around(ledger, async (name, run) => {
    if (name === script && (calls += 1) === nth) throw new Error('killed')
    return run()
  })
}

/** Something happens around the scripts that a ledger runs. */
export function around(
  ledger: AccountLedger,
  happen: (
    script: string,
    run: () => Promise<unknown>,
    ...args: (string | number)[]
  ) => Promise<unknown>,
): void {
  const run = ledger.run.bind(ledger)
  const disturbed: AccountLedger['run'] = (script, ...args) =>
    happen(script, () => run(script, ...args), ...args)
  Object.assign(ledger, {
    run: disturbed,
    runJson: async (script: string, ...args: (string | number)[]) =>
      JSON.parse(String(await disturbed(script, ...args))) as unknown,
  })
}
