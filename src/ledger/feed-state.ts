/** A feed's place in the ledger: its walk, its floor, its fence and its times. */
import type { Book } from './book.ts'

/** `again`: a walk that begins anew by plan, such as a sweep; the others are told as resets. */
export type WalkReason =
  | 'first'
  | 'again'
  | 'configuration_changed'
  | 'cursor_refused'
  | 'page_size_changed'
  | 'rewound'

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
  /** From when to when it reads; of feeds without times it means nothing. */
  span?: WalkSpan
  /** From when on this request was read, by this walk and those before it; ms. */
  readsFromMs?: number
  /** What a feed type keeps of its way besides the cursor; changes from page to page. */
  notes?: Record<string, unknown>
}

/** Both ends included, ms. */
export interface WalkSpan {
  fromMs: number
  /** undefined: on and on. */
  toMs?: number | undefined
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
  /** The walk was read to its end by the last page. */
  isEnded: boolean
  sweep: SweepState
  /** The fence of repairs. */
  repairSequence: number
  /** Why an operator paused it; undefined: it is not paused. */
  paused: { reason: string; sinceMs: number } | undefined
}

/** A walk that was read to its end: its request, when it began, and what it read. */
export interface EndedWalk extends Partial<WalkSpan> {
  fingerprint: string
  begunMs: number
}

/** The feed's other walk, which re-reads what the tail has passed; its fence is its own. */
export interface SweepState {
  sequence: number
  generation: number
  /** The walk of the sweep that runs, or of the last one that ended. */
  walk: Walk | undefined
  /** Whether the walk was read to its end. */
  isDone: boolean
  lastCompletedMs: number | undefined
  /** The last one that was read to its end; undefined also of an older version's. */
  lastEnded: EndedWalk | undefined
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

/** A paused feed is not polled until it is resumed, by any replica. */
export async function pauseFeed(
  book: Book,
  feed: string,
  pause: FeedState['paused'],
): Promise<void> {
  const name = book.key('feed', feed)
  if (pause === undefined) await book.redis.hdel(name, 'paused')
  else await book.redis.hset(name, 'paused', JSON.stringify(pause))
}

function stateOf(nowMs: number, fields: Record<string, string>): FeedState {
  const number = (name: string): number | undefined =>
    fields[name] === undefined ? undefined : Number(fields[name])
  return {
    nowMs,
    sequence: number('seq') ?? 0,
    generation: number('gen') ?? 0,
    floorMs: number('floor') ?? nowMs,
    walk: fields['walk'] === undefined ? undefined : parseWalk(fields['walk']),
    isRewound: fields['walk'] === undefined && fields['rewound'] !== undefined,
    newestMs: number('newest'),
    lastSuccessMs: number('success'),
    lastCaughtUpMs: number('caught_up'),
    isBackfilling: fields['backfill'] === '1',
    isEnded: fields['ended'] === '1',
    repairSequence: number('repair_seq') ?? 0,
    sweep: {
      sequence: number('sweep_seq') ?? 0,
      generation: number('sweep_gen') ?? 0,
      walk: fields['sweep_walk'] === undefined ? undefined : parseWalk(fields['sweep_walk']),
      isDone: fields['sweep_done'] === '1',
      lastCompletedMs: number('sweep_completed'),
      lastEnded: parseEnded(fields['sweep_completed_walk']),
    },
    paused: fields['paused'] === undefined ? undefined : parsePause(fields['paused']),
  }
}

function parseEnded(text: string | undefined): EndedWalk | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as EndedWalk)
}

function parseWalk(text: string): Walk {
  return JSON.parse(text) as Walk
}

function parsePause(text: string): FeedState['paused'] {
  return JSON.parse(text) as FeedState['paused']
}
