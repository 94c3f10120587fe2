import type { LaneLimit } from '../feeds/lane.ts'
import { createPoller, type Poller } from '../feeds/poller.ts'
import { createRescanBudget } from '../feeds/rescan-plan.ts'
import type { Metrics } from '../lib/metrics.ts'
import { createRoomWatch } from '../redis/health.ts'
import type { MadeWork } from '../store/pending-items.ts'
import { readQuota } from '../upstream/rate-limits.ts'
import { findBook, type Shared } from './context.ts'
import type { DeliveryParts } from './delivery.ts'
import { countSuppressed } from './grouping.ts'
import { buildPlanner, polledFeeds } from './polled-feeds.ts'
import type { Service } from './upstream.ts'

export function buildPoller(shared: Shared, service: Service, delivery: DeliveryParts): Poller {
  const { redis, keys, clock, logger, metrics } = shared
  const { modes, drains, detailJobs, router, collecting, secrets } = delivery
  return createPoller({
    client: (account) => service.client(account),
    book(account) {
      const book = findBook(shared, account)
      if (!book) throw new Error(`no book is open for account ${account}`)
      return book
    },
    plan: buildPlanner(shared, router, collecting.sinks),
    batchWaitMs: (sink) => modes[sink] || undefined,
    async queue(account, made) {
      countMade(metrics, made)
      await Promise.all([drains.tellMade(account, made), detailJobs.add(account, made)])
    },
    generation: () => shared.generation.number,
    hasRoom: createRoomWatch(redis, clock),
    capabilities: (account) => service.client(account).capabilities,
    rescanBudget: createRescanBudget(
      polledFeeds(shared.config),
      ({ account, tier }) => service.limit(account, tier).id,
      ({ account, tier }) => feedsPerSecond(service.limit(account, tier)),
    ),
    quotaOf: (account) => readQuota(redis, keys, account),
    sealSecret: secrets.seal,
    pairIdOf: secrets.pairId,
    clock,
    logger,
    metrics,
  })
}

function feedsPerSecond({ perSecond, share }: LaneLimit): number {
  return perSecond * share
}

function countMade(metrics: Metrics, made: readonly MadeWork[]): void {
  for (const { k: sink, sv: severity, why: reason, kind } of made) {
    if (kind !== 'superseded') metrics.itemsCreatedTotal.inc({ sink })
    if (reason === undefined) continue
    countSuppressed(metrics, sink, severity, reason)
  }
}
