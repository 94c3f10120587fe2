import { isKnownSeverity, type ThreatEvent } from '../event.ts'
import {
  type CredentialLikeness,
  type FeedPage,
  pageSizeOf,
  type ParsedFeedItem,
  type PolledFeed,
} from '../feed-types/feed-type.ts'
import { typeOf } from '../feed-types/feed-types.ts'
import { canonicalJson } from '../feed-types/field-reader.ts'
import { maskSecrets } from '../masking/masking.ts'
import type { FeedState, Walk } from '../store/feed-state.ts'
import type { MalformedItem, Page, RoutedEvent } from '../store/intake.ts'
import { ServiceError } from '../upstream/error.ts'
import { noteMatchRefused } from './match-time.ts'
import type { Following, PollerOptions, PollTurn, ShortPage } from './poll-turn.ts'
import { fieldsAtEnd, readNotes, type RescanPlace } from './rescan.ts'
import {
  advance,
  isInCircle,
  isReadAnew,
  isReadBehind,
  walkAfterRefusal,
  walkInSmallerPages,
  walkInSmallPages,
  walkPast,
} from './scan.ts'

export interface FetchedPage extends FeedPage {
  /** The walk that the page belongs to; a new one where the stored one could not go on. */
  walk: Walk
  /** Pages that could not be read, and were passed by to come to this one. */
  passed: PassedPage[]
}

interface PassedPage {
  /** Its request, and its cursor as `from`. */
  request: Record<string, unknown>
  problem: string
}

interface Reading {
  walk: Walk
  place: RescanPlace | undefined
}

/**
 * The next page of a walk. Where the service refuses the cursor, or its gateway gives up on so large a page,
 * another walk begins at once. A page that is too large to be read is asked for again in smaller ones; where
 * even a single item is too much, the tail goes round it.
 */
export async function fetchPage(
  options: PollerOptions,
  turn: PollTurn,
  state: FeedState,
  { walk, place }: Reading,
): Promise<FetchedPage> {
  try {
    const fetched = await ask(options, turn, walk)
    const stored = place ? state[place].walk : state.walk
    const isNew = walk.startedAtMs !== stored?.startedAtMs || walk.reason !== stored.reason
    if (isNew) sayReset(options, turn.feed, walk)
    return fetched
  } catch (error) {
    const fresh = walkAfter(error, turn, state, { walk, place })
    if (!fresh) {
      await noteMatchRefused(options, turn.feed, walk, error)
      throw error
    }
    const fetched = await fetchPage(options, turn, state, { walk: fresh.walk, place })
    if (!fresh.isPast) return fetched
    return { ...fetched, passed: [passedPage(walk, error), ...fetched.passed] }
  }
}

/** More in one turn is no accident: the feed backs off instead of asking again and again. */
const mostRefusals = 3

/** What begins now has no old page: more in one turn is a service that makes no sense. */
const mostPassed = 1

interface Fresh {
  walk: Walk
  /** It goes round the page, which stays unread. */
  isPast?: true
}

/** The walk that goes on where this one cannot; undefined where another would fare no better. */
function walkAfter(
  error: unknown,
  turn: PollTurn,
  state: FeedState,
  { walk, place }: Reading,
): Fresh | undefined {
  const { feed, signal, refusals } = turn
  if (!(error instanceof ServiceError) || signal.aborted) return undefined
  if (error.fault === 'too_large') return walkAfterTooLarge(turn, state, { walk, place })
  // the gateway gives up after about 30 s, and so does Tocsin (docs/api-notes.md, Page sizes)
  const isTooSlow = error.status === 504 || error.reason === 'timeout'
  if (isTooSlow) return fresh(walkInSmallerPages(feed, state, walk))
  // a refused cursor shows as a refused request; nothing public says with which status
  const isRefused = error.reason === 'rejected' || error.reason === 'invalid'
  if (!isRefused || walk.cursor === null) return undefined
  refusals.count += 1
  if (refusals.count > mostRefusals) return undefined // a service that takes none of its cursors
  if (place === undefined) return { walk: walkAfterRefusal(feed, state, walk) }
  // a service may take no cursor with another page size: small pages stay small to the end of this walk
  const { passed: _circle, small: _small, ...again } = walk
  return { walk: { ...again, cursor: null, reason: 'cursor_refused' } }
}

