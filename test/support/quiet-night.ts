/** Delivery as the daemon runs it, at a simulated time: sinks, their fallbacks, and what they were told when. */
import { createFailover, isBlocked } from '../../src/delivery/relief/failover.ts'
import { createRerouter, createRetryNow } from '../../src/delivery/relief/reroute.ts'
import { createMetrics } from '../../src/lib/metrics/metrics.ts'
import type { Delivery, Sink } from '../../src/sinks/sink.ts'
import { type AccountLedger, openLedger } from '../../src/store/account-ledger.ts'
import { aDeliveryRig, modesOf, type DeliveryRig } from './delivery.ts'
import { relievedAs } from './failover.ts'
import { aGatheringRig } from './grouping.ts'
import { ledgerConfig, silent, takeIn, type RedisForTests } from './ledger.ts'
import { aRehearsedSink } from './rehearsed-sink.ts'
import { simulateTime, type SimulatedTime } from './simulated-time.ts'

/** A sink that thinks for a moment, and then takes the delivery, or throws. */
export interface NightSink extends Omit<Partial<Sink>, 'send'> {
  name: string
  answer?: ((delivery: Delivery, time: SimulatedTime) => unknown) | undefined
}

export interface Sent {
  sink: string
  destination: string
  uid: string
  /** Since the night began. */
  atMs: number
}

export interface Night extends Pick<DeliveryRig, 'circuit' | 'drains'> {
  time: SimulatedTime
  ledgers: AccountLedger[]
  /** What was accepted, in order. */
  told: Sent[]
  /** Every try, in order. */
  tried: Sent[]
  /** Takes events in, and announces what is to be sent. To people they go in groups. */
  bring(uids: readonly string[], to: string[], given?: Brought): Promise<void>
}

export interface Brought {
  severity?: string
  account?: string
}

export interface NightOptions {
  sinks: NightSink[]
  accounts?: string[]
  /** By sink. */
  fallbacks?: Record<string, string>
}

const thinksForMs = 50

/** As the daemon: an account of which no group is due is left alone until members join one. */
const looksSeldom = {
  signal: new AbortController().signal,
  alive: () => undefined,
  restMs: 10_000,
}

export async function aNight(tests: RedisForTests, given: NightOptions): Promise<Night> {
  const time = simulateTime(tests.redis)
  const { clock, redis } = time
  const keys = tests.keys()
  const ledgers: AccountLedger[] = []
  for (const account of given.accounts ?? ['main'])
    ledgers.push(await openLedger({ redis, keys, account, config: ledgerConfig }))
  const [told, tried]: [Sent[], Sent[]] = [[], []]
  const sinks = given.sinks.map((sink) => rehearse(sink, { time, told, tried }))
  const metrics = createMetrics({ clock })
  const relieved = relievedAs(sinks, { fallbacks: given.fallbacks ?? {} })
  // drains and what relieves them know each other
  const drains = {
    announceChanges: (...args) => rig.drains.announceChanges(...args),
    announce: (...args) => rig.drains.announce(...args),
    ledgersFor: (sink) => rig.drains.ledgersFor(sink),
  } satisfies Partial<DeliveryRig['drains']> as DeliveryRig['drains']
  const circuit: Pick<DeliveryRig['circuit'], 'read'> = {
    read: (...args) => rig.circuit.read(...args),
  }
  const rerouter = createRerouter({ outlets: relieved, ledgers, drains, metrics })
  const retryNow = createRetryNow({ circuit, drains, clock })
  const common = { redis, keys, ledgers, sinks, clock }
  const rig: DeliveryRig = aDeliveryRig({
    ...common,
    noteGroups: (account) => groups.flusher.noteGroups(account),
    ledger: ledgers[0]!,
    drain: { metrics, rerouter, retryNow },
  })
  const failover = createFailover({
    outlets: relieved,
    circuit,
    rerouter,
    drains,
    retryNow,
    clock,
    logger: silent,
  })
  const groups = aGatheringRig({
    ...common,
    clock: Object.assign(clock, { aheadMs: 0 }),
    isBlocked: (name, destination) =>
      isBlocked({ circuit, retryNow, clock }, { name, ...relieved.get(name) }, destination),
  })
  groups.options.announce = (...args) => drains.announce(...args)
  rig.drains.start()
  void every(time, 1_000, () => groups.flusher.flushGroupsOnce(looksSeldom))
  void every(time, 2_500, () => rig.drains.renewOnce())
  void every(time, 5_000, () => failover.failoverOnce())
  void every(time, 10_000, () => rig.drains.reconcileOnce())
  const batchWaits = modesOf(sinks)
  return {
    ...rig,
    time,
    ledgers,
    told,
    tried,
    async bring(uids, to, { severity = 'high', account = 'main' } = {}) {
      const ledger = ledgers.find((one) => one.account === account)!
      const waitMs = batchWaits[to[0]!.split(':')[0]!] || undefined
      const events = uids.map((uid) =>
        groups.event({ uid, severity }, { sinks: to, grouping: { waitMs: 1_000 } }),
      )
      const page = waitMs === undefined ? {} : { batchWaitMs: waitMs }
      const accepted = await takeIn(ledger, events, page)
      if (accepted.status === 'committed') rig.drains.announceChanges(account, accepted.changes)
    },
  }
}

/** As a loop of the daemon; it ends when no more time passes. */
async function every({ clock }: SimulatedTime, ms: number, work: () => Promise<unknown>) {
  for (;;) {
    await clock.sleep(ms)
    await work()
  }
}

function rehearse(
  { answer, ...sink }: NightSink,
  { time, told, tried }: Pick<Night, 'time' | 'told' | 'tried'>,
): Sink {
  const { clock } = time
  const note = (list: Sent[], { destination, members }: Delivery): void => {
    for (const { event } of members)
      list.push({
        sink: sink.name,
        destination: destination.id,
        uid: event.uid,
        atMs: clock.monotonic(),
      })
  }
  return aRehearsedSink(sink.name, {
    concurrency: 2,
    ...sink,
    async send(delivery) {
      note(tried, delivery)
      await clock.sleep(thinksForMs)
      await answer?.(delivery, time)
      note(told, delivery)
      return { answer: 'taken' }
    },
  })
}
