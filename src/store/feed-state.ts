/** A feed's place in the ledger: its walks, its floor, its fences and its times. */
import { pairsOf, redisNow } from '../redis/scripts.ts'
import type { AccountLedger } from './account-ledger.ts'

/** `again`: a walk that begins anew by plan, such as a sweep; the others are told as resets. */
export type ScanReason =
  | 'first'
  | 'again'
  | 'configuration_changed'
  | 'cursor_refused'
  | 'page_size_changed'
  | 'page_too_large'
  | 'rewound'

/** One pass with one cursor and one unchanging request; stored whole, with absolute times. */
export interface Scan {
  fingerprint: string
  /** The request body without `from`. */
  body: Record<string, unknown>
  /** The last non-null `next`; null before there was one. */
  cursor: string | null
  /** Why this walk began. */
  reason: ScanReason
  startedAtMs: number
  /** From when to when it reads; of feeds without times it means nothing. */
  span?: ScanSpan
  /** From when on this request was read, by this walk and those before it; ms. */
  readsFromMs?: number
  /** What a feed type or a rescan keeps of its way besides the cursor; changes from page to page. */
  notes?: Record<string, unknown>
  /** Of a tail: what it left for a rescan to read; `id` names it. Undefined of walks of 0.4. */
  behind?: { id: string; fromMs: number; toMs: number }
  /** Its pages are smaller than `usual` for `left` more of them: one of the usual size was too large to be read. */
  small?: { usual: number; left: number }
  /** A digest of a cursor of this pass, to notice where cursors lead round in a circle. */
  passed?: { anchor: string; steps: number; limit: number; isCircle?: true }
}

/** Both ends included, ms. */
export interface ScanSpan {
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
  startBoundMs: number
  scan: Scan | undefined
  /** Whether an operator moved the floor since the last walk began. */
  isRewound: boolean
  newestMs: number | undefined
  lastSuccessMs: number | undefined
  lastCaughtUpMs: number | undefined
  isBackfilling: boolean
  /** The walk was read to its end by the last page. */
  isEnded: boolean
  /** Reads the whole window again, and what a tail left behind it. */
  sweep: RescanState
  /** Reads the near past again and again. */
  recent: RescanState
  /** Reads the longer windows between those two. */
  long: RescanState
  rescans: RescanTimes
  /** How many late events were at most so old when they were found: 1m, 10m, 1h, 1d, 7d, more. */
  lateness: Record<string, number>
  /** The fence of repairs. */
  repairSequence: number
  /** Half or more of its last page with items could not be read; undefined: it could. */
  unreadable: Unreadable | undefined
  /** Whether the account's quarantine holds anything; false where nobody looked. */
  hasQuarantine: boolean
  /** Why an operator paused it; undefined: it is not paused. */
  paused: { reason: string; sinceMs: number } | undefined
  /** Why it stopped: the service refuses what it asks for; undefined: it does not. */
  refused: { reason: string; sinceMs: number } | undefined
}

/** A feed of which half or more cannot be read, by its last page with items. */
export interface Unreadable {
  sinceMs: number
  /** Items of that page, and how many of them could not be read. */
  shown: number
  unread: number
  /** Of the first of them. */
  problem: string
}

/** A walk that was read to its end: its request, when it began, and what it read. */
export interface EndedScan extends Partial<ScanSpan> {
  fingerprint: string
  begunMs: number
  /** It read only what a tail had left behind it, not the whole window. */
  isSnapshot?: boolean
}

/** What rescans have read. */
interface RescanTimes {
  /** The tail's `behind` that was read. */
  snapshotId: string | undefined
  /** When each window of the ladder was last read, by the beginning of that scan, ms; see rescan.ts. */
  rungMs: (number | undefined)[]
  /** Up to when the feed was read by match time, ms of the service's clock. */
  matched: { fingerprint: string; toMs: number } | undefined
  /** Events created in a week, by the last scan of the whole window. */
  perWeek: number | undefined
  /** When the feed was first polled; undefined of feeds of 0.4. */
  firstPollMs: number | undefined
}

