import { isKnownSeverity } from '../events/severity.ts'
import type { Accepted, Page, RoutedEvent } from '../intake/intake.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import type { UnreadField } from './field-reader.ts'
import type { PolledFeed } from './polled-feed.ts'

type Committed = Extract<Accepted, { status: 'committed' }>

/** Metrics and log of a page that was taken in. */
export function countPage(
  parts: { metrics: Metrics; logger: Logger },
  { name: feed }: Pick<PolledFeed, 'name'>,
  page: Page,
  { counts, newEvents }: Committed,
): void {
  const { metrics, logger } = parts
  metrics.feedPagesTotal.inc({ feed })
  if (counts.fetched === 0) metrics.feedEmptyPagesTotal.inc({ feed })
  metrics.eventsFetchedTotal.inc({ feed }, counts.fetched)
  metrics.eventsDuplicateTotal.inc({ feed }, counts.duplicate)
  metrics.eventsQuarantinedTotal.inc({ feed }, counts.quarantined)
  metrics.eventsUnreadableTotal.inc({ feed }, page.malformed.length)
  metrics.eventsBaselineTotal.inc({ feed }, counts.baseline)
  metrics.eventsSeverityRaisedTotal.inc({ feed }, counts.raised)
  metrics.sweepLateEventsTotal.inc({ feed }, counts.late)
  for (const routed of newEvents) countNew(metrics, page, routed)
  if (counts.new + counts.quarantined + counts.raised > 0)
    logger.info({ feed, ...counts }, 'page taken in')
  if (counts.quarantined > 0) warnOfQuarantine(parts, page, counts)
  warnOfUnread(parts, feed, newEvents)
}

function warnOfQuarantine(
  { logger }: { logger: Logger },
  { feed, malformed }: Page,
  { quarantined, fetched }: Committed['counts'],
): void {
  const problem = malformed[0]?.problem
  const fields = { feed, quarantined, fetched, problem, remedy: 'tocsin quarantine list' }
  logger.repeated.warn(fields, 'items cannot be read and are quarantined: nobody is told of them', {
    cause: `${feed}: ${problem}`,
    list: 'feeds',
    name: feed,
  })
}

function warnOfUnread(
  { metrics, logger }: { metrics: Metrics; logger: Logger },
  feed: string,
  newEvents: readonly RoutedEvent[],
): void {
  const unread = newEvents.flatMap(({ event }) => event.unread ?? [])
  for (const field of unread) {
    metrics.eventFieldsUnreadTotal.inc({ feed, field: field as UnreadField })
  }
  if (unread.length === 0) return
  const fields = [...new Set(unread)].toSorted()
  logger.repeated.warn({ feed, fields }, 'fields of new events cannot be read', {
    cause: `${feed}: ${fields.join(', ')}`,
    list: 'feeds',
    name: feed,
  })
}

function countNew(
  metrics: Metrics,
  { feed, requestedAtMs, rescan }: Page,
  { event, decisions }: RoutedEvent,
): void {
  const { severity } = event
  metrics.eventsNewTotal.inc({ feed, severity })
  metrics.eventsNewBySeverityTotal.inc({ severity })
  if (!isKnownSeverity(severity)) metrics.unknownSeverityTotal.inc({ feed })
  for (const { route } of decisions) metrics.eventsRoutedTotal.inc({ route, severity })
  if (decisions.every(({ path }) => path.length === 1))
    metrics.eventsRootOnlyTotal.inc({ severity })
  const isLate =
    rescan?.lateBeforeMs !== undefined && (event.createdAtMs ?? Infinity) < rescan.lateBeforeMs
  if (isLate) {
    const ageMs = requestedAtMs - (event.createdAtMs ?? requestedAtMs)
    metrics.eventLatenessSeconds.observe({ feed }, Math.max(0, ageMs) / 1000)
  }
  const shownAtMs = event.matchedAtMs ?? event.createdAtMs
  if (shownAtMs === null || rescan) return // how soon the tail is, what a rescan finds does not tell
  const waitedMs = Math.max(0, requestedAtMs - shownAtMs)
  metrics.eventMatchToFetchSeconds.observe({ feed }, waitedMs / 1000)
}
