/** The pages of an audit's window, however the service behaves. */
import type { FeedPage, FeedRequest, PolledFeed } from '../feed-types/feed-type.ts'
import { typeOf } from '../feed-types/feed-types.ts'
import { advance, fingerprintOf, readsFrom, walkInSmallPages } from '../feeds/scan.ts'
import type { Clock } from '../lib/clock.ts'
import { TocsinError } from '../lib/errors.ts'
import type { Book } from '../store/account-ledger.ts'
import type { FeedState, Walk } from '../store/feed-state.ts'
import type { MalformedItem, RoutedEvent } from '../store/intake.ts'
import type { ServiceClient } from '../upstream/client.ts'
import { ServiceError } from '../upstream/error.ts'
import type { Turn } from '../upstream/rate-limits.ts'

export interface PageOptions {
  client: ServiceClient
  clock: Clock
  /** Whether a search would use what `quota_reserve` keeps. */
  isReserveReached: () => Promise<boolean>
}

/** In whose name an audit asks, and until when. */
export interface AuditTurn {
  kind: Turn['kind']
  signal: AbortSignal
}

/** So many pages without an item are no gap any more. */
const mostEmptyPages = 1_000

/**
 * The items of every page; of smaller pages where the gateway gives up on large ones, from the beginning, and
 * of small ones for a while where one is too large to be read.
 * Throws ServiceError, and AuditError where the reserve is reached or the pages have no end.
 */
export async function* pagesOf(
  options: PageOptions,
  feed: PolledFeed,
  window: AuditWindow,
  turn: AuditTurn,
): AsyncGenerator<readonly unknown[]> {
  const { pageSizes } = typeOf(feed)
  for (const size of pageSizes) {
    try {
      yield* restarted(() => walkOf(options, feed, beginAudit(feed, window, size), turn))
      return
    } catch (error) {
      if (!isTooSlow(error) || size === pageSizes.at(-1) || turn.signal.aborted) throw error
    }
  }
}

/** Once more from the beginning where a cursor is refused: what is shown twice counts once. */
async function* restarted(
  walk: () => AsyncGenerator<readonly unknown[]>,
): AsyncGenerator<readonly unknown[]> {
  let pages = 0
  try {
    for await (const items of walk()) {
      pages += 1
      yield items
    }
  } catch (error) {
    const isRefused = error instanceof ServiceError && error.reason === 'rejected' && pages > 0
    if (!isRefused) throw error
    yield* walk()
  }
}

function isTooSlow(error: unknown): boolean {
  return error instanceof ServiceError && (error.status === 504 || error.reason === 'timeout')
}

async function* walkOf(
  { client, clock, isReserveReached }: PageOptions,
  feed: PolledFeed,
  begun: Walk,
  { kind, signal }: AuditTurn,
): AsyncGenerator<readonly unknown[]> {
  let walk = begun
  let empty = 0
  const cursors = new Set<string>()
  for (;;) {
    const nowMs = clock.now()
    const turn: Turn = { kind, name: feed.name, dueSinceMs: nowMs }
    const request = { client, walk, turn, signal, nowMs }
    const isTooCostly = (await isReserveReached()) && !(await typeOf(feed).isFree?.(request))
    if (isTooCostly) throw reserveReached(feed)
    const asked = await fetchOrShrink(feed, request)
    if (!('page' in asked)) {
      walk = asked.small
      continue
    }
    const { page } = asked
    yield page.items
    const moved = advance(asked.walk ?? walk, page)
    if (!moved.hasMore) return
    walk = moved.walk
    empty = page.items.length === 0 ? empty + 1 : 0
    const cursor = walk.cursor ?? ''
    if (cursors.has(cursor) || empty > mostEmptyPages) throw endless(feed)
    cursors.add(cursor)
  }
}

/** The page, or the walk that asks for it in small pages. */
async function fetchOrShrink(
  feed: PolledFeed,
  request: FeedRequest,
): Promise<FeedPage | { small: Walk }> {
  try {
    return await typeOf(feed).fetch(feed, request)
  } catch (error) {
    const isTooLarge = error instanceof ServiceError && error.fault === 'too_large'
    const small = isTooLarge && walkInSmallPages(request.walk)
    if (!small) throw error
    return { small }
  }
}

function beginAudit(feed: PolledFeed, span: AuditWindow, size: number): Walk {
  const body = typeOf(feed).body(feed, span, size)
  return { fingerprint: 'audit', body, cursor: null, reason: 'again', startedAtMs: 0, span }
}

function reserveReached({ name }: PolledFeed): AuditError {
  const remedy = 'lower its quota_reserve, or audit it next month'
  return new AuditError('quota', `feed ${name}: its quota_reserve is reached; ${remedy}`)
}

