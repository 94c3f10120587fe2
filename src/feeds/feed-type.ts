/** What differs between the types of feeds; walks, the poller and intake know no other difference. */
import type { ThreatEvent } from '../events/threat-event.ts'
import type { CredentialPair } from '../intake/intake.ts'
import type { FeedState, Walk, WalkSpan } from '../ledger/feed-state.ts'
import type { ServiceClient } from '../service/client.ts'
import type { Turn } from '../service/pacing/pick-next.ts'
import type { WireSearchPage } from '../service/wire/page.ts'

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
  /** Items asked for at once; the first number is usual, what follows is tried after a gateway gave up. */
  pageSizes: readonly [number, ...number[]]
  /** Throws ServiceError. */
  fetch(feed: Feed, request: FeedRequest): Promise<FeedPage>
  parse(raw: unknown, feed: Feed): ParsedFeedItem
  /** What of an item that does not parse may be kept to look at: no secret in clear. */
  keptOfMalformed(raw: unknown): unknown
  /** Set where the service states no order: how such a feed finds its way. */
  unordered?: Unordered
}

/** Of feeds without a stated order: what walks note, and when the next one begins at the start. */
export interface Unordered {
  /** The walk's notes after a page. */
  note(walk: Walk, page: WireSearchPage, isEnd: boolean): Record<string, unknown>
  /** Whether a whole known page ends the walk. */
  endsWhenKnown(walk: Walk): boolean
  /** The walk that follows one that ended; the same one where its cursor is worth keeping. */
  following(state: FeedState & { walk: Walk }): {
    fromStart: boolean
    notes: Record<string, unknown>
  }
}
