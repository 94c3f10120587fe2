/** A feed's state in the ledger: its scans, start bound, fences and times; and its quarantine. */
import { maxTroubleAnswer, type Trouble } from '../lib/trouble.ts'
import { pairsOf, redisNow } from '../redis/scripts.ts'
import type { AccountLedger } from './account-ledger.ts'

/** Why a scan began. `again`: by plan, such as a rescan; the others are reported as resets. */
export type ScanReason =
  | 'first'
  | 'again'
  | 'configuration_changed'
  | 'cursor_refused'
  | 'page_too_large'
  | 'rewound'

/** One pass over a feed with one cursor and one unchanging request; stored with absolute times. */
export interface Scan {
  fingerprint: string
  /** The request body without `from`. */
  body: Record<string, unknown>
  /** The last `next` that was not null; null before the first one. */
  cursor: string | null
  reason: ScanReason
  startedAtMs: number
  /** From when to when it reads; without meaning for feeds without times. */
  span?: ScanSpan
  /** From when on this request was read, by this scan and those before it; ms. */
  readsFromMs?: number
  /** What a feed type or a rescan keeps besides the cursor; changes from page to page. */
  notes?: Record<string, unknown>
  /** Of a tail: the span that it left to a rescan, with an id. */
  behind?: { id: string; fromMs: number; toMs: number }
  /**
   * For `left` more pages it asks for fewer items than `usual`: a page was too large to be read.
   */
  small?: { usual: number; left: number }
  /** Of a tail whose `cursor` reads a place beyond now: its own cursor, and the limit of the place. */
  held?: { cursor: string | null; limitMs?: number | undefined }
  /** Of a tail in front of what is dated ahead of now. */
  beyond?: {
    /**
     * Where that is read next. A place with a limit belongs to a pass over all, in which every item is
     * dated after it, ms; one without follows the end.
     */
    places: { cursor: string | null; limitMs?: number | undefined }[]
    /** How long the last pass took, ms. */
    passMs?: number | undefined
    /** A page failed since the last whole pass: none begins before then. */
    retry?: { waitMs: number; atMs: number }
  }
  /** Of a tail: its pages do not follow dates, so no date holds it. */
  ignoresDates?: true
  /** A digest of an earlier cursor of this scan, to notice cursors that lead in a circle. */
  passed?: { anchor: string; steps: number; limit: number; isCircle?: true }
}

/** Both ends included, ms. */
export interface ScanSpan {
  fromMs: number
  /** undefined: without an end. */
  toMs?: number | undefined
}

export interface FeedState {
  /** Redis' clock when this state was read. */
  nowMs: number
  /** The fence: a commit names the value that it read. */
  sequence: number
  generation: number
  /** Nothing older is read. */
  startBoundMs: number
  scan: Scan | undefined
  /** Whether an operator moved the start bound since the last scan began. */
  isRewound: boolean
  /** The newest date that is not ahead of now. */
  newestMs: number | undefined
  /** The latest date of an event that was dated ahead of now when it was taken in. */
  aheadMs: number | undefined
  /** When the last such event was taken in. */
  aheadAtMs: number | undefined
  lastSuccessMs: number | undefined
  lastCaughtUpMs: number | undefined
  isBackfilling: boolean
  /** The last page ended the scan. */
  isEnded: boolean
  /** Reads the whole window again, and what a tail left behind. */
  whole: RescanState
  /** Reads the near past again and again. */
  recent: RescanState
  /** Reads the longer windows between those two. */
  long: RescanState
  rescans: RescanTimes
  /** Set if half or more of its last page with items could not be read. */
  unreadable: Unreadable | undefined
  /** Set while an operator has paused it. */
  paused: { reason: string; sinceMs: number } | undefined
  /** Why its tail cannot be read, since the last page that was. */
  trouble: Trouble | undefined
  /** Why what its tail has passed cannot be read again, since the last page that was. */
  rescanTrouble: Trouble | undefined
}

/** A feed of which half or more cannot be read, by its last page with items. */
export interface Unreadable {
  sinceMs: number
  /** Items of that page, and how many of them could not be read. */
  shown: number
  unread: number
  /** Of the first one that could not be read. */
  problem: string
}

