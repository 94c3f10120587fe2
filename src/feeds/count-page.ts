import { isKnownSeverity } from '../events/severity.ts'
import type { Accepted, Page, RoutedEvent } from '../intake/intake.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import type { PolledFeed } from './polled-feed.ts'

type Committed = Extract<Accepted, { status: 'committed' }>

/** Metrics and log of a page that was taken in. */
export function countPage(
  { metrics, logger }: { metrics: Metrics; logger: Logger },
  { name: feed }: Pick<PolledFeed, 'name'>,
  page: Page,
  { counts, newEvents }: Committed,
): void {
  metrics.feedPagesTotal.inc({ feed })
  if (counts.fetched === 0) metrics.feedEmptyPagesTotal.inc({ feed })
  metrics.eventsFetchedTotal.inc({ feed }, counts.fetched)
  metrics.eventsDuplicateTotal.inc({ feed }, counts.duplicate)
  metrics.eventsQuarantinedTotal.inc({ feed }, counts.quarantined)
  metrics.eventsBaselineTotal.inc({ feed }, counts.baseline)
  metrics.eventsSeverityRaisedTotal.inc({ feed }, counts.raised)
  metrics.sweepLateEventsTotal.inc({ feed }, counts.late)
  for (const routed of newEvents) countNew(metrics, page, routed)
  if (counts.new + counts.quarantined + counts.raised > 0)
    logger.info({ feed, ...counts }, 'page taken in')
}

function countNew(
  metrics: Metrics,
  { feed, requestedAtMs, sweep }: Page,
  { event, decisions }: RoutedEvent,
): void {
  const { severity } = event
  metrics.eventsNewTotal.inc({ feed, severity })
  if (!isKnownSeverity(severity)) metrics.unknownSeverityTotal.inc({ feed })
  for (const { route } of decisions) metrics.eventsRoutedTotal.inc({ route, severity })
  if (decisions.every(({ path }) => path.length === 1))
    metrics.eventsRootOnlyTotal.inc({ severity })
  const shownAtMs = event.matchedAtMs ?? event.createdAtMs
  if (shownAtMs === null || sweep) return // how soon the tail is, what a sweep finds does not tell
  const waitedMs = Math.max(0, requestedAtMs - shownAtMs)
  metrics.eventMatchToFetchSeconds.observe({ feed }, waitedMs / 1000)
}
