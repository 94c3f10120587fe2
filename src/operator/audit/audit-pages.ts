/** The pages of an audit's window, however the API behaves. */
import type { FeedPage } from '../../feeds/types/feed-type.ts'
import type { PolledFeed } from '../../feeds/types/polled-feed.ts'
import { usualPageSize } from '../../feeds/types/feed-type.ts'
import { findFeedType } from '../../feeds/types/feed-types.ts'
import { advance, shrinkPages } from '../../feeds/scan.ts'
import type { Clock } from '../../lib/clock.ts'
import { ReasonedError } from '../../lib/errors.ts'
import type { FeedState, Scan } from '../../store/feed-state.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import type { SlotRequest } from '../../upstream/rate-limits.ts'

export interface PageOptions {
  client: UpstreamClient
  clock: Clock
  signal: AbortSignal
  /** Whether a further search would use what `quota_reserve` keeps. */
  isReserveReached: () => Promise<boolean>
}

export interface AuditWindow {
  fromMs: number
  toMs: number
}

/** After more pages in a row without an item the pages count as endless. */
const maxEmptyPages = 1_000

/**
 * Yields the items of every page, in pages as large as the feed reads. Asks for small ones for a
 * while if a page is too large or too slow. Throws UpstreamError, and AuditError if the reserve is
 * reached or the pages do not end.
 */
export async function* auditPages(
  { client, clock, signal, isReserveReached }: PageOptions,
  feed: PolledFeed,
  state: FeedState,
  span: AuditWindow,
): AsyncGenerator<readonly unknown[]> {
  const type = findFeedType(feed)
  const size = state.scan ? usualPageSize(state.scan) : type.pageSize
  const body = type.body(feed, span, size)
  let scan: Scan = { fingerprint: '', body, cursor: null, reason: 'again', startedAtMs: 0, span }
  let emptyPages = 0
  const cursors = new Set<string>()
  for (;;) {
    const slot: SlotRequest = { kind: 'command', name: feed.name, dueSinceMs: clock.now() }
    const request = { client, scan, slot, signal }
    if (await isReserveReached()) throw reserveError(feed)
    let fetched: FeedPage
    try {
      fetched = await type.fetch(feed, request)
    } catch (error) {
      const smaller = signal.aborted ? undefined : shrinkPages(scan, error)
      if (!smaller) throw error
      scan = smaller
      continue
    }
    const { page } = fetched
    yield page.items
    const advanced = advance(scan, page)
    if (!advanced.hasMore) return
    scan = advanced.scan
    emptyPages = page.items.length === 0 ? emptyPages + 1 : 0
    const cursor = scan.cursor ?? ''
    if (cursors.has(cursor) || emptyPages > maxEmptyPages) throw endlessError(feed)
    cursors.add(cursor)
  }
}

function reserveError({ name }: PolledFeed): AuditError {
  const remedy = 'lower its quota_reserve, or audit it next month'
  return new AuditError('quota', `feed ${name}: its quota_reserve is reached; ${remedy}`)
}

function endlessError({ name }: PolledFeed): AuditError {
  const what = 'the pages of the service come round again or never end'
  return new AuditError(
    'endless',
    `feed ${name}: ${what}; try a shorter window, and tell the service`,
  )
}

/**
 * `quota`: a search would use what `quota_reserve` keeps; `endless`: the API's pages do not end.
 */
export type AuditReason = 'quota' | 'endless'

/** An audit ended early although the API answered. */
export class AuditError extends ReasonedError<AuditReason> {
  override readonly name = 'AuditError'
  readonly code = 'TOCSIN_AUDIT'
}
