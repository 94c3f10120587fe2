import type { AuditSchedule } from '../audit/audit-schedule.ts'
import { createProofSchedule, type ProofSchedule } from '../audit/ledger-check-schedule.ts'
import type { LoadedConfig } from '../config/load.ts'
import { createLanes, type Lanes } from '../feeds/lanes.ts'
import { type Clock, within } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import { createLoop, type Loop, type LoopOptions } from '../lib/loop.ts'
import { activateGeneration, confirmGeneration } from '../store/account-ledger.ts'
import { createRetention, type Retention } from '../store/retention.ts'
import { type AccountWatch, buildAccountWatch } from './accounts.ts'
import { buildAudits } from './audits.ts'
import type { Lasting, Shared } from './context.ts'
import { buildDelivery, type DeliveryParts } from './delivery.ts'
import { polledFeeds } from './polled-feeds.ts'
import { buildPoller } from './polling.ts'
import { buildNotices, type NoticeParts } from './self-alerts.ts'
import { buildSinks } from './sinks.ts'
import { buildState, type StateWatch } from './state.ts'
import { buildService, type Service } from './upstream.ts'

/** What polls and delivers. Building it writes to Redis: BullMQ registers its queues. */
export interface Engine {
  delivery: DeliveryParts
  service: Service
  lanes: Lanes
  loops: NamedLoop[]
  /** Aborts when it is to stop. */
  stopping: AbortController
}

/** How long closing sinks may take once their work has ended, ms. */
const closeMs = 300

async function buildEngine(shared: Shared, service: Service): Promise<Engine> {
  const sinks = await buildSinks(shared.config.sinks, shared)
  const delivery = buildDelivery(shared, service, sinks)
  const poller = buildPoller(shared, service, delivery)
  const feeds = polledFeeds(shared.config)
  const lanes = createLanes({
    ...shared,
    feeds,
    poller,
    pollsPerSecond: shared.config.limits.pollsPerSecond,
    laneOf: ({ account, tier }) => service.limit(account, tier),
    lanesVersion: () => service.limitsVersion(),
    generation: () => shared.generation.number,
    isActive: () => shared.generation.isActive,
  })
  const state = buildState(shared, service, { ...delivery, lanes })
  const notices = buildNotices(shared, { delivery, state, expected: service.expected })
  const audits = buildAudits(shared, service, delivery)
  const accounts = buildAccountWatch(shared)
  const others = { accounts, lanes, audits, state, ...buildKeeping(shared) }
  const loops = buildLoops(shared, delivery, others, notices)
  return { delivery, service, lanes, loops, stopping: new AbortController() }
}

export async function startEngine(
  engine: Engine,
  { clock, logger }: { clock: Clock; logger: Logger },
): Promise<void> {
  const { delivery, loops, stopping } = engine
  await delivery.silences.refreshOnce() // before anything is judged
  delivery.drains.start()
  for (const { loop } of loops) loop.start()
  try {
    await startPolling(engine)
  } catch (error) {
    // a full Redis refuses jobs; what waits is delivered all the same
    logger.warn({ err: error }, 'polling waits: Redis refuses its jobs')
    void retryPolling(engine, clock, stopping.signal)
  }
}

async function startPolling({ service, lanes, delivery, stopping }: Engine): Promise<void> {
  await lanes.ensure()
  lanes.start()
  delivery.detailJobs.start()
  void service.findOrganizations(stopping.signal)
}

/** Between tries at a Redis that refuses, ms. */
const retryMs = 1_000

async function retryPolling(engine: Engine, clock: Clock, stopping: AbortSignal): Promise<void> {
  for (;;) {
    await clock.sleep(retryMs, stopping)
    if (stopping.aborted) return
    const hasStarted = await startPolling(engine).then(
      () => true,
      () => false,
    )
    if (hasStarted) return
  }
}

/** Takes no new work, lets what runs finish within `finishMs`, then cuts it off. */
async function stopEngine(
  { delivery, lanes, loops, stopping }: Engine,
  clock: Clock,
  finishMs: number,
): Promise<void> {
  stopping.abort()
  await Promise.all([
    ...loops.map(({ loop }) => within(finishMs, loop.stop(), clock)),
    lanes.stop(finishMs),
    delivery.detailJobs.stop(finishMs),
    delivery.drains.stop(finishMs),
  ])
  const sinks = [...delivery.sinks.values()].map((sink) => sink.close())
  await within(closeMs, Promise.all(sinks), clock)
}

interface NamedLoop {
  name: string
  loop: Loop
}

interface OtherParts extends KeepingParts {
  accounts: AccountWatch
  lanes: Lanes
  audits: AuditSchedule
  state: StateWatch
}

type Work = (...given: Parameters<LoopOptions['tick']>) => Promise<unknown>

