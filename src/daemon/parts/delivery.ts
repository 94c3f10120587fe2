/** Builds the delivery of an engine: drains, circuit, failover, grouping and full events. */
import { createSendPace } from '../../delivery/send/attempt.ts'
import { type Circuit, createCircuit } from '../../delivery/circuit.ts'
import { Drains } from '../../delivery/drains.ts'
import { batchWaitsOf, outletsOf } from '../../delivery/outlets.ts'
import { createFailover, type Failover } from '../../delivery/relief/failover.ts'
import {
  createFullEvents,
  fetchDetail,
  type FullEvents,
  type FullEventsOptions,
} from '../../delivery/send/full-events.ts'
import { createGoneSinks } from '../../delivery/relief/gone-sinks.ts'
import { createRerouter, createRetryNow } from '../../delivery/relief/reroute.ts'
import { type DrainOptions, SinkDrain } from '../../delivery/sink-drain.ts'
import { noteDigestSent } from '../../grouping/digest-times.ts'
import { replicaId } from '../../lib/clock.ts'
import { createRouter, type Router } from '../../routing/router.ts'
import { noteCanary } from '../../operator/alerts/canary.ts'
import type { Delivery, Sink } from '../../sinks/sink.ts'
import type { SinkBatchWaits } from '../../store/pending-items.ts'
import { findLedger, standingOf, type EngineContext } from '../context.ts'
import { createLiveSilences, type LiveSilences } from '../../delivery/silences.ts'
import type { Outlet } from '../../grouping/placement.ts'
import {
  countSuppressed,
  createSuppressionRules,
  type SuppressionRules,
} from '../../grouping/suppression-rules.ts'
import type { SuppressionSetup } from '../../routing/suppression.ts'
import { buildFlusher, type GroupingParts } from './grouping.ts'
import { buildMemberOptions } from '../../delivery/send/member-options.ts'
import { createAddressHasher } from '../../delivery/sink-address.ts'
import { buildSecrets, type LeakedSecrets } from '../../delivery/send/leaked-secrets.ts'
import type { Upstream } from './upstream.ts'

export interface DeliveryParts {
  sinks: Map<string, Sink>
  router: Router
  silences: LiveSilences
  secrets: LeakedSecrets
  grouping: GroupingParts
  batchWaits: SinkBatchWaits
  circuit: Circuit
  drains: Drains
  fullEvents: FullEvents
  failover: Failover
}

export function buildDelivery(
  context: EngineContext,
  upstream: Upstream,
  sinks: Map<string, Sink>,
): DeliveryParts {
  const { config, redis, keys, clock, logger, ledgers, metrics, timings } = context
  const standing = standingOf(context)
  const outlets = outletsOf(config.sinks, sinks)
  const batchWaits = batchWaitsOf(outlets)
  const circuit = createCircuit(redis, keys, createAddressHasher(config, context.ledgers), timings)
  const router = createRouter(config.route)
  const silences = createLiveSilences(context)
  const rules = buildRules(context, { router, outlets, silences })
  const secrets = buildSecrets(context)
  const drains: Drains = new Drains({
    ...context,
    sinks,
    createDrain: (sink) => new SinkDrain(sink, drainOptions),
    goneSinks: createGoneSinks({ ledgers, outlets, standing, logger }),
    standing,
    noteGroups: (account) => grouping.noteGroups(account),
    detailWaitMs: timings.detailWaitMs,
    leaseMs: timings.claimLeaseMs,
  })
  const retryNow = createRetryNow({ circuit, drains, clock })
  const told = { router, rules, expectedPolling: upstream.expectedPolling }
  const grouping = buildFlusher(context, { ...told, outlets, circuit, retryNow, drains })
  const rerouter = createRerouter({ outlets, ledgers, drains, metrics, timings })
  const release: FullEventsOptions['release'] = (...made) => drains.announceChanges(...made)
  const drainOptions: DrainOptions = {
    ...context,
    ...buildMemberOptions(config, secrets.open),
    standing,
    circuitRecheckMs: timings.circuitRecheckMs,
    findLedger: (account) => findLedger(context, account),
    onSuppressed: (sink, severity, reason) => countSuppressed(metrics, sink, severity, reason),
    onDelivered: (sink, delivery) => noteDeliveryTime(context, sink, delivery),
    replica: replicaId,
    rules,
    circuit,
    rerouter,
    retryNow,
    batchWaits,
    release,
    pace: createSendPace(redis, keys),
    holder: { owner: replicaId, leaseMs: timings.claimLeaseMs },
  }
  return {
    sinks,
    router,
    silences,
    secrets,
    grouping,
    batchWaits,
    circuit,
    drains,
    fullEvents: buildFullEvents(context, upstream, { batchWaits, release }),
    failover: createFailover({ clock, logger, outlets, circuit, retryNow, drains, rerouter }),
  }
}

function buildFullEvents(
  context: EngineContext,
  upstream: Upstream,
  parts: Pick<FullEventsOptions, 'batchWaits' | 'release'>,
): FullEvents {
  const { config } = context
  return createFullEvents({
    ...context,
    ...parts,
    findLedger: (account) => findLedger(context, account),
    // Details of an account that left are no longer fetched: its items are sent with the search
    // item alone.
    fetchDetail: async (account, event, signal) =>
      config.accounts.some(({ name }) => name === account)
        ? fetchDetail(upstream.client(account), event, { ...context, signal })
        : 'unavailable',
  })
}

/**
 * Notes the delivery time for the metrics. A note that cannot be written must not cause a resend.
 */
async function noteDeliveryTime(
  { redis, keys, clock, logger }: EngineContext,
  { name: sink }: Sink,
  delivery: Delivery,
): Promise<void> {
  const atMs = clock.now()
  try {
    await noteCanary({ redis, keys }, sink, { ...delivery, atMs })
    if (delivery.summary?.kind === 'digest') await noteDigestSent(redis, keys, { sink, atMs })
  } catch (error) {
    logger.debug({ sink, err: error }, 'the time of a delivery was not noted')
  }
}

function buildRules(
  { config, clock }: EngineContext,
  parts: Pick<DeliveryParts, 'router' | 'silences'> & { outlets: ReadonlyMap<string, Outlet> },
): SuppressionRules {
  const { router, outlets, silences } = parts
  const setup: SuppressionSetup = {
    router,
    inhibitRules: config.inhibitRules,
    timeIntervals: config.timeIntervals,
    silences: () => silences.current(),
    isForPeople: (sink) => outlets.get(sink)?.isForPeople ?? true,
  }
  return createSuppressionRules(setup, clock)
}
