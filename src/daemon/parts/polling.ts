/** Builds the poller of an engine. */
import { polledFeeds } from '../../feeds/types/polled-feed.ts'
import type { LaneLimit } from '../../feeds/lanes/lane.ts'
import type { PolledAccount, Poller } from '../../feeds/poll-run.ts'
import { createPoller } from '../../feeds/poller.ts'
import { createRescanBudget } from '../../feeds/rescan-plan.ts'
import { countSuppressed } from '../../grouping/suppression-rules.ts'
import type { Metrics } from '../../lib/metrics/metrics.ts'
import { createRoomCheck } from '../../redis/health.ts'
import type { ItemChange } from '../../store/pending-items.ts'
import { readQuota } from '../../upstream/rate-limits.ts'
import { findLedger, type EngineContext } from '../context.ts'
import type { DeliveryParts } from './delivery.ts'
import { buildPlanner } from '../planner.ts'
import type { Upstream } from './upstream.ts'

export function buildPoller(
  context: EngineContext,
  upstream: Upstream,
  delivery: DeliveryParts,
): Poller {
  const { clock, logger, metrics } = context
  const { batchWaits, router, grouping } = delivery
  return createPoller({
    account: (name) => findAccount(context, upstream, delivery, name),
    plan: buildPlanner(context, router, grouping.sinks),
    batchWaitMs: (sink) => batchWaits[sink] || undefined,
    generation: () => context.generation.number,
    hasRoom: createRoomCheck(context.redis, clock),
    rescanBudget: createRescanBudget(
      polledFeeds(context.config),
      ({ account, tier }) => upstream.limit(account, tier).id,
      ({ account, tier }) => feedsPerSecond(upstream.limit(account, tier)),
    ),
    clock,
    logger,
    metrics,
  })
}

function findAccount(
  context: EngineContext,
  upstream: Upstream,
  { drains, fullEvents, secrets }: DeliveryParts,
  account: string,
): PolledAccount {
  const { redis, keys, metrics } = context
  const ledger = findLedger(context, account)
  if (!ledger) throw new Error(`the ledger of account ${account} is not open`)
  const client = upstream.client(account)
  return {
    client,
    ledger,
    queue(changes) {
      countChanges(metrics, changes)
      drains.announceChanges(account, changes)
      fullEvents.fetch(account, changes)
      return Promise.resolve()
    },
    readQuota: () => readQuota(redis, keys, account),
    sealSecret: (uid, secret) => secrets.seal?.(account, uid, secret),
    pairDigest: (parts) => secrets.pairId(account, parts),
    capabilities: client.capabilities,
  }
}

function feedsPerSecond({ perSecond, share }: LaneLimit): number {
  return perSecond * share
}

function countChanges(metrics: Metrics, changes: readonly ItemChange[]): void {
  for (const { k: sink, sv: severity, why: reason, kind } of changes) {
    if (kind !== 'superseded') metrics.itemsCreatedTotal.inc({ sink })
    if (reason === undefined) continue
    countSuppressed(metrics, sink, severity, reason)
  }
}
