/** What differs between the types of feeds; walks, the poller and intake know no other difference. */
import type { ThreatEvent } from '../event.ts'
import type { FeedState, Scan, ScanSpan } from '../store/feed-state.ts'
import type { CredentialPair } from '../store/intake.ts'
import type { UpstreamClient } from '../upstream/client.ts'
import type { SlotRequest } from '../upstream/rate-limits.ts'
import type { WireSearchPage } from '../upstream/resources/page.ts'
import type { FeedCommon, FeedConfig } from './config.ts'

export interface FeedRequest {
  client: UpstreamClient
  scan: Scan
  slot: SlotRequest
  signal: AbortSignal
  /** This machine's wall clock, ms. */
  nowMs: number
}

export interface FeedPage {
  page: WireSearchPage
  /** This machine's wall clock, ms. */
  requestedAtMs: number
  /** The walk as it was asked for, where that is another than the one handed in. */
  scan?: Scan
}

/** By what a credential is recognised when another source shows it; the parts are in clear. */
export interface ClearPair extends Omit<CredentialPair, 'id'> {
  parts: readonly string[]
}

export type ParsedFeedItem =
  | {
      ok: true
      event: ThreatEvent
      /** By what a leaked credential is recognised; null where a part of it is missing. */
      pair?: ClearPair | null
      /** In clear, never stored so. */
      secret?: string | null
    }
  | { ok: false; uid: string | null; problem: string }

export interface FeedType<Feed> {
  /** What the operator asked for, and no more: another answer begins another walk. */
  fingerprintParts(feed: Feed): unknown[]
  /** The request of a walk, without its cursor; `size` in it is the page size. */
  body(feed: Feed, span: ScanSpan, pageSize: number): Record<string, unknown>
  /**
   * The request for what was matched into the feed within a span, whenever it was created. Only of feeds
   * whose pages cost nothing but budget; only servers that filter by `materialized_at` answer it.
   */
  matchBody?(feed: Feed, span: Required<ScanSpan>): Record<string, unknown>
  /** Items asked for at once; the first number is usual, what follows is tried after a gateway gave up. */
  pageSizes: readonly [number, ...number[]]
  /** Throws ServiceError. */
  fetch(feed: Feed, request: FeedRequest): Promise<FeedPage>
  parse(raw: unknown, feed: Feed): ParsedFeedItem
  /** What of an item that does not parse may be kept to look at: no secret in clear. */
  maskMalformed(raw: unknown): unknown
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
  note(walk: Scan, page: WireSearchPage, isEnd: boolean): Record<string, unknown>
  /** Whether a whole known page ends the walk. */
  endsWhenKnown(walk: Scan): boolean
  /** The walk that follows one that ended, or one that `goesOn` refuses. */
  nextScan(state: FeedState & { scan: Scan }, feed: Feed): NextScan
  /** Whether a stored walk may go on at its cursor before it ended; left out: each may. */
  canResume?(walk: Scan): boolean
  /** Whether each walk reads all that the service has, so that there is nothing for a sweep to find. */
  readsAll?(walk: Scan): boolean
  /** What operators have to know of how the feed is read at present; undefined: nothing. */
  remark?(walk: Scan, feed: Pick<FeedCommon, 'everyMs' | 'sweep'>): string | undefined
}

export interface NextScan {
  /** False: the same walk goes on, its cursor is worth keeping. */
  fromStart: boolean
  notes: Record<string, unknown>
  /** What it reads; left out: from the floor, on and on. */
  span?: ScanSpan
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
export function bodyWithCursor<Body>(scan: Scan): Body {
  const body = scan.body as unknown as Body
  return scan.cursor === null ? body : { ...body, from: scan.cursor }
}

/** A span as the searches take it, both ends included. */
export function timeFilter({ fromMs, toMs }: ScanSpan): { gte: string; lte?: string } {
  const gte = new Date(fromMs).toISOString()
  return toMs === undefined ? { gte } : { gte, lte: new Date(toMs).toISOString() }
}

/** Items that a walk asks for at once. */
export function scanPageSize({ body }: Scan): number {
  return Number(body['size'])
}

/** Items that it asks for at once where no page is too large. */
export function usualPageSize(scan: Scan): number {
  return scan.small?.usual ?? scanPageSize(scan)
}

/** What an account has left of its global searches, by the last answer that said so. */
export interface Quota {
  remaining: number
  atMs: number
}

/** Nobody is told when a month's quota is renewed: one search a day finds out. */
const quotaRecheckMs = 86_400_000

/** How many searches of the month a feed leaves to others; 0 of feeds and walks that cost none. */
export function reservedSearches(feed: FeedConfig, scan?: Scan): number {
  return 'quotaReserve' in feed && scan?.notes?.['searchedBy'] !== freeSearchCapability
    ? feed.quotaReserve
    : 0
}

/** The credential search without a quota, in an account's memory of what it has and in notes of walks. */
export const freeSearchCapability = 'astp_credentials'

/** Whether a feed leaves what is left to others (`quota_reserve`). */
export function isReserveReached(
  feed: FeedConfig,
  quota: Quota | undefined,
  nowMs: number,
): boolean {
  const reserve = reservedSearches(feed)
  if (reserve === 0 || !quota) return false
  return quota.remaining <= reserve && nowMs - quota.atMs < quotaRecheckMs
}
