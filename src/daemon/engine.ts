/** Builds, starts and stops an engine: one configuration and everything that polls and delivers. */
import { polledFeeds } from '../feeds/types/polled-feed.ts'
import type { FileContents } from '../config/file-contents.ts'
import type { LoadedConfig } from '../config/load.ts'
import { createLanes, type Lanes } from '../feeds/lanes/lanes.ts'
import { type Clock, waitAtMost } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import { createLoop, type Loop, type LoopOptions } from '../lib/loop.ts'
import { claimSchema } from '../redis/health.ts'
import {
  activateGeneration,
  type Confirmation,
  confirmGeneration,
  describeLoss,
  isForgotten,
  type LedgerLoss,
  lossRemedy,
  noteLoss,
} from '../store/account-ledger.ts'
import { createRetention, type Retention } from '../store/retention.ts'
import { type AccountWatch, buildAccountWatch } from './accounts.ts'
import { type ProcessContext, type EngineContext, standingOf, unregistered } from './context.ts'
import { buildDelivery, type DeliveryParts } from './parts/delivery.ts'
import { buildPoller } from './parts/polling.ts'
import { buildSelfAlerts, type SelfAlertParts } from './parts/self-alerts.ts'
import { buildSinks } from './parts/sinks.ts'
import { buildState, type StateWatch } from './state.ts'
import { buildUpstream, type Upstream } from './parts/upstream.ts'

/** What polls and delivers. Building it writes to Redis: BullMQ registers its queues. */
export interface EngineParts {
  delivery: DeliveryParts
  upstream: Upstream
  lanes: Lanes
  loops: NamedLoop[]
  /** Aborts when the parts must stop. */
  stopping: AbortController
}

/** How long closing sinks may take once their work has ended, ms. */
const closeMs = 300

async function buildEngineParts(context: EngineContext, upstream: Upstream): Promise<EngineParts> {
  const sinks = await buildSinks(context.config.sinks, context)
  const delivery = buildDelivery(context, upstream, sinks)
  const poller = buildPoller(context, upstream, delivery)
  const feeds = polledFeeds(context.config)
  const lanes = createLanes({
    ...context,
    feeds,
    poller,
    laneFor: ({ account, tier }) => upstream.limit(account, tier),
    lanesVersion: () => upstream.limitsVersion(),
    generation: () => context.generation.number,
    isActive: () => context.generation.isActive,
  })
  const state = buildState(context, upstream, { ...delivery, lanes })
  const selfAlerts = buildSelfAlerts(context, { delivery, state, upstream })
  const accounts = buildAccountWatch(context)
  const others = { accounts, lanes, state, retention: buildRetention(context) }
  const loops = buildLoops(context, delivery, others, selfAlerts)
  return { delivery, upstream, lanes, loops, stopping: new AbortController() }
}

export async function startEngineParts(
  parts: EngineParts,
  { clock, logger }: { clock: Clock; logger: Logger },
): Promise<void> {
  const { delivery, loops, stopping } = parts
  await delivery.silences.refreshOnce() // before any suppression is decided
  delivery.drains.start()
  for (const { loop } of loops) loop.start()
  try {
    await startPolling(parts)
  } catch (error) {
    // A full Redis refuses jobs; waiting items are delivered all the same.
    logger.warn({ err: error }, 'polling waits: Redis refuses its jobs')
    void retryPolling(parts, clock, stopping.signal)
  }
}

async function startPolling({ upstream, lanes, stopping }: EngineParts): Promise<void> {
  await lanes.ensure()
  lanes.start()
  void upstream.findOrganizations(stopping.signal)
}

/** Between tries while Redis refuses, ms. */
const retryMs = 1_000

async function retryPolling(
  parts: EngineParts,
  clock: Clock,
  stopping: AbortSignal,
): Promise<void> {
  for (;;) {
    await clock.sleep(retryMs, stopping)
    if (stopping.aborted) return
    const hasStarted = await startPolling(parts).then(
      () => true,
      () => false,
    )
    if (hasStarted) return
  }
}

/** Takes no new work, lets running work finish within `finishMs`, then cuts it off. */
async function stopEngineParts(
  { delivery, lanes, loops, stopping }: EngineParts,
  clock: Clock,
  finishMs: number,
): Promise<void> {
  stopping.abort()
  await Promise.all([
    ...loops.map(({ loop }) => waitAtMost(finishMs, loop.stop(), clock)),
    lanes.stop(finishMs),
    delivery.fullEvents.stop(),
    delivery.drains.stop(finishMs),
  ])
  const sinks = [...delivery.sinks.values()].map((sink) => sink.close())
  await waitAtMost(closeMs, Promise.all(sinks), clock)
}

interface NamedLoop {
  name: string
  loop: Loop
}

interface OtherParts {
  accounts: AccountWatch
  lanes: Lanes
  state: StateWatch
  retention: Retention
}

type LoopTask = (...given: Parameters<LoopOptions['tick']>) => Promise<unknown>

