import { createCircuit, type Circuit } from '../delivery/circuit.ts'
import {
  createDetailJobs,
  type DetailJobs,
  type DetailJobsOptions,
} from '../delivery/detail-jobs.ts'
import { Drains } from '../delivery/drains.ts'
import { createOrphans, type Orphans } from '../delivery/orphans.ts'
import { createDiverter } from '../delivery/relief/diverter.ts'
import type { Relief } from '../delivery/relief/relief.ts'
import { createWake } from '../delivery/relief/wake.ts'
import { createSendPace } from '../delivery/send-pace.ts'
import { SinkDrain, type DrainOptions } from '../delivery/sink-drain.ts'
import { fetchDetail } from '../feeds/detail.ts'
import { returnedPlace, type CollectingSink } from '../digest/placement.ts'
import type { Gathering, SinkModes } from '../ledger/collecting.ts'
import { noteDigestSent } from '../digest/digest-state.ts'
import { noteCanary } from '../notices/canary.ts'
import type { Delivery, Sink } from '../sinks/sink.ts'
import { createRouter, type Router } from '../routing/router.ts'
import { createServiceLink } from '../service/service-links.ts'
import { replica } from '../runtime/replica.ts'
import { createWorkHints } from '../delivery/work-hints.ts'
import { buildFlusher, countSuppressed, type Collecting } from './build-flusher.ts'
import { buildGate } from './build-gate.ts'
import { buildRelief, reliefSinks } from './build-relief.ts'
import { buildSecrets, type LeakedSecrets } from './build-secrets.ts'
import type { Service } from './build-service.ts'
import { createLiveSilences, type LiveSilences } from './live-silences.ts'
import { addressPrints } from './address-prints.ts'
import { findBook, type Shared } from './shared.ts'

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
