/**
 * The credential search: the global one, or the same search of ASTP, which costs no quota. Its
 * documented cursor decodes to a reversed domain and an id (docs/api-notes.md, Cursors and order).
 * The order follows domains, not time. So new items may appear before any cursor, and none is kept
 * beyond the end of its scan. Instead, each poll reads a window of import times from start to end:
 * from an hour before the previous scan began. Only within that window does the cursor move.
 */
import type { FeedState, Scan } from '../../store/feed-state.ts'
import {
  credentialOperations,
  type WireCredentialSearchBody,
} from '../../upstream/resources/credentials.ts'
import type { CredentialSearchFeedConfig } from './credentials-config.ts'
import { parseCredential } from './credentials.ts'
import { bodyWithCursor, type FeedType, type NextScan, timeFilter } from './feed-type.ts'

type ScanIntervals = Pick<CredentialSearchFeedConfig, 'rescan'>

/** Large pages are slow: 500 items end in a timeout (docs/api-notes.md, Page sizes). */
export const importPageSize = 100

/** How feeds are read that can be asked by import time alone, in an order that nobody promises. */
export const readByImportTime: NonNullable<FeedType<ScanIntervals>['unordered']> = {
  byTime: true,
  note: (scan, isEnd) => ({ hasCompleted: isEnd || hasCompleted(scan) }),
  endsWhenKnown: () => false,
  nextScan: nextWindow,
}

export const credentialSearchFeed: FeedType<CredentialSearchFeedConfig> = {
  pageSize: importPageSize,
  fingerprintParts: ({ query, astp }) => [query, astp],
  body({ query }, span, size) {
    const body: WireCredentialSearchBody = {
      query,
      filters: { imported_at: timeFilter(span) },
      size,
      order: 'asc',
      include: ['known_password_id', 'auth_domains'],
    }
    return { ...body }
  },
  async fetch({ astp, tier }, { client, scan, slot, signal }) {
    const body = bodyWithCursor<WireCredentialSearchBody>(scan)
    const search = astp ? credentialOperations.searchAstp : credentialOperations.search
    return client.call(search, body, { slot, tier, signal })
  },
  parse: parseCredential,
  unordered: readByImportTime,
}

/** Whether a scan has reached its end: from then on windows follow each other without a gap. */
function hasCompleted({ notes }: Scan): boolean {
  return notes?.['hasCompleted'] === true
}

/**
 * An item imported this long before a scan began may become visible only after the scan passed it.
 */
const overlapMs = 3_600_000
/** A window's end that no date reaches, however far ahead of now. */
const farAheadMs = 100 * 365 * 86_400_000
/** How far back a window reaches where none before it was read to its end. */
const minCatchUpMs = 7 * 86_400_000

function nextWindow(state: FeedState & { scan: Scan }, feed: ScanIntervals): NextScan {
  const { scan, nowMs, startBoundMs } = state
  const fromMs = Math.max(startBoundMs, nextFromMs(state, feed))
  return {
    fromStart: true,
    span: { fromMs, toMs: nowMs + farAheadMs },
    notes: { hasCompleted: hasCompleted(scan) },
  }
}

function nextFromMs(
  { scan, nowMs, startBoundMs, isBackfilling }: FeedState & { scan: Scan },
  { rescan }: ScanIntervals,
): number {
  if (hasCompleted(scan)) return Math.min(scan.startedAtMs, nowMs) - overlapMs
  if (isBackfilling) return startBoundMs
  return nowMs - Math.max(minCatchUpMs, rescan?.backMs ?? 0)
}
