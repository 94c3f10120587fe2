/** What differs between the types of feeds; walks, the poller and intake know no other difference. */
import type { ThreatEvent } from '../event.ts'
import type { FeedState, Walk, WalkSpan } from '../store/feed-state.ts'
import type { CredentialPair } from '../store/intake.ts'
import type { ServiceClient } from '../upstream/client.ts'
import type { Turn } from '../upstream/rate-limits.ts'
import type { WireSearchPage } from '../upstream/resources/page.ts'
import type { FeedCommon, FeedConfig } from './config.ts'

export interface FeedRequest {
  client: ServiceClient
  walk: Walk
  turn: Turn
  signal: AbortSignal
  /** This machine's wall clock, ms. */
  nowMs: number
}

export interface FeedPage {
  page: WireSearchPage
  /** This machine's wall clock, ms. */
  requestedAtMs: number
  /** The walk as it was asked for, where that is another than the one handed in. */
  walk?: Walk
}

/** By what a credential is recognised when another source shows it; the parts are in clear. */
export interface CredentialLikeness extends Omit<CredentialPair, 'id'> {
  parts: readonly string[]
}

export type ParsedFeedItem =
  | {
      ok: true
      event: ThreatEvent
      /** By what a leaked credential is recognised; null where a part of it is missing. */
      pair?: CredentialLikeness | null
      /** In clear, never stored so. */
      secret?: string | null
    }
  | { ok: false; uid: string | null; problem: string }

export interface FeedType<Feed> {
  /** What the operator asked for, and no more: another answer begins another walk. */
  asked(feed: Feed): unknown[]
  /** The request of a walk, without its cursor; `size` in it is the page size. */
  body(feed: Feed, span: WalkSpan, pageSize: number): Record<string, unknown>
  /**
   * The request for what was matched into the feed within a span, whenever it was created. Only of feeds
   * whose pages cost nothing but budget; only servers that filter by `materialized_at` answer it.
   */
  matchBody?(feed: Feed, span: Required<WalkSpan>): Record<string, unknown>
  /** Items asked for at once; the first number is usual, what follows is tried after a gateway gave up. */
  pageSizes: readonly [number, ...number[]]
  /** Throws ServiceError. */
  fetch(feed: Feed, request: FeedRequest): Promise<FeedPage>
  parse(raw: unknown, feed: Feed): ParsedFeedItem
  /** What of an item that does not parse may be kept to look at: no secret in clear. */
  keptOfMalformed(raw: unknown): unknown
  /** Set where not every server has the operation, or not every key may use it. */
  needs?(feed: Feed): Need | undefined
  /** Set where a page may cost nothing of the quota: whether the next one does. */
  isFree?(request: FeedRequest): Promise<boolean>
  /** Set where the service states no order, or none that follows time: how such a feed finds its way. */
  unordered?: Unordered<Feed>
}

/** Of feeds without an order in time: what walks note, and what the next one reads. */
interface Unordered<Feed> {
  /** Its walks read spans of time; left out: a walk's span means nothing. */
  byTime?: true
  /** The walk's notes after a page. */
  note(walk: Walk, page: WireSearchPage, isEnd: boolean): Record<string, unknown>
  /** Whether a whole known page ends the walk. */
  endsWhenKnown(walk: Walk): boolean
  /** The walk that follows one that ended, or one that `goesOn` refuses. */
  following(state: FeedState & { walk: Walk }, feed: Feed): FollowingWalk
  /** Whether a stored walk may go on at its cursor before it ended; left out: each may. */
  goesOn?(walk: Walk): boolean
  /** Whether each walk reads all that the service has, so that there is nothing for a sweep to find. */
  readsAll?(walk: Walk): boolean
  /** What operators have to know of how the feed is read at present; undefined: nothing. */
  remark?(walk: Walk, feed: Pick<FeedCommon, 'everyMs' | 'sweep'>): string | undefined
}

export interface FollowingWalk {
  /** False: the same walk goes on, its cursor is worth keeping. */
  fromStart: boolean
  notes: Record<string, unknown>
  /** What it reads; left out: from the floor, on and on. */
  span?: WalkSpan
  /** Left out: the usual size. */
  pageSize?: number | undefined
  /** Not before, Redis' clock; left out: as soon as the feed is polled. */
  dueMs?: number | undefined
}
/** What of the service a feed cannot do without. */
export interface Need {
  /** Names it in the account's memory. */
  capability: string
  /** Such as `POST /firework/v4/events/tenant/_search`. */
  operation: string
  /** Whose data it reads, such as `identifier 77`. */
  what: string
}

/** A feed as it is polled. */
export type PolledFeed = Polled<FeedConfig>

/** `scope`: base URL and tenant of its account: elsewhere its cursor means nothing. */
export type Polled<Config extends FeedConfig> = Config extends FeedConfig
  ? Config & { scope: string }
  : never

/** The request for a walk's next page. */
export function bodyWithCursor<Body>(walk: Walk): Body {
  const body = walk.body as unknown as Body
  return walk.cursor === null ? body : { ...body, from: walk.cursor }
}

/** A span as the searches take it, both ends included. */
export function timeFilter({ fromMs, toMs }: WalkSpan): { gte: string; lte?: string } {
  const gte = new Date(fromMs).toISOString()
  return toMs === undefined ? { gte } : { gte, lte: new Date(toMs).toISOString() }
}

/** Items that a walk asks for at once. */
export function pageSizeOf({ body }: Walk): number {
  return Number(body['size'])
}

/** Items that it asks for at once where no page is too large. */
export function usualSizeOf(walk: Walk): number {
  return walk.small?.usual ?? pageSizeOf(walk)
}

/** What an account has left of its global searches, by the last answer that said so. */
export interface Quota {
  remaining: number
  atMs: number
}

/** Nobody is told when a month's quota is renewed: one search a day finds out. */
const askAgainMs = 86_400_000

/** How many searches of the month a feed leaves to others; 0 of feeds and walks that cost none. */
export function quotaReserveOf(feed: FeedConfig, walk?: Walk): number {
  return 'quotaReserve' in feed && walk?.notes?.['searchedBy'] !== freeSearch
    ? feed.quotaReserve
    : 0
}

/** The credential search without a quota, in an account's memory of what it has and in notes of walks. */
export const freeSearch = 'astp_credentials'

/** Whether a feed leaves what is left to others (`quota_reserve`). */
export function isReserveReached(
  feed: FeedConfig,
  quota: Quota | undefined,
  nowMs: number,
): boolean {
  const reserve = quotaReserveOf(feed)
  if (reserve === 0 || !quota) return false
  return quota.remaining <= reserve && nowMs - quota.atMs < askAgainMs
}