/** The process's own loops; /healthz watches their progress. */
function buildLoops(
  context: EngineContext,
  { drains, silences, grouping, failover }: DeliveryParts,
  { accounts, lanes, state, retention }: OtherParts,
  selfAlerts: SelfAlertParts | undefined,
): NamedLoop[] {
  const { redis, clock, logger, timings } = context
  function createNamedLoop(name: string, everyMs: number, task: LoopTask): NamedLoop {
    const tick: LoopOptions['tick'] = async (signal, alive) => {
      if (redis.status === 'ready') await task(signal, alive)
    }
    return { name, loop: createLoop({ name, everyMs, clock, logger, tick }) }
  }
  return [
    createNamedLoop('generation', timings.generationMs, () => confirmActiveOnce(context)),
    createNamedLoop('leases', timings.claimLeaseMs / 4, () => drains.renewOnce()),
    createNamedLoop('due work', timings.healMs, (signal, alive) =>
      drains.reconcileOnce(signal, alive),
    ),
    createNamedLoop('silences', timings.silencesMs, () => silences.refreshOnce()),
    createNamedLoop('groups', timings.groupsMs, (signal, alive) =>
      grouping.flushGroupsOnce({ signal, alive }),
    ),
    createNamedLoop('digests', timings.groupsMs, (signal, alive) =>
      grouping.flushDigestsOnce({ signal, alive }),
    ),
    createNamedLoop('failover', timings.failoverMs, (signal, alive) =>
      failover.failoverOnce(signal, alive),
    ),
    createNamedLoop('accounts', timings.accountsMs, () => accounts.watchOnce()),
    createNamedLoop('state', timings.stateMs, (signal, alive) => state.refreshOnce(signal, alive)),
    createNamedLoop('lanes', timings.lanesMs, () => lanes.ensure()),
    createNamedLoop('retention', timings.housekeepingMs, (signal, alive) =>
      retention.retainOnce(signal, alive),
    ),
    ...(selfAlerts
      ? [
          createNamedLoop('self-alerts', timings.housekeepingMs, (_signal, alive) =>
            selfAlerts.checkOnce(alive),
          ),
        ]
      : []),
  ]
}

/** Checks whether this configuration is the active one; it becomes so when the other one is gone. */
async function confirmActiveOnce(context: EngineContext): Promise<void> {
  const { redis, keys, generation } = context
  const confirmation = await confirmGeneration(redis, keys, generation.hash)
  generation.isActive = confirmation.active !== undefined
  await standingOf(context).checkNewest()
  takeConfirmation(context, confirmation)
  if (generation.loss === undefined) return
  await settleLoss(context, generation.loss)
  delete generation.loss
}

function takeConfirmation(
  { clock, logger, generation, metrics }: EngineContext,
  { active, previous }: Confirmation,
): void {
  if (isForgotten(generation.previous, previous)) {
    generation.loss = { atMs: clock.now(), stateMs: previous.atMs }
    logger.error({ remedy: lossRemedy }, `redis holds ${describeLoss(generation.loss)}`)
  }
  generation.previous = previous
  if (active === undefined) return
  generation.number = active
  metrics.configGeneration.set(active)
}

/** Notes the loss, and writes again what the ledgers cannot do without. */
async function settleLoss(
  { ledgers, redis, keys, logger }: EngineContext,
  loss: LedgerLoss,
): Promise<void> {
  await noteLoss(redis, keys, loss)
  await claimSchema(redis, keys)
  const kept = await Promise.all(ledgers.map((ledger) => ledger.reassert()))
  const accounts = ledgers.filter((_ledger, at) => !kept[at]).map(({ account }) => account)
  if (accounts.length > 0)
    logger.error(
      { accounts, remedy: lossRemedy },
      'redis holds another ledger: what it knows is sent again',
    )
}

function buildRetention(context: EngineContext): Retention {
  const { config, metrics } = context
  return createRetention({
    ...context,
    maxBytes: config.ledger.maxBytes,
    isActive: () => context.generation.isActive,
    onTrimmed: (events) => metrics.retentionTrimmedTotal.inc(events),
  })
}

/** One configuration and all that is built from it: built once by a start, replaced by a reload. */
export interface Engine {
  readonly context: EngineContext
  /** When its configuration was read, ms. */
  readonly sinceMs: number
  /** What asked for the reload; undefined: the process began with it. */
  readonly by: string | undefined
  /** What the files that its configuration names held when it was read. */
  readonly files: FileContents
  readonly upstream: Upstream
  /** undefined until Redis is reached. */
  parts: EngineParts | undefined
}

/** How long running work may take to finish, ms: the process ends within ten seconds of a stop. */
const finishMs = 8_000

/** Writes nothing to Redis. */
export function createEngine(
  processContext: ProcessContext,
  { config, hash, files, by }: Pick<LoadedConfig, 'config' | 'hash' | 'files'> & { by?: string },
): Engine {
  const generation = { ...unregistered(hash), isActive: true, isNewest: true }
  const context: EngineContext = {
    ...processContext,
    config,
    ledgers: [],
    foreignAccounts: new Map(),
    generation,
  }
  const sinceMs = context.clock.now()
  return { context, sinceMs, by, files, upstream: buildUpstream(context), parts: undefined }
}

/**
 * Expects open ledgers. Recalls the known organizations first: polling and everything shown depend
 * on them.
 */
export async function assembleEngine(engine: Engine): Promise<EngineParts> {
  await engine.upstream.recallOrganizations()
  engine.parts = await buildEngineParts(engine.context, engine.upstream)
  return engine.parts
}

/** Makes this the configuration that polls. Waits while Redis is unreachable. */
export async function activateConfig(context: EngineContext): Promise<void> {
  const { redis, keys, generation } = context
  takeConfirmation(context, await activateGeneration(redis, keys, generation.hash))
}

/** Takes no new work, finishes what it can in 8 s, gives the rest back. Never rejects. */
export async function stopEngine({ parts, upstream, context }: Engine): Promise<void> {
  if (parts) await stopEngineParts(parts, context.clock, finishMs)
  await waitAtMost(closeMs, upstream.close(), context.clock)
}
