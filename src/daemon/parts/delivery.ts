/** Builds the delivery of an engine: drains, circuit, failover, grouping and detail jobs. */
import { createSendPace } from '../../delivery/send/attempt.ts'
import { type Circuit, createCircuit } from '../../delivery/circuit.ts'
import { Drains } from '../../delivery/drains.ts'
import { createFailover, type Failover } from '../../delivery/relief/failover.ts'
import {
  createFullEvents,
  fetchDetail,
  type FullEvents,
  type FullEventsOptions,
} from '../../delivery/send/full-events.ts'
import { createGoneSinks, type GoneSinks } from '../../delivery/relief/gone-sinks.ts'
import { createRerouter, createRetryNow, type FailoverSink } from '../../delivery/relief/reroute.ts'
import { type DrainOptions, SinkDrain } from '../../delivery/sink-drain.ts'
import { noteDigestSent } from '../../grouping/flusher.ts'
import {
  type GroupingSink,
  fallbackGroup,
  blockedGroup,
  listMoveTargets,
} from '../../grouping/placement.ts'
import { replicaId } from '../../lib/clock.ts'
import { createRouter, type Router } from '../../routing/router.ts'
import { noteCanary } from '../../operator/alerts/canary.ts'
import type { Delivery, Sink } from '../../sinks/sink.ts'
import type { Group, SinkBatchWaits } from '../../store/pending-items.ts'
import { findLedger, standingOf, type EngineContext } from '../context.ts'
import {
  buildFlusher,
  buildSuppressionRules,
  type GroupingParts,
  countSuppressed,
  createLiveSilences,
  type LiveSilences,
} from './grouping.ts'
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
  const batchWaits: SinkBatchWaits = Object.fromEntries(
    [...sinks.values()].map((sink) => [sink.name, sink.batch?.waitMs ?? false]),
  )
  const circuit = createCircuit(redis, keys, createAddressHasher(config, context.ledgers), timings)
  const router = createRouter(config.route)
  const silences = createLiveSilences(context)
  const rules = buildSuppressionRules(context, router, () => silences.current())
  const secrets = buildSecrets(context)
  const drains: Drains = new Drains({
    sinks,
    createDrain: (sink) => new SinkDrain(sink, drainOptions),
    ledgers,
    goneSinks: buildGoneSinks(context, (sink) => grouping.sinks.get(sink)),
    standing: standingOf(context),
    noteGroups: (account) => grouping.noteGroups(account),
    detailWaitMs: timings.detailWaitMs,
    leaseMs: timings.claimLeaseMs,
    clock,
    logger,
  })
  const retryNow = createRetryNow({ circuit, drains, clock, logger })
  const told = { router, rules, expectedPolling: upstream.expectedPolling }
  const grouping = buildFlusher(context, { ...told, sinks, circuit, retryNow, drains })
  const failoverSinks = buildFailoverSinks(context, { sinks, grouping: grouping.sinks, batchWaits })
  const rerouter = createRerouter({ sinks: failoverSinks, ledgers, drains, metrics })
  const relief = { sinks: failoverSinks, circuit, retryNow, drains }
  const release: FullEventsOptions['release'] = (...made) => drains.announceChanges(...made)
  const drainOptions: DrainOptions = {
    ...attemptOptions(context, secrets),
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
    failover: createFailover({ ...context, ...relief, rerouter }),
  }
}

function buildGoneSinks(
  context: EngineContext,
  find: (sink: string) => GroupingSink | undefined,
): GoneSinks {
  const { ledgers, logger } = context
  const standing = standingOf(context)
  const groupsOf = (sink: string): Record<string, Group> => blockedGroups(find(sink))
  return createGoneSinks({ ledgers, blockedGroups: groupsOf, standing, logger })
}

function attemptOptions(
  context: EngineContext,
  secrets: LeakedSecrets,
): Omit<DrainOptions, 'circuit' | 'rerouter' | 'pace' | 'batchWaits' | 'release' | 'holder'> {
  const { config, clock, logger, metrics, timings } = context
  return {
    ...buildMemberOptions(config, secrets.open),
    standing: standingOf(context),
    circuitRecheckMs: timings.circuitRecheckMs,
    findLedger: (account) => findLedger(context, account),
    onSuppressed: (sink, severity, reason) => countSuppressed(metrics, sink, severity, reason),
    onDelivered: (sink, delivery) => noteDeliveryTime(context, sink, delivery),
    replica: replicaId,
    clock,
    logger,
    metrics,
  }
}

function buildFullEvents(
  context: EngineContext,
  upstream: Upstream,
  parts: Pick<FullEventsOptions, 'batchWaits' | 'release'>,
): FullEvents {
  const { config, clock, logger, timings } = context
  return createFullEvents({
    ...parts,
    clock,
    logger,
    timings,
    findLedger: (account) => findLedger(context, account),
    // Details of an account that left are no longer fetched: its items are sent with the search
    // item alone.
    fetchDetail: async (account, uid, signal) =>
      config.accounts.some(({ name }) => name === account)
        ? fetchDetail(upstream.client(account), uid, { signal, clock, timings })
        : 'unavailable',
  })
}

/**
 * Notes the delivery time for the metrics. A note that cannot be written must not cause a resend.
 */
async function noteDeliveryTime(
  { redis, keys, clock, logger }: EngineContext,
  { name: sink }: Sink,
  { summary, isTest }: Delivery,
): Promise<void> {
  const note = { sink, atMs: clock.now() }
  try {
    if (isTest === true) await noteCanary(redis, keys, note)
    if (summary?.kind === 'digest') await noteDigestSent(redis, keys, note)
  } catch (error) {
    logger.debug({ sink, err: error }, 'the time of a delivery was not noted')
  }
}

interface FailoverParts {
  sinks: ReadonlyMap<string, Sink>
  grouping: ReadonlyMap<string, GroupingSink>
  batchWaits: SinkBatchWaits
}

/** The sinks as failover sees them, with the targets of each one's items. */
function buildFailoverSinks(
  { config, timings }: Pick<EngineContext, 'config' | 'timings'>,
  { sinks, grouping, batchWaits }: FailoverParts,
): Map<string, FailoverSink> {
  return new Map(
    config.sinks.map(({ name, fallback, fallbackAfterMs }) => {
      const fallbackSink = fallback === undefined ? undefined : grouping.get(fallback)
      const sink: FailoverSink = {
        name,
        destinations: sinks.get(name)?.destinations ?? [],
        fallback,
        fallbackAfterMs,
        targets(severity) {
          if (!fallbackSink) return []
          return listMoveTargets(
            fallbackSink,
            batchWaits[fallbackSink.name] || undefined,
            (destination) =>
              fallbackGroup(fallbackSink, { from: name, severity, destination }, timings),
          )
        },
        sendTimeoutMs: sinks.get(name)?.sendTimeoutMs ?? 0,
        batchWaitMs: batchWaits[name] || undefined,
        blockedGroups: blockedGroups(grouping.get(name)),
      }
      return [name, sink]
    }),
  )
}

/** Items that cannot be sent to people now share one message later. */
function blockedGroups(sink: GroupingSink | undefined): Record<string, Group> {
  if (!sink?.isForPeople) return {}
  return Object.fromEntries(sink.destinations.map(({ id }) => [id, blockedGroup(id)]))
}
