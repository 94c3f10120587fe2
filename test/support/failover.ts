/** A sink that takes nothing, its fallback, and what relieves it, on a real Redis, one pass at a time. */
import { type Circuit, createCircuit } from '../../src/delivery/circuit.ts'
import { createFailover, isBlocked } from '../../src/delivery/relief/failover.ts'
import { createRerouter, createRetryNow, type Rerouter } from '../../src/delivery/relief/reroute.ts'
import type { Outlet } from '../../src/grouping/placement.ts'
import { createMetrics, type Metrics } from '../../src/lib/metrics/metrics.ts'
import type { Keys } from '../../src/redis/keys.ts'
import type { Sink } from '../../src/sinks/sink.ts'
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import { readDueRefs } from './due-refs.ts'
import {
  aGatheringRig,
  clockToSet,
  outletOf,
  type GatheringRig,
  type GatheringRigOptions,
} from './grouping.ts'
import { type RedisForTests, silent } from './ledger.ts'
import { aRehearsedSink, type RehearsedSink } from './rehearsed-sink.ts'

export interface ReliefRig extends GatheringRig {
  keys: Keys
  ledger: AccountLedger
  circuit: Circuit
  metrics: Metrics
  rerouter: Rerouter
  /** What the log says of what went to a fallback. */
  said: unknown[]
  sinks: Record<'soc' | 'siem' | 'oncall' | 'lake', RehearsedSink>
  relieve(): Promise<void>
  /** The sink's circuit is open since so long; its next probe is far away. */
  down(sink: string, sinceMs: number): Promise<void>
  up(sink: string): Promise<void>
  /** What workers would do: everything that is due to a sink, once. */
  deliverDue(sink: string): Promise<void>
}

export interface ReliefRigOptions {
  fallbacks?: Record<string, string>
  /** Those of on-call; left out: a single one. */
  destinations?: { oncall: string[] }
  digests?: GatheringRigOptions['digests']
  keys?: Keys
  ledgers?: AccountLedger[]
}

export const fallbackAfterMs = 300_000

/** People are `soc` and `oncall`, machines `siem` (in batches) and `lake`. */
export async function aReliefRig(
  tests: RedisForTests,
  options: ReliefRigOptions = {},
): Promise<ReliefRig> {
  const { keys = tests.keys(), destinations: { oncall } = {} } = options
  const { ledgers = [await tests.ledger({ keys })] } = options
  const { redis } = tests
  const batch = { max: 10, waitMs: 1_000, maxBytes: 100_000 }
  const sinks = {
    soc: aRehearsedSink('soc', { type: 'slack' }),
    siem: aRehearsedSink('siem', { batch, measure: () => 1 }),
    oncall: aRehearsedSink('oncall', {
      type: 'email',
      ...(oncall && { destinations: oncall.map((id) => ({ id, label: id })) }),
    }),
    lake: aRehearsedSink('lake'),
  }
  const circuit = createCircuit(redis, keys)
  const relieved = relievedAs(Object.values(sinks), options)
  const nothing = (): void => undefined
  const drains = { announceChanges: nothing, announce: nothing, ledgersFor: () => ledgers }
  const metrics = createMetrics()
  const diverter = createRerouter({ outlets: relieved, ledgers: ledgers, drains, metrics })
  const said: unknown[] = []
  const warn = (about: unknown): void => void said.push(about)
  const clock = clockToSet()
  const reading: Pick<Circuit, 'read'> = {
    read: (sink, _nowMs, destinations) => circuit.read(sink, Date.now(), destinations),
  }
  const wake = createRetryNow({ circuit: reading, drains, clock })
  const rig = aGatheringRig({
    clock,
    redis,
    keys,
    ledgers: ledgers,
    sinks: Object.values(sinks),
    rerouter: diverter,
    digests: options.digests ?? {},
    retryNow: wake,
    isBlocked: (name, destination) =>
      isBlocked(
        { circuit: reading, retryNow: wake, clock },
        { name, ...relieved.get(name) },
        destination,
      ),
  })
  const relief = createFailover({
    outlets: relieved,
    circuit: reading,
    rerouter: diverter,
    drains,
    retryNow: wake,
    clock,
    logger: Object.assign(Object.create(silent) as typeof silent, { warn }),
  })
  const [ledger] = ledgers
  return {
    ...rig,
    keys,
    ledger: ledger!,
    circuit,
    metrics,
    rerouter: diverter,
    said,
    sinks,
    relieve: () => relief.failoverOnce(),
    async down(sink, sinceMs) {
      const nowMs = rig.clock.now()
      const times = { until: Date.now() + 900_000, opened_at: nowMs - sinceMs }
      await redis.hset(keys.shared('circuit', sink), { ...times, messages: 5 })
    },
    async up(sink) {
      await redis.del(keys.shared('circuit', sink))
    },
    async deliverDue(sink) {
      for (const holder of ledgers) {
        const refs = await readDueRefs(holder, sink, rig.clock.now(), { offset: 0, count: 100 })
        for (const ref of refs) if (!ref.startsWith('c:')) await rig.deliver(ref, holder)
      }
    },
  }
}

/** The sinks as outlets, with the fallbacks of a relief rig. */
export function relievedAs(
  sinks: readonly Sink[],
  { fallbacks = { soc: 'oncall', siem: 'lake' } }: ReliefRigOptions,
): Map<string, Outlet> {
  return new Map(
    sinks.map((sink) => [
      sink.name,
      { ...outletOf(sink), fallback: fallbacks[sink.name], fallbackAfterMs },
    ]),
  )
}
