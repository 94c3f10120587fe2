import { createSendPace } from '../delivery/attempt.ts'
import { type Circuit, createCircuit } from '../delivery/circuit.ts'
import { Drains } from '../delivery/drains.ts'
import { createWorkHints } from '../delivery/due-accounts.ts'
import { createRelief, type Relief, type ReliefOptions } from '../delivery/failover.ts'
import {
  createDetailJobs,
  type DetailJobs,
  type DetailJobsOptions,
  fetchDetail,
} from '../delivery/full-events.ts'
import { createOrphans, type Orphans } from '../delivery/orphans.ts'
import { createDiverter, createWake, type ReliefSink } from '../delivery/reroute.ts'
import { type DrainOptions, SinkDrain } from '../delivery/sink-drain.ts'
import type { Severity } from '../event.ts'
import { noteDigestSent } from '../grouping/flusher.ts'
import {
  type CollectingSink,
  fallbackPlace,
  keptPlace,
  returnedPlace,
} from '../grouping/placement.ts'
import { replica, type Timings } from '../lib/clock.ts'
import { createRouter, type Router } from '../routing/router.ts'
import { noteCanary } from '../self-alerts/canary.ts'
import type { Delivery, Sink } from '../sinks/sink.ts'
import type { Gathering, MoveTarget, SinkModes } from '../store/pending-items.ts'
import { createServiceLink } from '../upstream/links.ts'
import { findBook, type Shared } from './context.ts'
import {
  buildFlusher,
  buildGate,
  type Collecting,
  countSuppressed,
  createLiveSilences,
  type LiveSilences,
} from './grouping.ts'
import { addressPrints, buildSecrets, type LeakedSecrets } from './sinks.ts'
import type { Service } from './upstream.ts'

export interface DeliveryParts {
  sinks: Map<string, Sink>
  router: Router
  silences: LiveSilences
  secrets: LeakedSecrets
  collecting: Collecting
  modes: SinkModes
  circuit: Circuit
  drains: Drains
  detailJobs: DetailJobs
  relief: Relief
}

export function buildDelivery(
  shared: Shared,
  service: Service,
  sinks: Map<string, Sink>,
): DeliveryParts {
  const { config, redis, keys, clock, logger, metrics, timings } = shared
  const modes: SinkModes = Object.fromEntries(
    [...sinks.values()].map((sink) => [sink.name, sink.batch?.waitMs ?? false]),
  )
  const circuit = createCircuit(redis, keys, addressPrints(config, shared.books), timings)
  const router = createRouter(config.route)
  const silences = createLiveSilences(shared)
  const gate = buildGate(shared, router, () => silences.current())
  const secrets = buildSecrets(shared)
  const hints = createWorkHints(redis, keys)
  const drains: Drains = new Drains({
    sinks,
    drain: (sink) => new SinkDrain(sink, drainOptions),
    books: shared.books,
    hints,
    orphans: buildOrphans(shared, modes, (sink) => collecting.sinks.get(sink)),
    detailWaitMs: timings.detailWaitMs,
    leaseMs: timings.claimLeaseMs,
    clock,
    logger,
  })
  const wake = createWake({ circuit, drains, clock, logger })
  const { expected } = service
  const collecting = buildFlusher(shared, { sinks, router, gate, circuit, wake, drains, expected })
  const relieved = reliefSinks(shared, { sinks, collecting: collecting.sinks, modes })
  const diverter = createDiverter({ sinks: relieved, books: shared.books, drains, metrics })
  const release: DetailJobsOptions['release'] = (account, made) => drains.tellMade(account, made)
  const drainOptions: DrainOptions = {
    ...attemptOptions(shared, secrets),
    gate,
    circuit,
    diverter,
    wake,
    hints,
    modes,
    release,
    pace: createSendPace(redis, keys),
    holder: {
      owner: replica,
      leaseMs: timings.claimLeaseMs,
    },
  }
  return {
    sinks,
    router,
    silences,
    secrets,
    collecting,
    modes,
    circuit,
    drains,
    detailJobs: buildDetailJobs(shared, service, { modes, release }),
    relief: buildRelief(shared, { sinks: relieved, circuit, diverter, wake, drains }),
  }
}