/** A walk of a rescan, which re-reads what the tail has passed; its fence is its own. */
export interface RescanState {
  sequence: number
  generation: number
  /** The walk of the sweep that runs, or of the last one that ended. */
  scan: Scan | undefined
  /** Whether the walk was read to its end. */
  isDone: boolean
  lastCompletedMs: number | undefined
  /** The last one that was read to its end; undefined also of an older version's. */
  lastEnded: EndedScan | undefined
}

/** Reads a feed's state; the first call ever fixes the floor at `startMs` before now. */
export async function openFeed(
  ledger: AccountLedger,
  feed: string,
  startMs: number,
): Promise<FeedState> {
  const [now, ...pairs] = (await ledger.run('open-feed', feed, startMs)) as string[]
  return toFeedState(Number(now), Object.fromEntries(pairsOf(pairs)))
}

/** Reads it without touching anything; undefined for a feed that never polled. */
export async function peekFeed(
  ledger: AccountLedger,
  feed: string,
  nowMs: number,
): Promise<FeedState | undefined> {
  return parseFeed(await ledger.redis.hgetall(ledger.key('feed', feed)), nowMs)
}

/** Of fields as they are stored; undefined for a feed that never polled. */
export function parseFeed(fields: Record<string, string>, nowMs: number): FeedState | undefined {
  return fields['floor'] === undefined ? undefined : toFeedState(nowMs, fields)
}

/** How far a feed lags: since it was last read to its end, before that since it was first polled. */
export function feedLagMs(
  { lastCaughtUpMs, rescans, scan }: Pick<FeedState, 'lastCaughtUpMs' | 'rescans' | 'scan'>,
  nowMs: number,
): number {
  return Math.max(0, nowMs - (lastCaughtUpMs ?? rescans.firstPollMs ?? scan?.startedAtMs ?? nowMs))
}

/** Moves the floor and begins a new walk there; what is marked as seen is not sent again. */
export async function rewindFeed(
  ledger: AccountLedger,
  feed: string,
  startBoundMs: number,
): Promise<void> {
  await ledger.run('rewind-feed', feed, Math.floor(startBoundMs))
}

/** A paused feed is not polled until it is resumed, by any replica. */
export async function pauseFeed(
  ledger: AccountLedger,
  feed: string,
  pause: FeedState['paused'],
): Promise<void> {
  const name = ledger.key('feed', feed)
  if (pause === undefined) await ledger.redis.hdel(name, 'paused')
  else await ledger.redis.hset(name, 'paused', JSON.stringify(pause))
}

/** Notes that the service refuses what the feed asks for, or no longer does; whether that is news. */
export async function noteRefusal(
  ledger: AccountLedger,
  feed: string,
  refused: FeedState['refused'],
): Promise<boolean> {
  const name = ledger.key('feed', feed)
  if (refused === undefined) return (await ledger.redis.hdel(name, 'refused')) === 1
  return (await ledger.redis.hsetnx(name, 'refused', JSON.stringify(refused))) === 1
}

function toFeedState(nowMs: number, fields: Record<string, string>): FeedState {
  const number = (name: string): number | undefined =>
    fields[name] === undefined ? undefined : Number(fields[name])
  const scan = parseJson<Scan>(fields['walk'])
  return {
    nowMs,
    sequence: number('seq') ?? 0,
    generation: number('gen') ?? 0,
    startBoundMs: number('floor') ?? nowMs,
    scan,
    isRewound: (number('rewound') ?? 0) > (scan?.startedAtMs ?? 0),
    newestMs: number('newest'),
    lastSuccessMs: number('success'),
    lastCaughtUpMs: number('caught_up'),
    isBackfilling: fields['backfill'] === '1',
    isEnded: fields['ended'] === '1',
    repairSequence: number('repair_seq') ?? 0,
    sweep: parseRescanState('sweep_', fields),
    recent: parseRescanState('recent_', fields),
    long: parseRescanState('long_', fields),
    rescans: {
      snapshotId: fields['snapshot_of'],
      rungMs: parseRungTimes(fields),
      matched: parseJson(fields['matched']),
      perWeek: number('per_week'),
      firstPollMs: number('first_poll'),
    },
    lateness: Object.fromEntries(
      Object.entries(fields)
        .filter(([name]) => name.startsWith('late:'))
        .map(([name, count]) => [name.slice('late:'.length), Number(count)]),
    ),
    unreadable:
      fields['unreadable'] === undefined ? undefined : parseUnreadable(fields['unreadable']),
    hasQuarantine: fields['quarantined'] === '1',
    paused: parseJson(fields['paused']),
    refused: parseJson(fields['refused']),
  }
}

