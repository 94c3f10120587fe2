import type { AuditOptions } from '../audit/audit-feed.ts'
import { type AuditSchedule, createAuditSchedule } from '../audit/audit-schedule.ts'
import { polledFeeds, isReserveReached, type PolledFeed } from '../feed-types/feed-type.ts'
import { createRoomCheck } from '../redis/health.ts'
import { readQuota } from '../upstream/rate-limits.ts'
import { findLedger, type EngineContext } from './context.ts'
import type { DeliveryParts } from './delivery.ts'
import { buildPlanner } from './planner.ts'
import type { Upstream } from './upstream.ts'

export type AuditParts = (feed: PolledFeed) => AuditOptions

interface AuditNeeds extends Pick<DeliveryParts, 'router' | 'secrets'> {
  grouping: Pick<DeliveryParts['grouping'], 'sinks'>
}

/**
 * Builds what an audit needs; missing events that it finds are planned as the poller would plan
 * them.
 */
export function buildAuditParts(
  context: EngineContext,
  upstream: Upstream,
  { router, grouping, secrets }: AuditNeeds,
): AuditParts {
  const plan = buildPlanner(context, router, grouping.sinks)
  return (feed) => {
    const ledger = findLedger(context, feed.account)
    if (!ledger) throw new Error(`the ledger of account ${feed.account} is not open`)
    return {
      client: upstream.client(feed.account),
      ledger,
      clock: context.clock,
      async isReserveReached() {
        const quota = await readQuota(context.redis, context.keys, feed.account)
        return isReserveReached(feed, quota, context.clock.now())
      },
      plan: (event) => plan(event, feed, { isBacklog: false, isFresh: false }),
      pairDigest: (parts) => secrets.pairId(feed.account, parts),
      sealSecret: (uid, secret) => secrets.seal?.(feed.account, uid, secret),
    }
  }
}

export function buildAudits(
  context: EngineContext,
  upstream: Upstream,
  delivery: DeliveryParts,
): AuditSchedule {
  return createAuditSchedule({
    ...context,
    feeds: polledFeeds(context.config),
    optionsFor: buildAuditParts(context, upstream, delivery),
    isActive: () => context.generation.isActive,
    hasRoom: createRoomCheck(context.redis, context.clock),
  })
}
