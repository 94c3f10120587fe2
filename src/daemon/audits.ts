import type { AuditOptions } from '../audit/audit-feed.ts'
import { type AuditSchedule, createAuditSchedule } from '../audit/audit-schedule.ts'
import { isReserveReached, type PolledFeed } from '../feed-types/feed-type.ts'
import { readQuota } from '../upstream/rate-limits.ts'
import { findBook, type Shared } from './context.ts'
import type { DeliveryParts } from './delivery.ts'
import { buildPlanner, polledFeeds } from './polled-feeds.ts'
import type { Service } from './upstream.ts'

export type AuditParts = (feed: PolledFeed) => AuditOptions

interface AuditNeeds extends Pick<DeliveryParts, 'router' | 'secrets'> {
  collecting: Pick<DeliveryParts['collecting'], 'sinks'>
}

/** What an audit needs of the rest; what it finds missing has its way fixed as the poller would. */
export function buildAuditParts(
  shared: Shared,
  service: Service,
  { router, collecting, secrets }: AuditNeeds,
): AuditParts {
  const plan = buildPlanner(shared, router, collecting.sinks)
  return (feed) => {
    const book = findBook(shared, feed.account)
    if (!book) throw new Error(`no book is open for account ${feed.account}`)
    return {
      client: service.client(feed.account),
      book,
      clock: shared.clock,
      async isReserveReached() {
        const quota = await readQuota(shared.redis, shared.keys, feed.account)
        return isReserveReached(feed, quota, shared.clock.now())
      },
      plan: (event) => plan(event, feed, { isBacklog: false, isFresh: false }),
      pairIdOf: (parts) => secrets.pairId(feed.account, parts),
      seal: (uid, secret) => secrets.seal?.(feed.account, uid, secret),
    }
  }
}

export function buildAudits(
  shared: Shared,
  service: Service,
  delivery: DeliveryParts,
): AuditSchedule {
  return createAuditSchedule({
    ...shared,
    feeds: polledFeeds(shared.config),
    partsOf: buildAuditParts(shared, service, delivery),
    isActive: () => shared.generation.isActive,
  })
}