function parseUnreadable(text: string): Unreadable {
  const { since, ...about } = JSON.parse(text) as Omit<Unreadable, 'sinceMs'> & { since: number }
  return { sinceMs: since, ...about }
}

function parseRescanState(place: string, fields: Record<string, string>): RescanState {
  const field = (name: string): string | undefined => fields[place + name]
  const completed = field('completed')
  return {
    sequence: Number(field('seq') ?? 0),
    generation: Number(field('gen') ?? 0),
    scan: parseJson(field('walk')),
    isDone: field('done') === '1',
    lastCompletedMs: completed === undefined ? undefined : Number(completed),
    lastEnded: parseJson(field('completed_walk')),
  }
}

function parseRungTimes(fields: Record<string, string>): (number | undefined)[] {
  const times: (number | undefined)[] = []
  for (const [name, value] of Object.entries(fields)) {
    if (name.startsWith('rung:')) times[Number(name.slice('rung:'.length))] = Number(value)
  }
  return times
}

function parseJson<T>(text: string | undefined): T | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as T)
}

/** Items that were set aside because they do not parse as an event. */

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
export async function findQuarantined(
  ledger: AccountLedger,
  uid: string,
): Promise<Quarantined | undefined> {
  const entry = await ledger.redis.hget(ledger.key('quarantine-uids'), uid)
  const text = entry && (await ledger.redis.hget(ledger.key('quarantine'), entry))
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
  ledger: AccountLedger,
  sinceMs = 0,
): Promise<Record<string, QuarantineCount>> {
  const since = Math.floor(sinceMs)
  const reply = (await ledger.run('count-quarantine', ledger.retention.story, since)) as string[]
  const counts = Object.create(null) as Record<string, QuarantineCount> // no feed's name is inherited
  for (let at = 0; at < reply.length; at += 4) {
    const [feed = '', open, fresh, newest] = reply.slice(at, at + 4)
    counts[feed] = { open: Number(open), fresh: Number(fresh), newestMs: Number(newest) }
  }
  return counts
}

const readAtOnce = 50

/** Every open entry whose id begins so, newest first; there are a thousand at most. */
export async function listQuarantined(
  ledger: AccountLedger,
  prefix = '',
): Promise<QuarantineEntry[]> {
  const ids = (await readOpenIds(ledger)).filter((id) => id.startsWith(prefix))
  const entries: QuarantineEntry[] = []
  for (let at = 0; at < ids.length; at += readAtOnce) {
    const batch = ids.slice(at, at + readAtOnce)
    const texts = await ledger.redis.hmget(ledger.key('quarantine'), ...batch)
    entries.push(...batch.flatMap((id, place) => parseEntry(ledger, id, texts[place] ?? null)))
  }
  return entries
}

/** What is older than a story is over, though nothing came yet to sweep it out. */
async function readOpenIds(ledger: AccountLedger): Promise<string[]> {
  const oldestMs = (await redisNow(ledger)) - ledger.retention.story
  return ledger.redis.zrevrangebyscore(ledger.key('quarantine-ages'), '+inf', `(${oldestMs}`)
}

/** None where the entry was closed meanwhile. */
function parseEntry(
  { account }: AccountLedger,
  id: string,
  text: string | null,
): QuarantineEntry[] {
  if (text === null) return []
  const { feed, at, problem, uid = null, raw, marks = {} } = JSON.parse(text) as StoredEntry
  return [{ id, account, feed, atMs: at, problem, uid, raw, markedBy: Object.keys(marks) }]
}

/** `gone`: it was closed meanwhile. `no_mark`: made by an older version, which kept no mark with it; it stays. */
export type ReplayOutcome = 'done' | 'gone' | 'no_mark'

/** Forgets the entry and its marks: whatever feed shows the item again reads it as new. */
export async function replayQuarantined(ledger: AccountLedger, id: string): Promise<ReplayOutcome> {
  return (await ledger.run('replay-quarantined', id, ledger.horizonMs)) as ReplayOutcome
}