function endless({ name }: PolledFeed): AuditError {
  const what = 'the pages of the service come round again or never end'
  return new AuditError(
    'endless',
    `feed ${name}: ${what}; try a shorter window, and tell the service`,
  )
}

/** Why there is nothing to compare. */
export type NoWindow =
  /** Each report is asked for until it is there. */
  | 'reports'
  /** The feed was not read to its end yet: never, or since it was changed or rewound. */
  | 'not_read'
  /** The feed was last read to its end before all that is to be compared. */
  | 'behind'

/** What is kept, and since when all of it is: `trimmedUntilMs` of the ledger. */
type Kept = Pick<Book, 'retention' | 'horizonMs'> & { trimmedUntilMs?: number }

/**
 * From `backMs` before now to where the feed was read to its end. Never further back than its floor, than
 * what its present request has read, or than marks and records are kept: of older ones nobody can tell what became.
 */
export function auditWindow(
  { retention, horizonMs, trimmedUntilMs = 0 }: Kept,
  feed: PolledFeed,
  state: FeedState | undefined,
  backMs: number,
): AuditWindow | NoWindow {
  if (feed.type === 'reports') return 'reports'
  const { walk, lastCaughtUpMs, floorMs, nowMs } = state ?? {}
  if (!state || !walk || floorMs === undefined || nowMs === undefined) return 'not_read'
  const isOld = walk.fingerprint !== fingerprintOf(feed, floorMs) || state.isRewound
  const isRead = lastCaughtUpMs !== undefined && lastCaughtUpMs >= firstStartMs(feed, state)
  if (isOld || !isRead || state.isBackfilling) return 'not_read'
  const fromMs = Math.max(
    floorMs,
    nowMs - Math.min(backMs, retention.story, horizonMs),
    trimmedUntilMs,
    coveredMs(feed, state),
  )
  return fromMs < lastCaughtUpMs ? { fromMs, toMs: lastCaughtUpMs } : 'behind'
}

/** Since when its end means something; where the service keeps no order, walks begin again and again. */
function firstStartMs(feed: PolledFeed, { walk }: FeedState): number {
  if (!typeOf(feed).unordered) return walk?.startedAtMs ?? 0
  return walk?.notes?.['hasCompleted'] === true ? 0 : Infinity
}

/** From when on the present request was read: by the tail's walks, or by a sweep that ended. */
function coveredMs(feed: PolledFeed, { walk, sweep, floorMs }: FeedState): number {
  const { unordered } = typeOf(feed)
  if (unordered && !unordered.byTime) return floorMs
  const tailMs = (walk && readsFrom(walk)) ?? floorMs
  const { fingerprint, fromMs = Infinity, toMs = 0 } = sweep.lastEnded ?? {}
  const isJoined = fingerprint === walk?.fingerprint && toMs >= tailMs // no gap lies between
  return isJoined ? Math.min(tailMs, fromMs) : tailMs
}

/** `quota`: a search would use what `quota_reserve` keeps; `endless`: the service's pages have no end. */
export type AuditReason = 'quota' | 'endless'

/** Why an audit ended early, though the service answered. */
export class AuditError extends TocsinError {
  override readonly name = 'AuditError'
  readonly code = 'TOCSIN_AUDIT'
  readonly reason: AuditReason

  constructor(reason: AuditReason, message: string) {
    super(message)
    this.reason = reason
  }
}

/** An event that the service shows and the ledger does not account for. */
export interface Finding {
  uid: string
  /** ms. */
  createdAtMs: number
  why:
    | 'never_taken_in'
    /** Known by its mark, but its record is gone: what became of it nobody can tell. */
    | 'record_gone'
    /** Not yet: the feed, or its sweep, has not passed its place since it may have become visible. */
    | 'awaited'
  /** What a repair takes in; left out of all but the first thousand, and where nobody repairs. */
  routed?: RoutedEvent
}

/** An event of the window that the ledger has and the service no longer shows. */
export interface Extra {
  uid: string
  firstSeenMs: number
  /** What people did with it at the service; undefined: nothing that is known. */
  closed: 'ignored' | 'remediated' | undefined
}

export interface AuditWindow {
  fromMs: number
  toMs: number
}

export interface AuditResult extends AuditWindow {
  feed: string
  /** Different events and malformed items that the service showed. */
  shown: number
  /** Of these: in the ledger as events. */
  accounted: number
  missing: Finding[]
  awaited: Finding[]
  extra: Extra[]
  /** Items that cannot be read and stand in the quarantine, or stood there: nobody was told of them. */
  quarantined: number
  /** Malformed items that are not in the quarantine, and that an earlier audit had seen. */
  malformed: MalformedItem[]
}
