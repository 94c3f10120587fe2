/** Builds, starts and stops an engine: one configuration and everything that polls and delivers. */
import { polledFeeds } from '../feeds/types/polled-feed.ts'
import type { FileContents } from '../config/file-contents.ts'
import type { LoadedConfig } from '../config/load.ts'
import { createLanes, type Lanes } from '../feeds/lanes/lanes.ts'
import { type Clock, waitAtMost } from '../lib/clock.ts'
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

export async function startEngineParts(parts: EngineParts): Promise<void> {
  const { delivery, upstream, lanes, loops, stopping } = parts
  await delivery.silences.refreshOnce() // before any suppression is decided
  delivery.drains.start()
  for (const { loop } of loops) loop.start()
  lanes.start() // a full Redis refuses their jobs for now; waiting items are delivered all the same
  void upstream.findOrganizations(stopping.signal)
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
    delivery.fullEvents.stop(finishMs),
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

type LoopRow = [name: string, everyMs: number, task: (...given: TickParts) => Promise<unknown>]
type TickParts = Parameters<LoopOptions['tick']>

/** The process's own loops; /healthz watches their progress. */
function buildLoops(
  context: EngineContext,
  { drains, silences, grouping, failover }: DeliveryParts,
  { accounts, lanes, state, retention }: OtherParts,
  selfAlerts: SelfAlertParts | undefined,
): NamedLoop[] {
  const { redis, timings } = context
  const rows: LoopRow[] = [
    ['generation', timings.generationMs, () => confirmActiveOnce(context)],
    ['leases', timings.claimLeaseMs / 4, () => drains.renewOnce()],
    ['due work', timings.healMs, (...given) => drains.reconcileOnce(...given)],
    ['silences', timings.silencesMs, () => silences.refreshOnce()],
    ['groups', timings.groupsMs, (signal, alive) => grouping.flushGroupsOnce({ signal, alive })],
    ['digests', timings.groupsMs, (signal, alive) => grouping.flushDigestsOnce({ signal, alive })],
    ['failover', timings.failoverMs, (...given) => failover.failoverOnce(...given)],
    ['accounts', timings.accountsMs, () => accounts.watchOnce()],
    ['state', timings.stateMs, (...given) => state.refreshOnce(...given)],
    ['lanes', timings.lanesMs, () => lanes.ensure()],
    ['retention', timings.housekeepingMs, (...given) => retention.retainOnce(...given)],
  ]
  if (selfAlerts)
    rows.push([
      'self-alerts',
      timings.housekeepingMs,
      (_signal, alive) => selfAlerts.checkOnce(alive),
    ])
  return rows.map(([name, everyMs, task]) => {
    const tick: LoopOptions['tick'] = async (...given) => {
      if (redis.status === 'ready') await task(...given)
    }
    return { name, loop: createLoop({ ...context, name, everyMs, tick }) }
  })
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
  { clock, logger, generation }: EngineContext,
  { active, previous }: Confirmation,
): void {
  if (isForgotten(generation.previous, previous)) {
    generation.loss = { atMs: clock.now(), stateMs: previous.atMs }
    logger.error({ remedy: lossRemedy }, `redis holds ${describeLoss(generation.loss)}`)
  }
  generation.previous = previous
  if (active !== undefined) generation.number = active
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
