import type { ThreatEvent } from '../events/threat-event.ts'
import type { MalformedItem, Page } from '../intake/intake.ts'
import type { FeedState, Walk } from '../ledger/feed-state.ts'
import { canonicalJson } from './canonical-json.ts'
import { typeOf } from './feed-types.ts'
import type { FetchedPage, PassedPage } from './fetch-page.ts'
import { maskSecrets } from './masking.ts'
import type { PolledFeed } from './polled-feed.ts'
import type { PollerOptions, PollTurn } from './poller.ts'
import { fieldsAtEnd, readNotes, type RescanPlace } from './rescan.ts'
import { sortPage } from './sort-page.ts'
import { pageSizeOf } from './walk-body.ts'
import { advance, isReadAnew } from './walk.ts'

interface Fetched {
  state: FeedState
  /** Of which rescan; undefined: of the tail. */
  place: RescanPlace | undefined
  fetched: FetchedPage
  /** How far Redis' clock is ahead of this machine's. */
  aheadMs: number
}

/** A fetched page as intake takes it: sorted, and with the walk as it stands after it. */
export function pageOf(
  options: PollerOptions,
  turn: PollTurn,
  { state, fetched, aheadMs, place }: Fetched,
): { page: Page; hasMore: boolean } {
  const { feed } = turn
  const { stands, ...moved } = advance(fetched.walk, fetched.page)
  const isTail = place === undefined
  const isFirstWalk = isTail && (state.isBackfilling || isReadAnew(feed, state))
  const about = { hasNext: moved.hasMore, isFirstWalk }
  const isEnd = isTail && isShortEnd(turn, fetched, about)
  const hasMore = moved.hasMore && !isEnd
  // a rescan that stands still is over: it is not asked again and again for the same page
  const isCaughtUp = moved.isCaughtUp || isEnd || (!isTail && !hasMore)
  const { unordered } = typeOf(feed)
  const order = isTail ? unordered : undefined
  const walk = withNotes(moved.walk, fetched, order?.note(fetched.walk, fetched.page, isCaughtUp))
  const rescan = place && readNotes(walk)
  const isBacklog = isFirstWalk || rescan?.isBacklog === true
  const requestedAtMs = fetched.requestedAtMs + aheadMs
  const sorted = sortPage(fetched.page.items, {
    feed,
    // by match time everything since the start bound is new, however old
    floorMs: rescan?.kind === 'matched' ? -Infinity : state.floorMs,
    readsBaseline: readsBaseline(state, walk),
    hasQuarantine: state.hasQuarantine,
    plan: (event) => {
      const isOld = isOlderThanWindow(event, feed, requestedAtMs)
      const isSummarised = feed.backlog === 'summarise' && (isBacklog || isOld)
      return options.plan(event, feed, {
        isBacklog: isSummarised,
        isFresh: isTail && !isFirstWalk,
      })
    },
    pairIdOf: (parts) => options.pairIdOf?.(feed.account, parts),
    seal: (uid, secret) => options.sealSecret?.(feed.account, uid, secret),
  })
  const page: Page = {
    feed: feed.name,
    labels: feed.labels,
    sequence: place ? state[place].sequence : state.sequence,
    generation: options.generation(),
    walk,
    rescan: place &&
      rescan && {
        place,
        lateBeforeMs: rescan.lateBeforeMs ?? undefined,
        isSnapshot: rescan.kind === 'snapshot',
        fieldsAtEnd: fieldsAtEnd(walk),
      },
    requestedAtMs,
    isCaughtUp,
    endsWhenKnown: stands || (order?.endsWhenKnown(fetched.walk) ?? false),
    isBackfilling: !isCaughtUp && isFirstWalk,
    ...sorted,
    malformed: [...fetched.passed.map(quarantined), ...sorted.malformed],
  }
  return { page, hasMore }
}

/** Whether a short page with a `next` is the end all the same; learns from what followed the one before. */
function isShortEnd(
  { feed, shortPages, short }: PollTurn,
  { page, walk, requestedAtMs }: FetchedPage,
  { hasNext, isFirstWalk }: { hasNext: boolean; isFirstWalk: boolean },
): boolean {
  if (typeOf(feed).unordered) return false
  const endpoint = `${feed.account} ${feed.type}`
  if (short.askedAtMs !== undefined && short.walkBegunMs === walk.startedAtMs) {
    const beforeMs = short.askedAtMs - short.graceMs
    shortPages.noteFollowing(endpoint, whatFollows(feed, page.items, beforeMs))
  }
  const count = page.items.length
  const isShort = hasNext && count > 0 && count < pageSizeOf(walk)
  short.askedAtMs = isShort ? requestedAtMs : undefined
  short.walkBegunMs = walk.startedAtMs
  short.graceMs = 0
  return isShort && !isFirstWalk && shortPages.isEnd(endpoint)
}

function whatFollows(
  feed: PolledFeed,
  items: readonly unknown[],
  askedAtMs: number,
): 'nothing' | 'newer' | 'older' {
  if (items.length === 0) return 'nothing'
  const times = items.map((item) => {
    const parsed = typeOf(feed).parse(item, feed)
    return parsed.ok ? (parsed.event.matchedAtMs ?? parsed.event.createdAtMs ?? 0) : 0
  })
  return times.every((ms) => ms > askedAtMs) ? 'newer' : 'older'
}

/** A page that was passed by is accounted for as one item that cannot be read. */
function quarantined({ request, problem }: PassedPage): MalformedItem {
  return { uid: null, problem, raw: canonicalJson(maskSecrets(request)) }
}

function withNotes(
  walk: Walk,
  { page }: FetchedPage,
  ordered: Record<string, unknown> | undefined,
): Walk {
  if (ordered) return { ...walk, notes: ordered }
  if (!walk.notes) return walk
  const { fetched = 0 } = readNotes(walk)
  return { ...walk, notes: { ...walk.notes, fetched: fetched + page.items.length } }
}

/**
 * Whether what stands below the start bound is only being learned. The rescan of what the tail left behind
 * it does that; afterwards, what appears there is new. Without such a rescan nobody can tell.
 */
function readsBaseline({ walk: tail, rescans }: FeedState, walk: Walk): boolean {
  const behind = tail?.fingerprint === walk.fingerprint ? tail.behind : walk.behind
  return behind === undefined || behind.id !== rescans.snapshotOf
}

/** What is older than the window that is read again was matched late: people get it as a summary. */
function isOlderThanWindow(
  { createdAtMs }: ThreatEvent,
  { sweep }: PolledFeed,
  nowMs: number,
): boolean {
  if (!sweep || sweep.backMs === 0) return false
  return createdAtMs !== null && createdAtMs < nowMs - sweep.backMs
}