function buildOrphans(
  { books, generation, timings, clock, logger }: Shared,
  modes: SinkModes,
  find: (sink: string) => CollectingSink | undefined,
): Orphans {
  return createOrphans({
    books,
    modes,
    returnPlaces: (sink) => returnPlaces(find(sink)),
    isActive: () => generation.isActive,
    graceMs: timings.orphanGraceMs,
    clock,
    logger,
  })
}

function attemptOptions(
  shared: Shared,
  secrets: LeakedSecrets,
): Omit<DrainOptions, 'circuit' | 'pace' | 'hints' | 'modes' | 'release' | 'holder'> {
  const { config, clock, logger, metrics } = shared
  return {
    book: (account) => findBook(shared, account),
    onSuppressed: (sink, severity, reason) => countSuppressed(metrics, sink, severity, reason),
    openSecret: (account, uid, sealed) => secrets.open(account, uid, sealed),
    serviceLink: createServiceLink(config.accounts),
    onDelivered: (sink, delivery) => noteDelivered(shared, sink, delivery),
    replica,
    clock,
    logger,
    metrics,
  }
}

function buildDetailJobs(
  shared: Shared,
  service: Service,
  parts: Pick<DetailJobsOptions, 'modes' | 'release'>,
): DetailJobs {
  const { config, redis, keys, clock, logger, timings } = shared
  return createDetailJobs({
    ...parts,
    redis,
    keys,
    clock,
    logger,
    timings,
    book: (account) => findBook(shared, account),
    // of an account that left nothing is asked any more: its items go with the search item
    fetchDetail: async (account, uid, signal) =>
      config.accounts.some(({ name }) => name === account)
        ? fetchDetail(service.client(account), uid, { signal, clock, timings })
        : 'unavailable',
  })
}

/** For the metrics; a note that cannot be written must not repeat a message. */
async function noteDelivered(
  { redis, keys, clock, logger }: Shared,
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

/** What was held for people while their sink was gone comes as one summary. */
function returnPlaces(sink: CollectingSink | undefined): Record<string, Gathering> {
  if (!sink?.isForPeople) return {}
  return Object.fromEntries(sink.destinations.map(({ id }) => [id, returnedPlace(id)]))
}

interface ReliefParts {
  sinks: ReadonlyMap<string, Sink>
  collecting: ReadonlyMap<string, CollectingSink>
  modes: SinkModes
}

/** The sinks as they are relieved, and where the items of each go. */
function reliefSinks(
  { config, timings }: Pick<Shared, 'config' | 'timings'>,
  { sinks, collecting, modes }: ReliefParts,
): Map<string, ReliefSink> {
  return new Map(
    config.sinks.map(({ name, fallback, fallbackAfterMs, pendingMax }) => {
      const other = fallback === undefined ? undefined : collecting.get(fallback)
      const sink: ReliefSink = {
        name,
        fallback,
        fallbackAfterMs,
        targets: (severity) =>
          other ? targetsIn({ sink: other, modes, timings }, name, severity) : [],
        pendingMax,
        sendTimeoutMs: sinks.get(name)?.sendTimeoutMs ?? 0,
        batchWaitMs: modes[name] || undefined,
        keptPlaces: keptPlaces(collecting.get(name)),
      }
      return [name, sink]
    }),
  )
}

function targetsIn(
  { sink, modes, timings }: { sink: CollectingSink; modes: SinkModes; timings: Timings },
  from: string,
  severity: Severity,
): MoveTarget[] {
  return sink.destinations.map(({ id: destination }) => ({
    sink: sink.name,
    destination,
    batchWaitMs: modes[sink.name] || undefined,
    place: fallbackPlace(sink, { from, severity, destination }, timings),
  }))
}

/** What cannot be sent to people comes as one message. */
function keptPlaces(sink: CollectingSink | undefined): Record<string, Gathering> {
  if (!sink?.isForPeople) return {}
  return Object.fromEntries(sink.destinations.map(({ id }) => [id, keptPlace(id)]))
}

function buildRelief(
  { clock, logger, metrics }: Shared,
  parts: Pick<ReliefOptions, 'sinks' | 'circuit' | 'diverter' | 'wake' | 'drains'>,
): Relief {
  return createRelief({
    ...parts,
    clock,
    logger,
    onOverflow: (sink, items) => metrics.itemsSettledTotal.inc({ sink, outcome: 'dead' }, items),
  })
}
