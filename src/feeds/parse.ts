/** Turns the items of a page into events with their routes, and the page into what intake takes. */
import { isKnownSeverity, type ThreatEvent } from '../event.ts'
import type { ClearPair, ParsedFeedItem } from './types/feed-type.ts'
import type { PolledFeed } from './types/polled-feed.ts'
import { findFeedType } from './types/feed-types.ts'
import { canonicalJson } from './types/field-reader.ts'
import { describeShape } from './malformed.ts'
import { withholdIn } from '../masking/masking.ts'
import type { FeedState, Scan } from '../store/feed-state.ts'
import type { EventPlan, MalformedItem, Page, PageRescan, RoutedEvent } from '../store/intake.ts'
import type { FetchedPage, SkippedPage } from './fetch.ts'
import { findDisproof, upstreamNowMs } from './match-time.ts'
import type { PollerOptions, PollRun } from './poll-run.ts'
import { fieldsAtEnd, readNotes, type RescanPlace } from './rescan.ts'
import { advance, beginsAtStartBound, clockToleranceMs, holdTail } from './scan.ts'

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
 * it. `disproof`: the page shows that the filter by match time is wrong, and may not be taken in.
 */
export function buildPage(
  options: PollerOptions,
  run: PollRun,
  { state, fetched, aheadMs, place }: PageContext,
): { page: Page; hasMore: boolean; disproof: string | undefined } {
  const { feed } = run
  const { unordered } = findFeedType(feed)
  const advanced = advance(fetched.scan, fetched.page)
  const isTail = place === undefined
  const isFirstScan = isTail && (state.isBackfilling || beginsAtStartBound(feed, state))
  const sorted = sortFetched(options, run, { state, fetched, aheadMs, place }, isFirstScan)
  const nowMs = upstreamNowMs(options, run)
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
  const disproof = findDisproof(fetched.scan, state.startBoundMs, page.events)
  return { page, hasMore, disproof }
}

function sortFetched(
  options: PollerOptions,
  { feed, account }: PollRun,
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
    plan: (event) => {
      const isOld = isOlderThanWindow(event, feed, fetched.requestedAtMs + aheadMs)
      const isInSummary = feed.initialPoll === 'summary' && (isBacklog || isOld)
      return options.plan(event, feed, { isBacklog: isInSummary, isFresh: !place && !isFirstScan })
    },
    pairDigest: (parts) => account.pairDigest?.(parts),
    sealSecret: (uid, secret) => account.sealSecret?.(uid, secret),
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
      events.push(routeItem(parsed, options))
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
