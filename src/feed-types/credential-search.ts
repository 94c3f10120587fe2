/**
 * The credential search: the global one, or the same search of ASTP, which costs no quota, where
 * the account has it. Its documented cursor decodes to a reversed domain and an id
 * (docs/api-notes.md, Cursors and order): the order follows domains, not time, so new items may
 * appear before any cursor, and none is kept beyond the end of its scan. Instead, each poll reads a
 * window of import times from start to end: from an hour before the previous scan began. Only
 * within that window does the cursor move.
 */
import type { FeedState, Scan } from '../store/feed-state.ts'
import { isOperationMissing } from '../upstream/capabilities.ts'
import { UpstreamError } from '../upstream/error.ts'
import {
  credentialOperations,
  type WireCredentialSearchBody,
} from '../upstream/resources/credentials.ts'
import type { CredentialSearchFeedConfig } from './config.ts'
import { parseCredentialItem } from './credentials.ts'
import {
  bodyWithCursor,
  type FeedPage,
  type FeedRequest,
  type FeedType,
  type NextScan,
  freeSearchCapability,
  type Polled,
  timeFilter,
  usualPageSize,
} from './feed-type.ts'

type CredentialSearch = Polled<CredentialSearchFeedConfig>
type ScanIntervals = Pick<CredentialSearch, 'rescan'>

export const pageSizes = [100, 50, 25, 10] as const

/** How feeds are read that can be asked by import time alone, in an order that nobody promises. */
export const readByImportTime: NonNullable<FeedType<ScanIntervals>['unordered']> = {
  byTime: true,
  note: noteWindow,
  endsWhenKnown: () => false,
  nextScan: nextWindow,
}

export const credentialSearchFeed: FeedType<CredentialSearch> = {
  // large pages are slow, and the gateway times out after about 30 s (docs/api-notes.md, Page
  // sizes)
  pageSizes,
  fingerprintParts: ({ query }) => [query],
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
  fetch: fetchSearchPage,
  isFree,
  parse: (raw, feed) => parseCredentialItem(raw, feed),
  unordered: readByImportTime,
}

/**
 * Uses the search without quota unless it was refused within a day. A cursor goes to the search that
 * gave it, so a scan whose search is refused starts again.
 */
async function fetchSearchPage(feed: CredentialSearch, request: FeedRequest): Promise<FeedPage> {
  const { client, slot, signal } = request
  const free = await isFree(request)
  const isLost = !free && lastSearch(request.scan) === freeSearchCapability
  const scan = noteSearch(isLost ? restartScan(request.scan) : request.scan, free)
  const body = bodyWithCursor<WireCredentialSearchBody>(scan)
  const asked = { slot, signal }
  if (!free) {
    const paced = { ...asked, tier: feed.tier }
    return { ...(await client.call(credentialOperations.search, body, paced)), scan }
  }
  try {
    return { ...(await client.call(credentialOperations.searchAstp, body, asked)), scan }
  } catch (error) {
    if (!(error instanceof UpstreamError) || !isSearchRefused(error)) throw error
    const why = `the service answers ${error.status ?? error.message}`
    // a gateway may have said it
    await client.capabilities.refuse(freeSearchCapability, { why, forMs: 3_600_000 })
    if (feed.quotaReserve > 0) throw error // the next poll run looks at the reserve first
    return fetchSearchPage(feed, request)
  }
}

function isSearchRefused(error: UpstreamError): boolean {
  return isOperationMissing(error) || (error.reason === 'contract' && error.fault !== 'too_large')
}

function restartScan({ passed: _circle, ...scan }: Scan): Scan {
  return { ...scan, cursor: null }
}

async function isFree({ client, scan }: FeedRequest): Promise<boolean> {
  if (scan.cursor !== null && lastSearch(scan) !== freeSearchCapability) return false
  return !(await client.capabilities.isRefused(freeSearchCapability))
}

function lastSearch({ notes }: Scan): unknown {
  return notes?.['searchedBy']
}

function noteSearch(scan: Scan, free: boolean): Scan {
  return { ...scan, notes: { ...scan.notes, searchedBy: free ? freeSearchCapability : undefined } }
}

/** What a scan knows of its window. */
interface WindowNotes {
  /** A scan has reached its end: from then on windows follow each other without a gap. */
  hasCompleted: boolean
  /** Since when pages are smaller than usual, ms; null: they are not. */
  smallSinceMs: number | null
}

const initialNotes: WindowNotes = {
  hasCompleted: false,
  smallSinceMs: null,
}

function readNotes({ notes }: Scan): WindowNotes {
  return { ...initialNotes, ...notes }
}

function noteWindow(scan: Scan, isEnd: boolean): Record<string, unknown> {
  return { ...readNotes(scan), ...(isEnd && { hasCompleted: true }) } satisfies WindowNotes
}

/**
 * An item imported this long before a scan began may become visible only after the scan passed it.
 */
const overlapMs = 3_600_000
/** A window's end that no date reaches, however far ahead of now. */
const farAheadMs = 100 * 365 * 86_400_000
/** How far back a window reaches where none before it was read to its end. */
const minCatchUpMs = 7 * 86_400_000
/** How long small pages are kept after a gateway timeout on larger ones. */
const smallPagesMs = 86_400_000

function nextWindow(state: FeedState & { scan: Scan }, feed: ScanIntervals): NextScan {
  const { scan, nowMs, startBoundMs } = state
  const notes = readNotes(scan)
  const pageSize = usualPageSize(scan)
  const isSmall = pageSize < pageSizes[0]
  const smallSinceMs = isSmall ? (notes.smallSinceMs ?? scan.startedAtMs) : null
  const staysSmall = smallSinceMs !== null && nowMs - smallSinceMs < smallPagesMs
  return {
    fromStart: true,
    span: {
      fromMs: Math.max(startBoundMs, nextFromMs(state, feed)),
      toMs: nowMs + farAheadMs,
    },
    notes: {
      ...initialNotes,
      hasCompleted: notes.hasCompleted,
      smallSinceMs: staysSmall ? smallSinceMs : null,
    } satisfies WindowNotes,
    ...(staysSmall && { pageSize }),
  }
}

function nextFromMs(
  { scan, nowMs, startBoundMs, isBackfilling }: FeedState & { scan: Scan },
  { rescan }: ScanIntervals,
): number {
  if (readNotes(scan).hasCompleted) return Math.min(scan.startedAtMs, nowMs) - overlapMs
  if (isBackfilling) return startBoundMs
  return nowMs - Math.max(minCatchUpMs, rescan?.backMs ?? 0)
}
