/** A feed's place in the ledger: its walk, its floor, its fence and its times. */
import type { Book } from './book.ts'

export type WalkReason = 'first' | 'configuration_changed' | 'cursor_refused' | 'rewound'

/** One pass with one cursor and one unchanging request; stored whole, with absolute times. */
export interface Walk {
  fingerprint: string
  /** The request body without `from`. */
  body: Record<string, unknown>
  /** The last non-null `next`; null before there was one. */
  cursor: string | null
  /** Why this walk began. */
  reason: WalkReason
  startedAtMs: number
}

export interface FeedState {
  /** Redis' clock when this was read. */
  nowMs: number
  /** The fence: a commit names the value that it read. */
  sequence: number
  generation: number
  /** Nothing older is read. */
  floorMs: number
  walk: Walk | undefined
  /** Whether an operator moved the floor since the last walk began. */
  isRewound: boolean
  newestMs: number | undefined
  lastSuccessMs: number | undefined
  lastCaughtUpMs: number | undefined
  isBackfilling: boolean
}

/** Reads a feed's state; the first call ever fixes the floor at `startMs` before now. */
export async function openFeed(book: Book, feed: string, startMs: number): Promise<FeedState> {
  const [now, ...pairs] = (await book.run('open-feed', feed, startMs)) as string[]
  const fields: Record<string, string> = {}
  for (let i = 0; i + 1 < pairs.length; i += 2) fields[pairs[i] ?? ''] = pairs[i + 1] ?? ''
  return stateOf(Number(now), fields)
}

/** Reads it without touching anything; undefined for a feed that never polled. */
export async function peekFeed(
  book: Book,
  feed: string,
  nowMs: number,
): Promise<FeedState | undefined> {
  const fields = await book.redis.hgetall(book.key('feed', feed))
  return fields['floor'] === undefined ? undefined : stateOf(nowMs, fields)
}

/** Moves the floor and begins a new walk there; what is marked as seen is not sent again. */
export async function rewindFeed(book: Book, feed: string, floorMs: number): Promise<void> {
  await book.run('rewind-feed', feed, Math.floor(floorMs))
}

function stateOf(nowMs: number, fields: Record<string, string>): FeedState {
  const number = (name: string): number | undefined =>
    fields[name] === undefined ? undefined : Number(fields[name])
  return {
    nowMs,
    sequence: number('seq') ?? 0,
    generation: number('gen') ?? 0,
    floorMs: number('floor') ?? nowMs,
    walk: fields['walk'] === undefined ? undefined : (JSON.parse(fields['walk']) as Walk),
    isRewound: fields['walk'] === undefined && fields['rewound'] !== undefined,
    newestMs: number('newest'),
    lastSuccessMs: number('success'),
    lastCaughtUpMs: number('caught_up'),
    isBackfilling: fields['backfill'] === '1',
  }
}