/** The process' own loops; /healthz watches that they move. */
function buildLoops(
  shared: Shared,
  { drains, silences, collecting, relief }: DeliveryParts,
  { accounts, lanes, audits, state, proofs, retention }: OtherParts,
  notices: NoticeParts | undefined,
): NamedLoop[] {
  const { redis, clock, logger, timings } = shared
  function named(name: string, everyMs: number, work: Work): NamedLoop {
    const tick: LoopOptions['tick'] = async (signal, alive) => {
      if (redis.status === 'ready') await work(signal, alive)
    }
    return { name, loop: createLoop({ name, everyMs, clock, logger, tick }) }
  }
  return [
    named('generation', timings.generationMs, () => confirmOnce(shared)),
    named('work', timings.hintsMs, () => drains.hearOnce()),
    named('leases', timings.claimLeaseMs / 4, () => drains.renewOnce()),
    named('due work', timings.healMs, (signal, alive) => drains.healOnce(signal, alive)),
    named('silences', timings.silencesMs, () => silences.refreshOnce()),
    named('collections', timings.groupsMs, () => collecting.flushOnce()),
    named('relief', timings.reliefMs, (signal, alive) => relief.relieveOnce(signal, alive)),
    named('accounts', timings.accountsMs, (signal, alive) => accounts.watchOnce(signal, alive)),
    named('state', timings.stateMs, (signal, alive) => state.passOnce(signal, alive)),
    named('lanes', timings.lanesMs, () => lanes.ensure()),
    named('audits', timings.housekeepingMs, (signal, alive) => audits.auditOnce(signal, alive)),
    named('ledger audits', timings.housekeepingMs, (signal, alive) =>
      proofs.proveOnce(signal, alive),
    ),
    named('retention', timings.housekeepingMs, (signal, alive) =>
      retention.retainOnce(signal, alive),
    ),
    ...(notices ? [named('notices', timings.housekeepingMs, () => notices.lookOnce())] : []),
  ]
}

/** Whether this configuration is the active one; it may have become so because the other one is gone. */
async function confirmOnce({ redis, keys, generation, metrics }: Shared): Promise<void> {
  const number = await confirmGeneration(redis, keys, generation.hash)
  generation.isActive = number !== undefined
  if (number === undefined) return
  generation.number = number
  metrics.configGeneration.set(number)
}

/** What looks after the ledger as a whole: that it adds up, and that it stays within its size. */
interface KeepingParts {
  proofs: ProofSchedule
  retention: Retention
}

function buildKeeping(shared: Shared): KeepingParts {
  const { config, metrics } = shared
  const isActive = (): boolean => shared.generation.isActive
  return {
    proofs: createProofSchedule({ ...shared, isActive }),
    retention: createRetention({
      ...shared,
      maxBytes: config.ledger.maxBytes,
      isActive,
      onTrimmed({ stories, payloads, quarantined }) {
        metrics.retentionTrimmedTotal.inc({ what: 'story' }, stories)
        metrics.retentionTrimmedTotal.inc({ what: 'payload' }, payloads)
        metrics.retentionTrimmedTotal.inc({ what: 'quarantine' }, quarantined)
      },
    }),
  }
}

/** One configuration and all that is built from it: what a start builds once and a reload replaces. */

export interface Setup {
  readonly shared: Shared
  readonly service: Service
  /** What polls and delivers; only once Redis was reached. */
  engine: Engine | undefined
}

/** How long running work may take to finish, ms: after a stop the process is gone within ten seconds. */
const finishMs = 8_000

/** Writes nothing to Redis. */
export function createSetup(
  lasting: Lasting,
  { config, hash }: Pick<LoadedConfig, 'config' | 'hash'>,
): Setup {
  const generation = { number: 0, hash, isActive: true }
  const shared: Shared = { ...lasting, config, books: [], newAccounts: [], generation }
  return { shared, service: buildService(shared), engine: undefined }
}

/** Once its books are open. Whatever runs or is shown from then on goes by the organizations that are known. */
export async function assemble(setup: Setup): Promise<Engine> {
  await setup.service.recallOrganizations()
  setup.engine = await buildEngine(setup.shared, setup.service)
  return setup.engine
}

/** Makes it the configuration that polls. Waits for a Redis that is away. */
export async function activate({ redis, keys, generation, metrics }: Shared): Promise<void> {
  generation.number = await activateGeneration(redis, keys, generation.hash)
  metrics.configGeneration.set(generation.number)
}

/** Takes no new work, finishes what it can in 8 s, gives the rest back. Never rejects. */
export async function leave({ engine, service, shared }: Setup): Promise<void> {
  if (engine) await stopEngine(engine, shared.clock, finishMs)
  await within(closeMs, service.close(), shared.clock)
}
