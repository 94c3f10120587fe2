/**
 * What differs between the types of feeds; scans, the poller and intake know no other difference.
 */
import type { ThreatEvent } from '../../event.ts'
import type { FeedState, Scan, ScanSpan } from '../../store/feed-state.ts'
import type { CredentialPair } from '../../store/intake.ts'
import type { CallOperation, SlotRequest } from '../../upstream/request.ts'
import type { WireSearchPage } from '../../upstream/resources/page.ts'

export interface FeedRequest {
  client: { call: CallOperation }
  scan: Scan
  slot: SlotRequest
  signal: AbortSignal
}

export interface FeedPage {
  page: WireSearchPage
  /** This machine's wall clock, ms. */
  requestedAtMs: number
}

/** What identifies a credential when another source shows it; the parts are in clear text. */
export interface ClearPair extends Omit<CredentialPair, 'id'> {
  parts: readonly string[]
}

export type ParsedFeedItem =
  | {
      ok: true
      event: ThreatEvent
      /** What identifies a leaked credential; null where a part of it is missing. */
      pair?: ClearPair | null
      /** In clear text; never stored so. */
      secret?: string | null
    }
  | { ok: false; uid: string | null; problem: string }

export interface FeedType<Feed> {
  /** What the operator configured, and no more: a change starts a new scan. */
  fingerprintParts(feed: Feed): unknown[]
  /** The request of a scan, without its cursor; `size` in it is the page size. */
  body(feed: Feed, span: ScanSpan, pageSize: number): Record<string, unknown>
  /**
   * The request for events matched into the feed within a span, whenever they were created. Only
   * for feeds whose pages cost no quota; only servers that filter by `materialized_at` answer it.
   */
  matchBody?(feed: Feed, span: Required<ScanSpan>): Record<string, unknown>
  /** Items per page. */
  pageSize: number
  /** Throws UpstreamError. */
  fetch(feed: Feed, request: FeedRequest): Promise<FeedPage>
  parse(raw: unknown, feed: Feed): ParsedFeedItem
  /** Set where the API states no order, or none that follows time: how such a feed is scanned. */
  unordered?: Unordered<Feed>
}

/** For feeds without an order in time: what scans note, and what the next scan reads. */
interface Unordered<Feed> {
  /** Its scans read spans of time; absent: the span of a scan means nothing. */
  byTime?: true
  /** The notes of the scan after a page; `isEnd`: it ended the scan. */
  note(scan: Scan, isEnd: boolean): Record<string, unknown>
  /** Whether a page whose items are all known ends the scan. */
  endsWhenKnown(scan: Scan): boolean
  /** The scan that follows one that ended. */
  nextScan(state: FeedState & { scan: Scan }, feed: Feed): NextScan
  /** Whether the next scan follows at once, as part of the same poll; absent: never. */
  goesOn?(scan: Scan): boolean
}

export interface NextScan {
  /** false: the same scan continues at `cursor`. */
  fromStart: boolean
  cursor?: string | null
  notes: Record<string, unknown>
  /** The span it reads; absent: from the start bound, without end. */
  span?: ScanSpan
}

/** The request body for the next page of a scan. */
export function bodyWithCursor<Body>(scan: Scan): Body {
  const body = scan.body as unknown as Body
  return scan.cursor === null ? body : { ...body, from: scan.cursor }
}

/** A span as the searches take it; both ends are included. */
export function timeFilter({ fromMs, toMs }: ScanSpan): { gte: string; lte?: string } {
  const gte = new Date(fromMs).toISOString()
  return toMs === undefined ? { gte } : { gte, lte: new Date(toMs).toISOString() }
}

/** Items that a scan requests per page. */
export function scanPageSize({ body }: Scan): number {
  return Number(body['size'])
}

/** Items that a scan requests per page when no page is too large. */
export function usualPageSize(scan: Scan): number {
  return scan.small?.usual ?? scanPageSize(scan)
}
