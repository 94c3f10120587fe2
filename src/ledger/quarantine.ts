/** Items that were set aside because they do not parse as an event. */
import type { Book } from './book.ts'

export interface Quarantined {
  feed: string
  atMs: number
  problem: string
  /** Canonical JSON, secrets masked. Hostile text. */
  raw: string
}

export interface QuarantineEntry extends Quarantined {
  /** 24 hex characters; the first twelve are enough to tell it from the others. */
  id: string
  account: string
  uid: string | null
  /** The feeds that know the item again by a mark; none where an older version made the entry. */
  markedBy: string[]
}

interface StoredEntry {
  feed: string
  at: number
  problem: string
  uid?: string
  raw: string
  marks?: Record<string, unknown>
}

/** The open entry of an item that gave this uid; it closes when the uid arrives whole. */
export async function findQuarantined(book: Book, uid: string): Promise<Quarantined | undefined> {
  const entry = await book.redis.hget(book.key('quarantine-uids'), uid)
  const text = entry && (await book.redis.hget(book.key('quarantine'), entry))
  if (!text) return undefined
  const stored = JSON.parse(text) as StoredEntry
  return { feed: stored.feed, atMs: stored.at, problem: stored.problem, raw: stored.raw }
}

/** What of a feed stands in the quarantine. */
export interface QuarantineCount {
  /** Open entries, a thousand at most over all feeds of the account. */
  open: number
  /** Of these: set aside since the time that was asked about. */
  fresh: number
  newestMs: number
}

/** By the feed that set them aside; a feed without any is left out. `sinceMs`: from when one is fresh. */
export async function countQuarantined(
  book: Book,
  sinceMs = 0,
): Promise<Record<string, QuarantineCount>> {
  const since = Math.floor(sinceMs)
  const told = (await book.run('count-quarantine', book.retention.story, since)) as string[]
  const counts = Object.create(null) as Record<string, QuarantineCount> // no feed's name is inherited
  for (let at = 0; at < told.length; at += 4) {
    const [feed = '', open, fresh, newest] = told.slice(at, at + 4)
    counts[feed] = { open: Number(open), fresh: Number(fresh), newestMs: Number(newest) }
  }
  return counts
}

const readAtOnce = 50

/** Every open entry whose id begins so, newest first; there are a thousand at most. */
export async function listQuarantined(book: Book, prefix = ''): Promise<QuarantineEntry[]> {
  const ids = (await openIds(book)).filter((id) => id.startsWith(prefix))
  const entries: QuarantineEntry[] = []
  for (let at = 0; at < ids.length; at += readAtOnce) {
    const some = ids.slice(at, at + readAtOnce)
    const texts = await book.redis.hmget(book.key('quarantine'), ...some)
    entries.push(...some.flatMap((id, place) => entryOf(book, id, texts[place] ?? null)))
  }
  return entries
}

/** What is older than a story is over, though nothing came yet to sweep it out. */
async function openIds(book: Book): Promise<string[]> {
  const [seconds] = await book.redis.time()
  const oldestMs = Number(seconds) * 1000 - book.retention.story
  return book.redis.zrevrangebyscore(book.key('quarantine-ages'), '+inf', `(${oldestMs}`)
}

/** None where the entry was closed meanwhile. */
function entryOf({ account }: Book, id: string, text: string | null): QuarantineEntry[] {
  if (text === null) return []
  const { feed, at, problem, uid = null, raw, marks = {} } = JSON.parse(text) as StoredEntry
  return [{ id, account, feed, atMs: at, problem, uid, raw, markedBy: Object.keys(marks) }]
}

/** `gone`: it was closed meanwhile. `no_mark`: made by an older version, which kept no mark with it; it stays. */
export type ReplayOutcome = 'done' | 'gone' | 'no_mark'

/** Forgets the entry and its marks: whatever feed shows the item again reads it as new. */
export async function replayQuarantined(book: Book, id: string): Promise<ReplayOutcome> {
  return (await book.run('replay-quarantined', id, book.horizonMs)) as ReplayOutcome
}
