import { isKnownSeverity } from '../events/severity.ts'
import type { Accepted, Page, RoutedEvent } from '../intake/intake.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import type { FeedConfig } from './config.ts'

type Committed = Extract<Accepted, { status: 'committed' }>

/** Metrics and log of a page that was taken in. */
export function countPage(
  { metrics, logger }: { metrics: Metrics; logger: Logger },
  { name: feed }: FeedConfig,
  page: Page,
  { counts, newEvents }: Committed,
): void {
  metrics.feedPagesTotal.inc({ feed })
  if (counts.fetched === 0) metrics.feedEmptyPagesTotal.inc({ feed })
  metrics.eventsFetchedTotal.inc({ feed }, counts.fetched)
  metrics.eventsDuplicateTotal.inc({ feed }, counts.duplicate)
  metrics.eventsQuarantinedTotal.inc({ feed }, counts.quarantined)
  for (const routed of newEvents) countNew(metrics, feed, page.requestedAtMs, routed)
  if (counts.new + counts.quarantined > 0) logger.info({ feed, ...counts }, 'page taken in')
}

function countNew(
  metrics: Metrics,
  feed: string,
  requestedAtMs: number,
  { event, decisions }: RoutedEvent,
): void {
  const { severity } = event
  metrics.eventsNewTotal.inc({ feed, severity })
  if (!isKnownSeverity(severity)) metrics.unknownSeverityTotal.inc({ feed })
  for (const { route } of decisions) metrics.eventsRoutedTotal.inc({ route, severity })
  if (decisions.every(({ path }) => path.length === 1))
    metrics.eventsRootOnlyTotal.inc({ severity })
  const shownAtMs = event.matchedAtMs ?? event.createdAtMs
  if (shownAtMs === null) return
  const waitedMs = Math.max(0, requestedAtMs - shownAtMs)
  metrics.eventMatchToFetchSeconds.observe({ feed }, waitedMs / 1000)
}
