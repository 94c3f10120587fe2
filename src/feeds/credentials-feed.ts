/**
 * The credentials of one identifier, and of the whole tenant; the service filters neither by time.
 *
 * Of an identifier it states no order (facts.md 3, credential feed v3): each poll walks from the start until
 * a whole page is known, once a walk has seen everything; a slow full re-walk, the sweep, finds what such a
 * walk passes by. Only a server whose ids were seen to grow through a whole walk is resumed at its cursor.
 *
 * The tenant's can be asked for in ascending order, and the service's guide resumes the cursor. That, too, is
 * done only after a whole walk has shown ids or import times that grow; without that proof each walk reads
 * everything, as seldom as it has pages.
 */
import type { Walk } from '../ledger/feed-state.ts'
import { spanInWords } from '../runtime/span-in-words.ts'
import { parseTimestamp } from '../service/timestamps.ts'
import type { WireSearchPage } from '../service/wire/page.ts'
import type { CredentialsFeedConfig, FeedCommon, TenantCredentialsFeedConfig } from './config.ts'
import { credentialItem } from './credential-item.ts'
import { credentialShape } from './credential-shape.ts'
import type { FeedType } from './feed-type.ts'
import type { Polled } from './polled-feed.ts'

export const credentialsFeed: FeedType<Polled<CredentialsFeedConfig>> = {
  pageSizes: [20], // the service's default; no upper bound is published (facts.md 1, row 30)
  asked: ({ identifier }) => [identifier],
  body: (_feed, _span, size) => ({ size }),
  async fetch(feed, { client, walk, turn, signal }) {
    return client.credentialFeed({
      identifier: feed.identifier,
      from: walk.cursor,
      size: Number(walk.body['size']),
      turn,
      tier: feed.tier,
      signal,
    })
  },
  parse: (raw, feed) => credentialItem(raw, feed),
  keptOfMalformed: credentialShape,
  unordered: {
    note: noteOrder,
    endsWhenKnown(walk) {
      const { hasCompleted, isAscending, lastWalkGrew } = readNotes(walk)
      return hasCompleted && !isAscending && !lastWalkGrew
    },
    following({ walk }) {
      const { hasCompleted, isAscending, lastWalkGrew, ...notes } = readNotes(walk)
      const known = { hasCompleted, isAscending, lastWalkGrew }
      return isAscending
        ? { fromStart: false, notes: { ...notes, ...known, isFromStart: false } }
        : { fromStart: true, notes: { ...atStart, ...known } }
    },
  },
}

/** The leaked credentials of all identifiers of the tenant. */
export const tenantCredentialsFeed: FeedType<Polled<TenantCredentialsFeedConfig>> = {
  pageSizes: [20], // the service's default; no upper bound is published
  asked: () => [],
  body: (_feed, _span, size) => ({ size }),
  needs: () => ({
    capability: 'tenant_credentials',
    operation: 'GET /firework/v2/me/feed/credentials',
    what: 'the credentials of the tenant',
  }),
  async fetch(feed, { client, walk, turn, signal }) {
    return client.tenantCredentials({
      from: walk.cursor,
      size: Number(walk.body['size']),
      order: 'asc',
      turn,
      tier: feed.tier,
      signal,
    })
  },
  parse: (raw, feed) => credentialItem(raw, feed),
  keptOfMalformed: credentialShape,
  unordered: {
    note: noteTenantOrder,
    endsWhenKnown: () => false,
    following({ walk }, feed) {
      const { hasCompleted, isAscending, lastWalkGrew, lastPages, ...notes } = readNotes(walk)
      const known = { hasCompleted, isAscending, lastWalkGrew, lastPages }
      if (isAscending)
        return { fromStart: false, notes: { ...notes, ...known, isFromStart: false } }
      const dueMs = lastPages > 1 ? walk.startedAtMs + fullReadingMs(feed, lastPages) : undefined
      return { fromStart: true, notes: { ...atStart, ...known }, dueMs }
    },
    readsAll(walk) {
      const { hasCompleted, isAscending } = readNotes(walk)
      return hasCompleted && !isAscending
    },
    remark(walk, feed) {
      const { hasCompleted, isAscending, lastPages } = readNotes(walk)
      if (!hasCompleted || isAscending || lastPages < 2) return undefined
      const rest = spanInWords(fullReadingMs(feed, lastPages))
      return (
        `the service does not answer in the order that is asked for: each reading takes all ${lastPages} ` +
        `pages and is repeated every ${rest}; raise lag_objective above ${rest}`
      )
    },
  },
}

/**
 * From the beginning of one reading of all there is to the next, ms: about one page each `every`, at most
 * the interval of sweeps, which it replaces.
 */
