import { createLanes, type Lanes } from '../feeds/lanes.ts'
import { within, type Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { buildAccountWatch } from './build-accounts.ts'
import { buildAudits } from './build-audits.ts'
import { buildDelivery, type DeliveryParts } from './build-delivery.ts'
import { buildKeeping } from './build-keeping.ts'
import { buildLoops, type NamedLoop } from './build-loops.ts'
import { buildNotices } from './build-notices.ts'
import { buildPoller } from './build-poller.ts'
import { buildState } from './build-state.ts'
import { polledFeeds } from './polled-feeds.ts'
import { buildSinks } from './build-sinks.ts'
import type { Service } from './build-service.ts'
import type { Shared } from './shared.ts'

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

export async function buildEngine(shared: Shared, service: Service): Promise<Engine> {
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
  await service.recallOrganizations()
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
export async function stopEngine(
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