/** A scan that was read to its end: its request, when it began, and what it read. */
export interface EndedScan extends Partial<ScanSpan> {
  fingerprint: string
  begunMs: number
  /** It read only what a tail had left behind, not the whole window. */
  isSnapshot?: boolean
}

/** What rescans have read. */
interface RescanTimes {
  /** Id of the tail's `behind` that was read. */
  snapshotId: string | undefined
  /** When the last scan of each window of the ladder began, ms; see `feeds/rescan-plan.ts`. */
  rungMs: (number | undefined)[]
  /** Up to when the feed was read by match time, ms of the API's clock. */
  matched: { fingerprint: string; toMs: number } | undefined
  /** Events created in a week, by the last scan of the whole window. */
  perWeek: number | undefined
  /** When the feed was first polled. */
  firstPollMs: number | undefined
}

/** State of a rescan, which reads again what the tail has passed; it has a fence of its own. */
export interface RescanState {
  sequence: number
  generation: number
  /** The scan that runs, or the last one that ended. */
  scan: Scan | undefined
  /** Whether that scan was read to its end. */
  isDone: boolean
  lastCompletedMs: number | undefined
  /** The last scan that was read to its end; undefined if there was none yet. */
  lastEnded: EndedScan | undefined
}

/** Reads a feed's state; the first call ever sets the start bound to `startMs` before now. */
export async function openFeed(
  ledger: AccountLedger,
  feed: string,
  startMs: number,
): Promise<FeedState> {
  const [now, ...pairs] = (await ledger.run('open-feed', feed, startMs)) as string[]
  return toFeedState(Number(now), Object.fromEntries(pairsOf(pairs)))
}

/** Reads a feed's state without changing anything; undefined for a feed that was never polled. */
export async function peekFeed(
  ledger: AccountLedger,
  feed: string,
  nowMs: number,
): Promise<FeedState | undefined> {
  return parseFeed(await ledger.redis.hgetall(ledger.key('feed', feed)), nowMs)
}

/** Parses fields as they are stored; undefined for a feed that was never polled. */
export function parseFeed(fields: Record<string, string>, nowMs: number): FeedState | undefined {
  return fields['floor'] === undefined ? undefined : toFeedState(nowMs, fields)
}

/**
 * Time since a feed was last read to its end, before that since its first poll; ms. By Redis' clock
 * alone: all of these times are its own.
 */
export function feedLagMs({
  nowMs,
  lastCaughtUpMs,
  rescans,
  scan,
}: Pick<FeedState, 'nowMs' | 'lastCaughtUpMs' | 'rescans' | 'scan'>): number {
  return Math.max(0, nowMs - (lastCaughtUpMs ?? rescans.firstPollMs ?? scan?.startedAtMs ?? nowMs))
}

/** How long an event that is dated ahead of now is worth a word, ms. */
const aheadNoteMs = 86_400_000

/** Up to which date events are dated ahead of now, ms; undefined: none is, or none came for a day. */
export function datedAheadMs({ aheadMs = 0, aheadAtMs = 0, nowMs }: FeedState): number | undefined {
  return aheadMs > nowMs && aheadAtMs > nowMs - aheadNoteMs ? aheadMs : undefined
}

/** Moves the start bound, ms; reading begins anew. Events seen before are not sent again. */
export async function rewindFeed(
  ledger: AccountLedger,
  feed: string,
  startBoundMs: number,
): Promise<void> {
  await ledger.run('rewind-feed', feed, Math.floor(startBoundMs))
}

/** Pauses a feed for all replicas; `pause` undefined resumes it. */
export async function pauseFeed(
  ledger: AccountLedger,
  feed: string,
  pause: FeedState['paused'],
): Promise<void> {
  const name = ledger.key('feed', feed)
  if (pause === undefined) await ledger.redis.hdel(name, 'paused')
  else await ledger.redis.hset(name, 'paused', JSON.stringify(pause))
}

