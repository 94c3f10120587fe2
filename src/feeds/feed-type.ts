/** What differs between the types of feeds; walks, the poller and intake know no other difference. */
import type { ThreatEvent } from '../events/threat-event.ts'
import type { CredentialPair } from '../intake/intake.ts'
import type { FeedState, Walk, WalkSpan } from '../ledger/feed-state.ts'
import type { ServiceClient } from '../service/client.ts'
import type { Turn } from '../service/pacing/pick-next.ts'
import type { WireSearchPage } from '../service/wire/page.ts'
import type { FeedCommon } from './config.ts'
import type { Need } from './refused-operation.ts'

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
export interface Unordered<Feed> {
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