/**
 * A rescan stays where it is, and asks again later: nobody waits for it, and what it would go round nothing
 * else reads.
 */
function walkAfterTooLarge(
  { feed, refusals }: PollTurn,
  state: FeedState,
  { walk, place }: Reading,
): Fresh | undefined {
  const small = walkInSmallPages(walk)
  if (small) return { walk: small }
  refusals.count += 1
  if (place !== undefined || refusals.count > mostPassed) return undefined
  return { walk: walkPast(feed, state), isPast: true }
}

function fresh(walk: Walk | undefined): Fresh | undefined {
  return walk && { walk }
}

function passedPage({ body, cursor }: Walk, error: unknown): PassedPage {
  const why = error instanceof ServiceError ? error.message : ''
  return { request: { ...body, from: cursor }, problem: `a page was not read: ${why}` }
}

async function ask(
  { client, clock }: PollerOptions,
  { feed, kind, signal, dueSinceMs, onJoin, onSlot }: PollTurn,
  walk: Walk,
): Promise<FetchedPage> {
  if (isInCircle(walk)) throw circle()
  const turn = { kind, name: feed.name, dueSinceMs, onJoin, onSlot }
  const request = { client: client(feed.account), walk, turn, signal, nowMs: clock.now() }
  const answer = await typeOf(feed).fetch(feed, request)
  const { page, requestedAtMs } = answer
  return { page, requestedAtMs, walk: answer.walk ?? walk, passed: [] }
}

/** Its pages were taken in, each at least once; it is treated as a refused cursor. */
function circle(): ServiceError {
  return new ServiceError('invalid', 'the service gave a cursor again: its pages never end')
}

function sayReset({ metrics, logger }: PollerOptions, feed: PolledFeed, { reason }: Walk): void {
  if (reason === 'first' || reason === 'again') return
  metrics.feedCursorResetsTotal.inc({ feed: feed.name, reason })
  const rest = isReadBehind(feed) ? '; what lies behind it is read again' : ''
  logger.warn({ feed: feed.name, reason }, `a new walk begins${rest}`)
}

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
): { page: Page; hasMore: boolean; shortEnd: ShortEnd | undefined } {
  const { feed } = turn
  const { stands, ...moved } = advance(fetched.walk, fetched.page)
  const isTail = place === undefined
  const isFirstWalk = isTail && (state.isBackfilling || isReadAnew(feed, state))
  const next = moved.hasMore ? (moved.walk.cursor ?? undefined) : undefined
  const shortEnd = isTail ? judgeShort(options, turn, fetched, { next, isFirstWalk }) : undefined
  const isEnd = shortEnd?.isEnd === true
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
  return { page, hasMore, shortEnd }
}

/** What a page of a tail says of short pages, to be noted once it was taken in. */
interface ShortEnd {
  endpoint: string
  /** What the page shows behind the short one before it; undefined: it follows none. */
  following: Following | undefined
  /** The page, where it is short itself. */
  last: ShortPage['last']
  /** Whether the feed counts as read to its end with it. */
  isEnd: boolean
}

/** undefined: short pages of the feed tell nothing. */
function judgeShort(
  { client }: Pick<PollerOptions, 'client'>,
  turn: PollTurn,
  { page, walk, requestedAtMs }: FetchedPage,
  { next, isFirstWalk }: { next: string | undefined; isFirstWalk: boolean },
): ShortEnd | undefined {
  const { feed, shortPages } = turn
  if (typeOf(feed).unordered) return undefined
  const endpoint = `${feed.account} ${feed.type}`
  const following = whatFollows(turn, walk, page.items)
  const count = page.items.length
  if (next === undefined || count === 0 || count >= pageSizeOf(walk))
    return { endpoint, following, last: undefined, isEnd: false }
  const askedAtMs = requestedAtMs + (client(feed.account).clockSkewMs() ?? 0)
  const last = { askedAtMs, cursor: next, walkBegunMs: walk.startedAtMs }
  const isEnd = !isFirstWalk && following !== 'older' && shortPages.isEnd(endpoint)
  return { endpoint, following, last, isEnd }
}

/** Once the page was taken in: before, another replica may take in another one in its place. */
export function noteShortEnd({ short, shortPages }: PollTurn, end: ShortEnd): void {
  const { endpoint, following, last } = end
  if (following) shortPages.noteFollowing(endpoint, following)
  Object.assign(short, { last, isOfTurn: true })
}