/** Counts a failure of a feed's tail or of its rescans; the next page that is taken in ends it. */
export async function noteFeedTrouble(
  ledger: AccountLedger,
  feed: string,
  kind: 'feed' | 'rescan',
  { reason, answer, waitMs }: Pick<Trouble, 'reason' | 'answer'> & { waitMs: number | undefined },
): Promise<void> {
  const field = kind === 'feed' ? 'trouble' : 'rescan_trouble'
  const kept = answer.slice(0, maxTroubleAnswer)
  const wait = waitMs === undefined ? '' : Math.max(0, Math.round(waitMs))
  await ledger.run('note-trouble', feed, field, reason, kept, wait)
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
    aheadMs: number('ahead'),
    aheadAtMs: number('ahead_at'),
    lastSuccessMs: number('success'),
    lastCaughtUpMs: number('caught_up'),
    isBackfilling: fields['backfill'] === '1',
    isEnded: fields['ended'] === '1',
    whole: parseRescanState('whole_', fields),
    recent: parseRescanState('recent_', fields),
    long: parseRescanState('long_', fields),
    rescans: {
      snapshotId: fields['snapshot_of'],
      rungMs: parseRungTimes(fields),
      matched: parseJson(fields['matched']),
      perWeek: number('per_week'),
      firstPollMs: number('first_poll'),
    },
    unreadable: parseJson(fields['unreadable']),
    paused: parseJson(fields['paused']),
    trouble: parseJson(fields['trouble']),
    rescanTrouble: parseJson(fields['rescan_trouble']),
  }
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

/** An item that was set aside because it does not parse as an event. */
export interface QuarantineEntry {
  /** 24 hex characters. */
  id: string
  account: string
  feed: string
  atMs: number
  problem: string
  uid: string | null
  /** Canonical JSON, secrets masked. Hostile text. */
  raw: string
}

interface StoredEntry {
  feed: string
  at: number
  problem: string
  uid?: string
  raw: string
}

/**
 * Reads an open entry by its id: of an item with a uid, that of its record. It closes once an event with
 * the uid can be read.
 */
export async function readQuarantined(
  ledger: AccountLedger,
  id: string,
): Promise<QuarantineEntry | undefined> {
  const [entry] = parseEntry(ledger, id, await ledger.redis.hget(ledger.key('quarantine'), id))
  return entry
}

/** Counts open entries by the feed that set them aside, at most 250 in all; a feed without any is left out. */
export async function countQuarantined(ledger: AccountLedger): Promise<Record<string, number>> {
  const counts = Object.create(null) as Record<string, number> // inherits no names
  for (const { feed } of await readOpenPlaces(ledger)) counts[feed] = (counts[feed] ?? 0) + 1
  return counts
}

const readAtOnce = 50

/** Every open entry, newest first; at most 250. */
export async function listQuarantined(ledger: AccountLedger): Promise<QuarantineEntry[]> {
  const ids = (await readOpenPlaces(ledger)).map(({ id }) => id)
  const entries: QuarantineEntry[] = []
  for (let at = 0; at < ids.length; at += readAtOnce) {
    const batch = ids.slice(at, at + readAtOnce)
    const texts = await ledger.redis.hmget(ledger.key('quarantine'), ...batch)
    entries.push(...batch.flatMap((id, place) => parseEntry(ledger, id, texts[place] ?? null)))
  }
  return entries
}

/** Open entries, the newest first; those older than `retention.history` may still be stored. */
async function readOpenPlaces(ledger: AccountLedger): Promise<{ id: string; feed: string }[]> {
  const oldestMs = (await redisNow(ledger)) - ledger.retention.history
  const members = await ledger.redis.zrevrangebyscore(
    ledger.key('quarantine-ages'),
    '+inf',
    `(${oldestMs}`,
  )
  return members.map((member) => {
    const [id = '', feed = ''] = member.split(' ')
    return { id, feed }
  })
}

/** Empty if the entry was closed meanwhile. */
function parseEntry(
  { account }: AccountLedger,
  id: string,
  text: string | null,
): QuarantineEntry[] {
  if (text === null) return []
  const { feed, at, problem, uid = null, raw } = JSON.parse(text) as StoredEntry
  return [{ id, account, feed, atMs: at, problem, uid, raw }]
}

/** Closes an entry; its fingerprint stays, so it is not reported again. Returns whether it was open. */
export async function closeQuarantined(
  ledger: AccountLedger,
  { id, feed }: Pick<QuarantineEntry, 'id' | 'feed'>,
): Promise<boolean> {
  const closing = ledger.redis
    .multi()
    .hdel(ledger.key('quarantine'), id)
    .zrem(ledger.key('quarantine-ages'), `${id} ${feed}`)
  const [[error, closed] = []] = (await closing.exec()) ?? []
  if (error) throw error
  return closed === 1
}
