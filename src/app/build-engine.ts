import { createLanes, type Lanes } from '../feeds/lanes.ts'
import { within, type Clock } from '../runtime/clock.ts'
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
  lanes: Lanes
  loops: NamedLoop[]
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
    laneOf: ({ account, tier }) => service.limit(account, tier),
    lanesVersion: () => service.limitsVersion(),
    generation: () => shared.generation.number,
    isActive: () => shared.generation.isActive,
  })
  const state = buildState(shared, service, delivery)
  const notices = buildNotices(shared, delivery, state)
  const audits = buildAudits(shared, service, delivery)
  const accounts = buildAccountWatch(shared)
  const others = { accounts, lanes, audits, state, ...buildKeeping(shared) }
  const loops = buildLoops(shared, delivery, others, notices)
  return { delivery, lanes, loops }
}

export async function startEngine({ delivery, lanes, loops }: Engine): Promise<void> {
  await delivery.silences.refreshOnce() // before anything is judged
  await lanes.ensure()
  lanes.start()
  delivery.detailJobs.start()
  delivery.drains.start()
  for (const { loop } of loops) loop.start()
}

/** Takes no new work, lets what runs finish within `finishMs`, then cuts it off. */
export async function stopEngine(
  { delivery, lanes, loops }: Engine,
  clock: Clock,
  finishMs: number,
): Promise<void> {
  await Promise.all([
    ...loops.map(({ loop }) => within(finishMs, loop.stop(), clock)),
    lanes.stop(finishMs),
    delivery.detailJobs.stop(finishMs),
    delivery.drains.stop(finishMs),
  ])
  const sinks = [...delivery.sinks.values()].map((sink) => sink.close())
  await within(closeMs, Promise.all(sinks), clock)
}
