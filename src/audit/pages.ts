/** The pages of an audit's window, however the service behaves. */
import type { FeedPage, FeedRequest } from '../feeds/feed-type.ts'
import { typeOf } from '../feeds/feed-types.ts'
import type { PolledFeed } from '../feeds/polled-feed.ts'
import { advance, walkInSmallPages } from '../feeds/walk.ts'
import type { Walk } from '../ledger/feed-state.ts'
import type { Clock } from '../runtime/clock.ts'
import type { ServiceClient } from '../service/client.ts'
import type { Turn } from '../service/pacing/pick-next.ts'
import { ServiceError } from '../service/service-error.ts'
import { AuditError } from './audit-error.ts'
import type { AuditWindow } from './finding.ts'

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
