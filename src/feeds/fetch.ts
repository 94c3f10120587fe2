/** The request of a poll's page, and what is asked for instead where it fails. */
import type { FeedPage } from './types/feed-type.ts'
import type { PolledFeed } from './types/polled-feed.ts'
import { findFeedType } from './types/feed-types.ts'
import type { FeedState, Scan } from '../store/feed-state.ts'
import { UpstreamError } from '../upstream/error.ts'
import { blocksAllRequests, noteMatchRefusal, upstreamNowMs } from './match-time.ts'
import type { PollerOptions, PollRun } from './poll-run.ts'
import type { RescanPlace } from './rescan.ts'
import {
  isBehindRescanned,
  isLooping,
  leaveBeyond,
  restartAfterRefusal,
  shrinkPages,
  skipPage,
} from './scan.ts'

export interface FetchedPage extends FeedPage {
  /** The scan that the page belongs to; a new one where the stored one could not continue. */
  scan: Scan
  /** Unreadable pages that were skipped to reach this one. */
  skipped: SkippedPage[]
}

export interface SkippedPage {
  /** The request body, with the cursor as `from`. */
  request: Record<string, unknown>
  problem: string
}

export interface PlacedScan {
  scan: Scan
  place: RescanPlace | undefined
}

/**
 * Fetches the next page of a scan. When the API refuses the cursor, a new scan begins at once. A
 * page that is too large to be read, or too slow, is requested again in smaller pages. Where even a
 * single item is too large, the tail skips it.
 *
 * Throws UpstreamError.
 */
export async function fetchPage(
  options: PollerOptions,
  run: PollRun,
  state: FeedState,
  { scan, place }: PlacedScan,
): Promise<FetchedPage> {
  try {
    const fetched = await requestPage(run, scan)
    const stored = place ? state[place].scan : state.scan
    const isNew = scan.startedAtMs !== stored?.startedAtMs || scan.reason !== stored.reason
    if (isNew) logReset(options, run.feed, scan)
    return fetched
  } catch (error) {
    const nowMs = upstreamNowMs(options, run)
    const recovery = recoverFromError(error, run, state, { scan, place, nowMs })
    if (!recovery) {
      await noteMatchRefusal(run, scan, error)
      throw error
    }
    if (scan.held && !recovery.scan.held) noteUnreadBeyond(options, run, error)
    const fetched = await fetchPage(options, run, state, { scan: recovery.scan, place })
    if (!recovery.isPageSkipped) return fetched
    return { ...fetched, skipped: [toSkippedPage(scan, error), ...fetched.skipped] }
  }
}

/** Per poll run. Beyond this the feed backs off instead of asking again and again. */
const maxRefusals = 3

/**
 * Per poll run. The scan that follows a skipped page begins now and has no old page: a second one
 * means that the API misbehaves.
 */
const maxSkippedPages = 1

interface FailedScan extends PlacedScan {
  /** The service's clock, ms. */
  nowMs: number
}

interface Recovery {
  scan: Scan
  /** The new scan skips the page, which stays unread. */
  isPageSkipped?: true
}

/**
 * The scan that continues where this one cannot; undefined when another would fail the same way.
 */
function recoverFromError(
  error: unknown,
  run: PollRun,
  state: FeedState,
  failed: FailedScan,
): Recovery | undefined {
  const { scan, place, nowMs } = failed
  const { feed, signal, refusals } = run
  if (!(error instanceof UpstreamError) || signal.aborted) return undefined
  const smaller = shrinkPages(scan, error)
  if (smaller) return { scan: smaller }
  const isTooLarge = error.fault === 'too_large'
  const tail = blocksAllRequests(error) ? undefined : leaveBeyond(scan, nowMs)
  if (tail) return { scan: tail, ...(isTooLarge && { isPageSkipped: true }) }
  if (isTooLarge) return skipTooLarge(run, state, failed)
  // a refused cursor shows as a refused request, with an undocumented status
  const isRefused = error.reason === 'rejected' || error.reason === 'invalid'
  if (!isRefused || scan.cursor === null) return undefined
  refusals.count += 1
  if (refusals.count > maxRefusals) return undefined // the API accepts none of its cursors
  if (place === undefined) return { scan: restartAfterRefusal(feed, state, scan) }
  // the API may refuse a cursor with another page size, so small pages stay small to the end of
  // this scan
  const { passed: _circle, small: _small, ...again } = scan
  return { scan: { ...again, cursor: null, reason: 'cursor_refused' } }
}

/**
 * A rescan stays where it is and retries later: nobody waits for it, and nothing else would read
 * what it skipped.
 */
function skipTooLarge(
  { feed, refusals }: PollRun,
  state: FeedState,
  { place }: FailedScan,
): Recovery | undefined {
  refusals.count += 1
  if (place !== undefined || refusals.count > maxSkippedPages) return undefined
  return { scan: skipPage(feed, state), isPageSkipped: true }
}

function toSkippedPage({ body, cursor }: Scan, error: unknown): SkippedPage {
  const why = error instanceof UpstreamError ? error.message : ''
  return { request: { ...body, from: cursor }, problem: `a page was not read: ${why}` }
}

async function requestPage(
  { feed, account, kind, signal, dueSinceMs, onJoin, onSlot }: PollRun,
  scan: Scan,
): Promise<FetchedPage> {
  if (isLooping(scan)) throw loopError()
  const slot = { kind, name: feed.name, dueSinceMs, onJoin, onSlot }
  const request = { client: account.client, scan, slot, signal }
  const answer = await findFeedType(feed).fetch(feed, request)
  return { ...answer, scan, skipped: [] }
}

/** All pages of the loop were taken in at least once; it is handled like a refused cursor. */
function loopError(): UpstreamError {
  return new UpstreamError('invalid', 'the service gave a cursor again: its pages never end')
}

function logReset({ metrics, logger }: PollerOptions, feed: PolledFeed, { reason }: Scan): void {
  if (reason === 'first' || reason === 'again') return
  metrics.feedCursorResetsTotal.inc({ feed: feed.name, reason })
  const rest = isBehindRescanned(feed) ? '; what lies behind it is read again' : ''
  logger.warn({ feed: feed.name, reason }, `a new scan begins${rest}`)
}

/** What is dated before now is read on as if the page had not been asked for. */
function noteUnreadBeyond(
  { logger }: PollerOptions,
  { feed: { name: feed, account } }: PollRun,
  error: unknown,
): void {
  const { reason } = error as UpstreamError
  const message = 'a page of what is dated ahead of now was not read'
  const fields = { feed, account, err: error }
  logger.repeated.warn(fields, message, { cause: reason, list: 'feeds', name: feed })
}
