/**
 * The credential feed of one identifier. The service states no order and has no time filter (facts.md 3,
 * credential feed v3): each poll walks from the start until a whole page is known, once a walk has seen
 * everything; a slow full re-walk, the sweep, finds what such a walk passes by. Only a server whose
 * ids were seen to grow through a whole walk is resumed at its cursor.
 */
import type { Walk } from '../ledger/feed-state.ts'
import type { WireSearchPage } from '../service/wire/page.ts'
import type { CredentialsFeedConfig } from './config.ts'
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
}

const atStart: OrderNotes = {
  isFromStart: true,
  lastId: null,
  grows: true,
  pages: 0,
  hasCompleted: false,
  lastWalkGrew: true,
  isAscending: false,
}

function readNotes({ notes }: Walk): OrderNotes {
  return { ...atStart, ...notes }
}

function noteOrder(
  walk: Walk,
  { items, next }: WireSearchPage,
  isEnd: boolean,
): Record<string, unknown> {
  const before = readNotes(walk)
  const ids = items.map(idOf).filter((id) => !Number.isNaN(id)) // a malformed item says nothing
  const grows = before.grows && isGrowing([before.lastId ?? -1, ...ids])
  const pages = before.pages + (items.length > 0 ? 1 : 0)
  const hasMoved = Boolean(next) && next !== walk.cursor // else the same page is read again
  const isBroken = before.isAscending && !grows
  const isWhole = isEnd && before.isFromStart
  return {
    isFromStart: before.isFromStart,
    lastId: hasMoved ? (ids.at(-1) ?? before.lastId) : before.lastId,
    grows,
    pages,
    hasCompleted: (before.hasCompleted && !isBroken) || isWhole,
    lastWalkGrew: isWhole ? grows : before.lastWalkGrew && !isBroken,
    isAscending: grows && (before.isAscending || (isWhole && pages >= 2)),
  } satisfies OrderNotes
}

function idOf(item: unknown): number {
  return typeof item === 'object' && item !== null && 'id' in item ? Number(item.id) : Number.NaN
}

function isGrowing(ids: readonly number[]): boolean {
  return ids.every((id, at) => at === 0 || id > (ids[at - 1] ?? Number.NaN))
}