/** Between two turns. The service shows events seconds after their match. */
const usualLatenessMs = 60_000

/**
 * What a page shows behind a short one; undefined where it does not begin where that one ended. Between two turns
 * only a match time tells: minutes may pass from an event's creation until the service shows it.
 */
function whatFollows(
  { feed, short: { last, isOfTurn } }: PollTurn,
  { cursor, startedAtMs }: Walk,
  items: readonly unknown[],
): Following | undefined {
  if (!last || last.cursor !== cursor || last.walkBegunMs !== startedAtMs) return undefined
  if (items.length === 0) return 'nothing'
  const sinceMs = last.askedAtMs - (isOfTurn ? 0 : usualLatenessMs)
  const times = items.map((item) => {
    const parsed = typeOf(feed).parse(item, feed)
    const { matchedAtMs = null, createdAtMs = null } = parsed.ok ? parsed.event : {}
    return isOfTurn ? (matchedAtMs ?? createdAtMs ?? 0) : (matchedAtMs ?? Infinity)
  })
  return times.every((ms) => ms > sinceMs) ? 'newer' : 'older'
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

export interface Sorting {
  feed: PolledFeed
  /** The start bound: what was created before it was there before the feed began. */
  floorMs: number
  /**
   * Whether what stands below the start bound is marked as baseline, and not sent. Once all of it was
   * seen, what appears there is new.
   */
  readsBaseline: boolean
  plan: (event: ThreatEvent) => Pick<RoutedEvent, 'decisions' | 'items' | 'inhibits'>
  /** undefined where the account's key cannot be read: then nothing is recognised. */
  pairIdOf: (parts: readonly string[]) => string | undefined
  /** Encrypts a leaked secret; undefined where no sink reveals any. */
  seal: (uid: string, secret: string) => string | undefined
  /** Whether something stands in the quarantine: then an event is named as it would stand there. */
  hasQuarantine?: boolean
}

/** Sorts a page's raw items into events with their way fixed, and items that are not events. */
export function sortPage(
  items: readonly unknown[],
  sorting: Sorting,
): { events: RoutedEvent[]; malformed: MalformedItem[] } {
  const events: RoutedEvent[] = []
  const malformed: MalformedItem[] = []
  for (const raw of items) {
    const type = typeOf(sorting.feed)
    const parsed = type.parse(raw, sorting.feed)
    if (parsed.ok) {
      const identity = sorting.hasQuarantine === true && { identity: identityOf(raw, sorting) }
      events.push({ ...routed(parsed, sorting), ...identity })
    } else {
      const { uid, problem } = parsed
      const kept = canonicalJson(type.keptOfMalformed(raw))
      malformed.push({ uid, problem, raw: kept, identity: identityOf(raw, sorting) })
    }
  }
  return { events, malformed }
}

/** The whole item may hold a secret: it is named under a key that Redis does not have. */
function identityOf(raw: unknown, { pairIdOf }: Sorting): string {
  const whole = canonicalJson(raw)
  return pairIdOf([whole]) ?? whole
}

function routed(
  { event, pair, secret }: ParsedFeedItem & { ok: true },
  { feed, floorMs, readsBaseline, plan, seal, pairIdOf }: Sorting,
): RoutedEvent {
  const isBelow = (event.createdAtMs ?? Infinity) < floorMs
  const isBaseline = isBelow && readsBaseline
  const sealedSecret = secret && !isBaseline ? seal(event.uid, secret) : undefined
  return {
    event,
    ...(isBaseline ? { decisions: [], items: [] } : plan(event)),
    wantsDetail: feed.detail.includes(
      isKnownSeverity(event.severity) ? event.severity : 'critical',
    ),
    isBelow,
    isBaseline,
    ...pairOf(pair, pairIdOf),
    ...(sealedSecret !== undefined && { sealedSecret }),
  }
}

function pairOf(
  pair: CredentialLikeness | null | undefined,
  pairIdOf: Sorting['pairIdOf'],
): Pick<RoutedEvent, 'pair'> {
  if (!pair) return {}
  const { parts, ...told } = pair
  const id = pairIdOf(parts)
  return id === undefined ? {} : { pair: { id, ...told } }
}
