import { createCircuit, type Circuit } from '../delivery/circuit.ts'
import { createDeliverer, type Deliverer } from '../delivery/deliverer.ts'
import {
  createDetailJobs,
  type DetailJobs,
  type DetailJobsOptions,
} from '../delivery/detail-jobs.ts'
import type { Gate } from '../digest/gate.ts'
import { createDiverter, type Diverter } from '../delivery/relief/diverter.ts'
import type { Relief } from '../delivery/relief/relief.ts'
import { createWake, type Wake } from '../delivery/relief/wake.ts'
import { createReconciler, type Reconciler } from '../delivery/reconciler.ts'
import { createSendPace } from '../delivery/send-pace.ts'
import { createSinkWorkers, type SinkWorkers } from '../delivery/sink-workers.ts'
import { createWorkQueue, type WorkQueue } from '../delivery/work-queue.ts'
import { fetchDetail } from '../feeds/detail.ts'
import type { Book } from '../ledger/book.ts'
import { returnedPlace, type CollectingSink } from '../digest/placement.ts'
import type { Gathering, MadeWork, SinkModes } from '../ledger/collecting.ts'
import { confirmGeneration } from '../ledger/generation.ts'
import { noteDigestSent } from '../digest/digest-state.ts'
import { noteCanary } from '../notices/canary.ts'
import type { Delivery, Sink } from '../sinks/sink.ts'
import { createRouter, type Router } from '../routing/router.ts'
import { createServiceLink } from '../service/service-links.ts'
import { replica } from '../runtime/replica.ts'
import { buildFlusher, countSuppressed, type Collecting } from './build-flusher.ts'
import { buildGate } from './build-gate.ts'
import { buildRelief, reliefSinks } from './build-relief.ts'
import { buildSecrets, type LeakedSecrets } from './build-secrets.ts'
import type { Service } from './build-service.ts'
import { createLiveSilences, type LiveSilences } from './live-silences.ts'
import { buildSink } from './build-sinks.ts'
import { addressPrints } from './address-prints.ts'
import { findBook, type Shared } from './shared.ts'

export interface DeliveryParts {
  sinks: Map<string, Sink>
  router: Router
  silences: LiveSilences
  secrets: LeakedSecrets
  collecting: Collecting
  modes: SinkModes
  queue: WorkQueue
  circuit: Circuit
  workers: SinkWorkers
  detailJobs: DetailJobs
  reconciler: Reconciler
  relief: Relief
}

export function buildDelivery(shared: Shared, service: Service): DeliveryParts {
  const { config, redis, keys, clock, logger, metrics, timings } = shared
  const parts = { redis, keys, clock, logger, timings }
  const sinks = new Map(config.sinks.map((sink) => [sink.name, buildSink(sink, shared)]))
  const modes: SinkModes = Object.fromEntries(
    [...sinks.values()].map((sink) => [sink.name, sink.batch?.waitMs ?? false]),
  )
  const book = (account: string): Book | undefined => findBook(shared, account)
  const queue = createWorkQueue(redis, keys, sinks)
  const release = (account: string, made: MadeWork[]): Promise<void> => queue.addMade(account, made)
  const circuit = createCircuit(redis, keys, addressPrints(config, shared.books), timings)
  const router = createRouter(config.route)
  const silences = createLiveSilences(shared)
  const gate = buildGate(shared, router, () => silences.current())
  const secrets = buildSecrets(shared)
  const wake = createWake({ books: shared.books, circuit, queue, clock, logger })
  const collecting = buildFlusher(shared, { sinks, router, gate, circuit, wake, queue })
  const relieved = reliefSinks(shared, { sinks, collecting: collecting.sinks, modes })
  const diverter = createDiverter({ sinks: relieved, books: shared.books, queue, metrics })
  const deliverer = buildDeliverer(shared, { circuit, gate, secrets, diverter, wake })
  const workers = createSinkWorkers({
    ...parts,
    sinks,
    book,
    deliverer,
    queue,
    gate,
    onSuppressed: (sink, severity, reason) => countSuppressed(metrics, sink, severity, reason),
  })
  const detailJobs = buildDetailJobs(shared, service, { modes, release })
  const reconciler = createReconciler({
    books: shared.books,
    modes,
    queue,
    release,
    returnPlaces: (sink) => returnPlaces(collecting.sinks.get(sink)),
    confirmGeneration: () => confirm(shared),
    clock,
    logger,
    timings,
  })
  return {
    sinks,
    router,
    silences,
    secrets,
    collecting,
    modes,
    queue,
    circuit,
    workers,
    detailJobs,
    reconciler,
    relief: buildRelief(shared, { sinks: relieved, circuit, diverter, wake, queue }),
  }
}

function buildDeliverer(
  shared: Shared,
  {
    secrets,
    ...parts
  }: { circuit: Circuit; gate: Gate; diverter: Diverter; wake: Wake; secrets: LeakedSecrets },
): Deliverer {
  const { config, redis, keys, clock, logger, metrics } = shared
  return createDeliverer({
    ...parts,
    book: (account) => findBook(shared, account),
    onSuppressed: (sink, severity, reason) => countSuppressed(metrics, sink, severity, reason),
    openSecret: (account, uid, sealed) => secrets.open(account, uid, sealed),
    serviceLink: createServiceLink(config.accounts),
    onDelivered: (sink, delivery) => noteDelivered(shared, sink, delivery),
    pace: createSendPace(redis, keys, clock),
    replica,
    clock,
    logger,
    metrics,
  })
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

/** Whether this configuration is the active one; it may have become so because the other one is gone. */
async function confirm({ redis, keys, generation, metrics }: Shared): Promise<boolean> {
  const number = await confirmGeneration(redis, keys, generation.hash)
  generation.isActive = number !== undefined
  if (number === undefined) return false
  generation.number = number
  metrics.configGeneration.set(number)
  return true
}
