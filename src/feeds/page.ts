import { isKnownSeverity, type ThreatEvent } from '../event.ts'
import {
  type ClearPair,
  type FeedPage,
  type ParsedFeedItem,
  type PolledFeed,
  scanPageSize,
} from '../feed-types/feed-type.ts'
import { findFeedType } from '../feed-types/feed-types.ts'
import { canonicalJson } from '../feed-types/field-reader.ts'
import { describeShape } from '../feed-types/malformed.ts'
import { withholdIn } from '../masking/masking.ts'
import type { FeedState, Scan } from '../store/feed-state.ts'
import type { EventPlan, MalformedItem, Page, PageRescan, RoutedEvent } from '../store/intake.ts'
import { UpstreamError } from '../upstream/error.ts'
import { blocksAllRequests, noteMatchRefusal, upstreamNowMs } from './match-time.ts'
import type { PollerOptions, PollRun } from './poll-run.ts'
import { fieldsAtEnd, readNotes, type RescanPlace } from './rescan.ts'
import {
  advance,
  isLooping,
  beginsAtStartBound,
  clockToleranceMs,
  holdTail,
  isBehindRescanned,
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

interface SkippedPage {
  /** The request body, with the cursor as `from`. */
  request: Record<string, unknown>
  problem: string
}

interface PlacedScan {
  scan: Scan
  place: RescanPlace | undefined
}

/**
 * Fetches the next page of a scan. When the API refuses the cursor, a new scan begins at once. A page
 * that is too large to be read, or too slow, is requested again in smaller pages; where even a single item is too large, the tail skips it.
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
    const fetched = await requestPage(options, run, scan)
    const stored = place ? state[place].scan : state.scan
    const isNew = scan.startedAtMs !== stored?.startedAtMs || scan.reason !== stored.reason
    if (isNew) logReset(options, run.feed, scan)
    return fetched
  } catch (error) {
    const nowMs = upstreamNowMs(options, run.feed)
    const recovery = recoverFromError(error, run, state, { scan, place, nowMs })
    if (!recovery) {
      await noteMatchRefusal(options, run.feed, scan, error)
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

/** Pages of more items are shrunk after a timeout: the gateway gives up after about 30 s. */
const slowPageSize = 10

export function isTooSlow(error: unknown): boolean {
  return error instanceof UpstreamError && (error.status === 504 || error.reason === 'timeout')
}

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
  if (error.fault === 'too_large') return recoverFromTooLarge(run, state, failed)
  const tail = blocksAllRequests(error) ? undefined : leaveBeyond(scan, nowMs)
  if (tail) return { scan: tail }
  const fewer =
    isTooSlow(error) && scanPageSize(scan) > slowPageSize ? shrinkPages(scan) : undefined
  if (fewer) return { scan: fewer }
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
function recoverFromTooLarge(
  { feed, refusals }: PollRun,
  state: FeedState,
  { scan, place, nowMs }: FailedScan,
): Recovery | undefined {
  const small = shrinkPages(scan)
  if (small) return { scan: small }
  const tail = leaveBeyond(scan, nowMs)
  if (tail) return { scan: tail, isPageSkipped: true }
  refusals.count += 1
  if (place !== undefined || refusals.count > maxSkippedPages) return undefined
  return { scan: skipPage(feed, state), isPageSkipped: true }
}

function toSkippedPage({ body, cursor }: Scan, error: unknown): SkippedPage {
  const why = error instanceof UpstreamError ? error.message : ''
  return { request: { ...body, from: cursor }, problem: `a page was not read: ${why}` }
}

async function requestPage(
  { client, clock }: PollerOptions,
  { feed, kind, signal, dueSinceMs, onJoin, onSlot }: PollRun,
  scan: Scan,
): Promise<FetchedPage> {
  if (isLooping(scan)) throw loopError()
  const slot = { kind, name: feed.name, dueSinceMs, onJoin, onSlot }
  const request = { client: client(feed.account), scan, slot, signal, nowMs: clock.now() }
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

interface PageContext {
  state: FeedState
  /** The place of the rescan; undefined for the tail. */
  place: RescanPlace | undefined
  fetched: FetchedPage
  /** How far Redis' clock is ahead of this machine's, ms. */
  aheadMs: number
}

/**
 * Turns a fetched page into what intake takes: its items sorted, and the scan as it stands after
 * it.
 */
export function buildPage(
  options: PollerOptions,
  run: PollRun,
  { state, fetched, aheadMs, place }: PageContext,
): { page: Page; hasMore: boolean } {
  const { feed } = run
  const { unordered } = findFeedType(feed)
  const advanced = advance(fetched.scan, fetched.page)
  const isTail = place === undefined
  const isFirstScan = isTail && (state.isBackfilling || beginsAtStartBound(feed, state))
  const sorted = sortFetched(options, feed, { state, fetched, aheadMs, place }, isFirstScan)
  const nowMs = upstreamNowMs(options, feed)
  const limitMs = nowMs + clockToleranceMs
  const read =
    isTail && !unordered
      ? holdTail(fetched.scan, advanced, { ...datesOf(sorted), nowMs })
      : { ...advanced, isAtNow: false, isBeyond: false }
  const { scan: moved, hasMore, isAtNow, isBeyond } = read
  const isCaughtUp =
    advanced.isCaughtUp ||
    (isAtNow && (!isFirstScan || !hasMore)) || // a first scan goes on with the pages beyond
    (!isTail && !hasMore) // a rescan whose cursor repeats: the same page is not asked for again
  const tailOrder = isTail ? unordered : undefined
  const tailNotes = tailOrder?.note(fetched.scan, isCaughtUp)
  const scan = withNotes(moved, fetched, tailNotes)
  const page: Page = {
    feed: feed.name,
    labels: feed.labels,
    sequence: place ? state[place].sequence : state.sequence,
    generation: options.generation(),
    scan,
    rescan: place && toPageRescan(place, scan),
    requestedAtMs: fetched.requestedAtMs + aheadMs,
    limitMs,
    isBeyond: isBeyond && !isFirstScan,
    isCaughtUp,
    // a page at the end beyond that goes on is followed at once: what is new comes after it
    endsWhenKnown:
      advanced.stands ||
      (isBeyond && fetched.scan.held?.limitMs !== undefined) ||
      (tailOrder?.endsWhenKnown(fetched.scan) ?? false),
    isBackfilling: !isCaughtUp && isFirstScan,
    ...sorted,
    malformed: [...fetched.skipped.map(toMalformed), ...sorted.malformed],
  }
  return { page, hasMore }
}

function sortFetched(
  options: PollerOptions,
  feed: PolledFeed,
  { state, fetched, aheadMs, place }: PageContext,
  isFirstScan: boolean,
): ReturnType<typeof sortPage> {
  const rescan = place && readNotes(fetched.scan)
  const isBacklog = isFirstScan || rescan?.isBacklog === true
  return sortPage(fetched.page.items, {
    feed,
    // by match time everything since the start bound is new, however old
    startBoundMs: rescan?.kind === 'matched' ? -Infinity : state.startBoundMs,
    readsBaseline: readsBaseline(state, fetched.scan),
    hasQuarantine: state.hasQuarantine,
    plan: (event) => {
      const isOld = isOlderThanWindow(event, feed, fetched.requestedAtMs + aheadMs)
      const isInSummary = feed.initialPoll === 'summary' && (isBacklog || isOld)
      return options.plan(event, feed, { isBacklog: isInSummary, isFresh: !place && !isFirstScan })
    },
    pairDigest: (parts) => options.pairDigest?.(feed.account, parts),
    sealSecret: (uid, secret) => options.sealSecret?.(feed.account, uid, secret),
  })
}

function datesOf({ events }: ReturnType<typeof sortPage>): {
  earliestMs: number | undefined
  latestMs: number | undefined
} {
  const dates = events.flatMap(({ event }) => event.createdAtMs ?? []).toSorted((a, b) => a - b)
  return { earliestMs: dates[0], latestMs: dates.at(-1) }
}

function toPageRescan(place: RescanPlace, scan: Scan): PageRescan {
  const { kind, lateBeforeMs } = readNotes(scan)
  return {
    place,
    lateBeforeMs: lateBeforeMs ?? undefined,
    isSnapshot: kind === 'snapshot',
    fieldsAtEnd: fieldsAtEnd(scan),
  }
}

/** A skipped page is accounted for as one unreadable item, by its cursor. */
function toMalformed({ request, problem }: SkippedPage): MalformedItem {
  const { from } = request
  const shown = { ...withholdIn(request), ...(from !== undefined && { from }) }
  return { uid: null, problem, raw: canonicalJson(shown) }
}

function withNotes(
  scan: Scan,
  { page }: FetchedPage,
  ordered: Record<string, unknown> | undefined,
): Scan {
  if (ordered) return { ...scan, notes: ordered }
  if (!scan.notes) return scan
  const { fetched = 0, pages = 0 } = readNotes(scan)
  const notes = { ...scan.notes, fetched: fetched + page.items.length, pages: pages + 1 }
  return { ...scan, notes }
}

/**
 * Whether events below the start bound are only recorded as baseline. The rescan of what the tail
 * left behind it does that; afterwards, an event that appears there is new. Without such a rescan
 * the two cannot be told apart.
 */
function readsBaseline({ scan: tail, rescans }: FeedState, scan: Scan): boolean {
  const behind = tail?.fingerprint === scan.fingerprint ? tail.behind : scan.behind
  return behind === undefined || behind.id !== rescans.snapshotId
}

/** An event older than the rescan window was matched late: people get it in a summary. */
function isOlderThanWindow(
  { createdAtMs }: ThreatEvent,
  { rescan }: PolledFeed,
  nowMs: number,
): boolean {
  if (!rescan || rescan.backMs === 0) return false
  return createdAtMs !== null && createdAtMs < nowMs - rescan.backMs
}

export interface SortOptions {
  feed: PolledFeed
  /** The start bound, ms: events created before it existed before the feed began. */
  startBoundMs: number
  /**
   * Whether events below the start bound are marked as baseline and not sent. Once all of them were
   * seen, an event that appears there is new.
   */
  readsBaseline: boolean
  plan: (event: ThreatEvent) => EventPlan
  /** Returns undefined when the account's key cannot be read: then no pair is recognised. */
  pairDigest: (parts: readonly string[]) => string | undefined
  /** Encrypts a leaked secret; returns undefined when no sink reveals any. */
  sealSecret: (uid: string, secret: string) => string | undefined
  /**
   * Whether the quarantine holds items: then each event carries the identity it would have there.
   */
  hasQuarantine?: boolean
}

/** Sorts the raw items of a page into routed events and items that are not events. */
export function sortPage(
  items: readonly unknown[],
  options: SortOptions,
): { events: RoutedEvent[]; malformed: MalformedItem[] } {
  const events: RoutedEvent[] = []
  const malformed: MalformedItem[] = []
  for (const raw of items) {
    const type = findFeedType(options.feed)
    const parsed = type.parse(raw, options.feed)
    if (parsed.ok) {
      const identity = options.hasQuarantine === true && { identity: itemIdentity(raw, options) }
      events.push({ ...routeItem(parsed, options), ...identity })
    } else {
      const { uid, problem } = parsed
      const shape = canonicalJson(describeShape(raw))
      malformed.push({ uid, problem, raw: shape, identity: itemIdentity(raw, options) })
    }
  }
  return { events, malformed }
}

/** Hashes the whole item with a key that Redis does not have, because it may hold a secret. */
function itemIdentity(raw: unknown, { pairDigest }: SortOptions): string {
  const whole = canonicalJson(raw)
  return pairDigest([whole]) ?? whole
}

function routeItem(
  { event, pair, secret }: ParsedFeedItem & { ok: true },
  { feed, startBoundMs, readsBaseline, plan, sealSecret, pairDigest }: SortOptions,
): RoutedEvent {
  const isBelow = (event.createdAtMs ?? Infinity) < startBoundMs
  const isBaseline = isBelow && readsBaseline
  const sealedSecret = secret && !isBaseline ? sealSecret(event.uid, secret) : undefined
  return {
    event,
    ...(isBaseline ? { decisions: [], items: [] } : plan(event)),
    wantsDetail: feed.detail.includes(
      isKnownSeverity(event.severity) ? event.severity : 'critical',
    ),
    isBeforeStart: isBelow,
    isBaseline,
    ...identifyPair(pair, pairDigest),
    ...(sealedSecret !== undefined && { sealedSecret }),
  }
}

function identifyPair(
  pair: ClearPair | null | undefined,
  pairIdOf: SortOptions['pairDigest'],
): Pick<RoutedEvent, 'pair'> {
  if (!pair) return {}
  const { parts, ...pairFields } = pair
  const id = pairIdOf(parts)
  return id === undefined ? {} : { pair: { id, ...pairFields } }
}