export function fullReadingMs(
  { everyMs = 0, sweep }: Pick<FeedCommon, 'everyMs' | 'sweep'>,
  pages: number,
): number {
  return Math.min(pages * everyMs, Math.max(everyMs, sweep?.everyMs ?? 86_400_000))
}

/** What a walk knows of its order. */
interface OrderNotes {
  /** It began at the start, not at a cursor that was kept. */
  isFromStart: boolean
  /** The last id before the page that the cursor names; null where there was none. */
  lastId: number | null
  /** Ids grew on this walk, page by page and within them. */
  grows: boolean
  /** Pages with items on this walk. */
  pages: number
  /** A walk from the start has reached the end: a known page means something. */
  hasCompleted: boolean
  /** The last such walk showed growing ids: what is new may stand at the end. */
  lastWalkGrew: boolean
  /** Such a walk had two pages and more: its cursor is worth keeping. */
  isAscending: boolean
  /** Pages of the last such walk. */
  lastPages: number
  /** Import times on this walk; only where an order was asked for. */
  times?: TimeNotes
}

interface TimeNotes {
  /** None was earlier than the one before it. */
  grows: boolean
  firstMs: number | null
  lastMs: number | null
}

const atStart: OrderNotes = {
  isFromStart: true,
  lastId: null,
  grows: true,
  pages: 0,
  hasCompleted: false,
  lastWalkGrew: true,
  isAscending: false,
  lastPages: 0,
}

function readNotes({ notes }: Walk): OrderNotes {
  return { ...atStart, ...notes }
}

function noteOrder(walk: Walk, page: WireSearchPage, isEnd: boolean): Record<string, unknown> {
  return noteGrowth(walk, page, { isEnd })
}

/** The order that is asked for goes up by something that nothing public names: by ids, or import times. */
function noteTenantOrder(
  walk: Walk,
  page: WireSearchPage,
  isEnd: boolean,
): Record<string, unknown> {
  return noteGrowth(walk, page, { isEnd, times: growthInTime(readNotes(walk).times, page.items) })
}

function noteGrowth(
  walk: Walk,
  { items, next }: WireSearchPage,
  { isEnd, times }: { isEnd: boolean; times?: TimeNotes },
): Record<string, unknown> {
  const before = readNotes(walk)
  const ids = items.map(idOf).filter((id) => !Number.isNaN(id)) // a malformed item says nothing
  const growsById = before.grows && isGrowing([before.lastId ?? -1, ...ids])
  const grows = growsById || isSpread(times)
  const pages = before.pages + (items.length > 0 ? 1 : 0)
  const hasMoved = Boolean(next) && next !== walk.cursor // else the same page is read again
  const isBroken = before.isAscending && !grows
  const isWhole = isEnd && before.isFromStart
  const isProven = isWhole && pages >= 2
  return {
    isFromStart: before.isFromStart,
    lastId: hasMoved ? (ids.at(-1) ?? before.lastId) : before.lastId,
    grows: growsById,
    pages,
    hasCompleted: (before.hasCompleted && !isBroken) || isWhole,
    lastWalkGrew: isWhole ? grows : before.lastWalkGrew && !isBroken,
    isAscending: grows && (before.isAscending || isProven),
    lastPages: isWhole ? pages : before.lastPages,
    ...(times && { times: hasMoved ? times : { ...times, lastMs: before.times?.lastMs ?? null } }),
  } satisfies OrderNotes
}

function growthInTime(before: TimeNotes | undefined, items: readonly unknown[]): TimeNotes {
  const { grows, firstMs, lastMs } = before ?? { grows: true, firstMs: null, lastMs: null }
  const read = items.map(importedMs).filter((ms) => ms !== null)
  const isLater = (ms: number, at: number): boolean => ms >= (read[at - 1] ?? lastMs ?? ms)
  return {
    grows: grows && read.every(isLater),
    firstMs: firstMs ?? read[0] ?? null,
    lastMs: read.at(-1) ?? lastMs,
  }
}

/** One time for all proves no order. */
function isSpread(times: TimeNotes | undefined): boolean {
  return times !== undefined && times.grows && (times.lastMs ?? 0) > (times.firstMs ?? 0)
}

function importedMs(item: unknown): number | null {
  if (typeof item !== 'object' || item === null || !('imported_at' in item)) return null
  return parseTimestamp(String(item.imported_at))
}

function idOf(item: unknown): number {
  return typeof item === 'object' && item !== null && 'id' in item ? Number(item.id) : Number.NaN
}

function isGrowing(ids: readonly number[]): boolean {
  return ids.every((id, at) => at === 0 || id > (ids[at - 1] ?? Number.NaN))
}
