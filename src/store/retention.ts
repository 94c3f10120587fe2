/**
 * Ends what `retention.story` has ended, and keeps records, payloads and the quarantine within
 * `retention.max_bytes`: of the accounts above their fair share the oldest settled ones go first, each with
 * all that is kept of it; what is not settled never goes. One replica at a time, in small steps; what one
 * pass costs is bounded, however much is kept.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Redis } from '../redis/connection.ts'
import { infoOfMasters } from '../redis/health.ts'
import type { Keys } from '../redis/keys.ts'
import { holdLease, releaseLease } from '../redis/scripts.ts'
import { type AccountStore, createIndexWatch } from './record-index.ts'

interface RetainedAccount extends AccountStore {
  readonly horizonMs: number
  readonly retention: { story: number }
}

interface Trimmed {
  stories: number
  payloads: number
  /** Entries of the quarantine. */
  quarantined: number
}

export interface RetentionOptions {
  books: readonly RetainedAccount[]
  maxBytes: number
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  /** Only the active configuration says how much may be kept. */
  isActive: () => boolean
  onTrimmed: (trimmed: Trimmed) => void
}

export interface Retention {
  /** One pass, if it is time for one. Throws what Redis throws. */
  retainOnce(signal: AbortSignal, alive: () => void): Promise<void>
}

/** Between two steps, ms. */
const pauseMs = 5

/** How long a replica that no longer says so is believed to be at it, ms. */
const leaseMs = 60_000

export function createRetention(options: RetentionOptions): Retention {
  const { redis, keys, clock, isActive } = options
  const lease = keys.shared('walking')
  const holder = randomUUID()
  const hold = (): Promise<boolean> => holdLease(redis, lease, { holder, ms: leaseMs })
  const index = createIndexWatch(options.logger, 'retention')
  let hasWarned = false

  return {
    async retainOnce(signal, alive) {
      if (!hasWarned) await warnOfMemory(options)
      hasWarned = true
      if (!isActive() || !(await isDue(options)) || !(await hold())) return
      const mayGoOn = async (): Promise<boolean> => {
        alive()
        await clock.sleep(pauseMs, signal)
        return !signal.aborted && isActive() && hold()
      }
      try {
        // what is not in the index would weigh nothing
        if (await index.isComplete(options.books)) await retain(options, mayGoOn)
      } finally {
        await releaseLease(redis, lease, holder)
      }
    },
  }
}

/** undefined: there was no pass yet. */
export async function readRetentionNote(
  redis: Redis,
  keys: Keys,
): Promise<RetentionNote | undefined> {
  const text = await redis.get(keys.shared('keeping'))
  return text === null ? undefined : (JSON.parse(text) as RetentionNote)
}

async function isDue({ redis, keys, clock, maxBytes }: RetentionOptions): Promise<boolean> {
  const note = await readRetentionNote(redis, keys)
  const usedBytes = await usedBytesOf(redis)
  return !note || isPassDue(note, { nowMs: clock.now(), maxBytes, usedBytes })
}

type MayGoOn = () => Promise<boolean>

interface Weighed {
  book: RetainedAccount
  weights: Weights
}

async function retain(options: RetentionOptions, mayGoOn: MayGoOn): Promise<void> {
  const { books, maxBytes, redis, keys, clock } = options
  const before = await readRetentionNote(redis, keys)
  const usedBefore = await usedBytesOf(redis)
  const weighed: Weighed[] = []
  for (const book of books) {
    if (!(await drop(options, book, { wantedBytes: 0, mayGoOn }))) return
    const weights = await weigh(book, mayGoOn)
    if (!weights) return
    weighed.push({ book, weights })
  }
  const weighedBytes = weighed.reduce((sum, { weights }) => sum + totalOf(weights), 0)
  const bytes = weighedBytes > maxBytes ? await trim(options, weighed, mayGoOn) : weighedBytes
  if (bytes === undefined) return
  const nowMs = Math.floor(clock.now())
  const grown = before && { bytes: weighedBytes - before.bytes, inMs: nowMs - before.endedAtMs }
  const note: RetentionNote = {
    endedAtMs: nowMs,
    bytes,
    maxBytes,
    usedBytes: usedBefore - (weighedBytes - bytes),
    dueAtMs: Math.floor(nowMs + pauseOf(bytes, maxBytes, grown)),
  }
  await redis.set(keys.shared('keeping'), JSON.stringify(note))
}

/** So many records are weighed at most of those that are settled, and of the others; and by one script. */
const mostWeighed = 1_000
const pageLength = 200

/** Of an account with more, an even sample in the order of the index is weighed. undefined: broken off. */
async function weigh(
  { redis, key, run }: RetainedAccount,
  mayGoOn: MayGoOn,
): Promise<Weights | undefined> {
  const total = await redis.zcard(key('records'))
  const pending = await redis.zcount(key('records'), '-inf', '(0')
  let isBrokenOff = false

  async function weighPart(from: number, to: number): Promise<number> {
    const weighed = Math.min(to - from, mostWeighed)
    let bytes = 0
    for (let done = 0; done < weighed && !isBrokenOff; done += pageLength) {
      const places = Array.from({ length: Math.min(pageLength, weighed - done) }, (_none, i) =>
        Math.floor(from + ((done + i + 0.5) * (to - from)) / weighed),
      )
      bytes += Number(await run('weigh-records', ...places))
      isBrokenOff = !(await mayGoOn())
    }
    return weighed === 0 ? 0 : Math.round((bytes / weighed) * (to - from))
  }

  const unsettledBytes = await weighPart(0, pending)
  const settledBytes = await weighPart(pending, total)
  const quarantineBytes = Number(await run('weigh-quarantine'))
  return isBrokenOff ? undefined : { unsettledBytes, settledBytes: settledBytes + quarantineBytes }
}

/** Resolves with what is left of all accounts; undefined: broken off. */
async function trim(
  options: RetentionOptions,
  weighed: readonly Weighed[],
  mayGoOn: MayGoOn,
): Promise<number | undefined> {
  const { maxBytes, logger } = options
  const all = weighed.map(({ weights }) => weights)
  const shareBytes = fairShareOf(all, maxBytes)
  let bytes = 0
  for (const { book, weights } of weighed) {
    const wantedBytes = excessOf(weights, shareBytes)
    const dropped = wantedBytes > 0 && (await drop(options, book, { wantedBytes, mayGoOn }))
    if (dropped === undefined) return undefined
    const leftBytes = totalOf(weights) - (dropped ? dropped.bytes : 0)
    bytes += leftBytes
    if (!dropped) continue
    const { stories, payloads, quarantined, lastMs } = dropped
    const settledUntil = new Date(lastMs).toISOString()
    const sum = { stories, payloads, quarantined, settledUntil, bytes: leftBytes }
    logger.info(
      { account: book.account, ...sum, shareBytes: Math.floor(shareBytes) },
      'the oldest settled events were dropped',
    )
  }
  if (bytes > maxBytes) {
    const said = 'more than retention.max_bytes is not settled: nothing else can go'
    logger.warn({ bytes, maxBytes }, said)
  }
  return bytes
}

interface Dropped extends Trimmed {
  bytes: number
  /** When the last of them was settled. */
  lastMs: number
}

/** What one step dropped, in bytes too, when the last of it was settled, and 1 where more may go. */
type TrimStep = [
  stories: number,
  payloads: number,
  quarantined: number,
  bytes: number,
  lastMs: number,
  more: number,
]

/** Drops what retention has ended, and the oldest settled until so much is free. undefined: broken off. */
async function drop(
  { onTrimmed }: RetentionOptions,
  { run, retention, horizonMs }: RetainedAccount,
  { wantedBytes, mayGoOn }: { wantedBytes: number; mayGoOn: MayGoOn },
): Promise<Dropped | undefined> {
  const sum: Dropped = { stories: 0, payloads: 0, quarantined: 0, bytes: 0, lastMs: 0 }
  for (;;) {
    const asked = [retention.story, horizonMs, wantedBytes - sum.bytes]
    const answer = (await run('trim-records', ...asked)) as TrimStep
    const [stories, payloads, quarantined, bytes, lastMs, more] = answer
    onTrimmed({ stories, payloads, quarantined })
    sum.stories += stories
    sum.payloads += payloads
    sum.quarantined += quarantined
    sum.bytes += bytes
    sum.lastMs = Math.max(sum.lastMs, lastMs)
    if (more === 0) return sum
    if (!(await mayGoOn())) return undefined
  }
}

async function usedBytesOf(redis: Redis): Promise<number> {
  const nodes = await infoOfMasters(redis)
  return nodes.reduce((sum, node) => sum + Number(node.field('used_memory') ?? 0), 0)
}

/** Beyond 70 % of its memory nothing is polled: half of it leaves room for marks, jobs and what waits. */
async function warnOfMemory({ redis, maxBytes, logger }: RetentionOptions): Promise<void> {
  const nodes = await infoOfMasters(redis)
  const limits = nodes.map((node) => Number(node.field('maxmemory') ?? 0))
  const leastBytes = Math.min(...limits.filter((limit) => limit > 0))
  if (maxBytes <= leastBytes / 2) return
  logger.warn(
    { maxBytes, maxmemory: leastBytes },
    'retention.max_bytes is more than half of what Redis may use (maxmemory): lower it, or give Redis more',
  )
}

/** How much each account may keep of the limit, and when to weigh again (pure). */

/** What an account takes: bytes that cannot go, and bytes that can. */
export interface Weights {
  unsettledBytes: number
  settledBytes: number
}

export function totalOf({ unsettledBytes, settledBytes }: Weights): number {
  return unsettledBytes + settledBytes
}

/** So much of its share is left of an account that was trimmed, so that not every pass has to trim. */
const keptShare = 0.9

/** How many bytes an account gives up; 0: it fits as it is. What is not settled never goes. */
export function excessOf(weights: Weights, shareBytes: number): number {
  const bytes = totalOf(weights)
  if (bytes <= shareBytes) return 0
  return Math.min(weights.settledBytes, Math.ceil(bytes - keptShare * shareBytes))
}

/**
 * How much each account may keep once all of them together exceed `maxBytes`: an equal share, and what the
 * smaller ones leave over goes to the larger ones. What an account has not settled counts against its own share;
 * beyond it, it is nobody else's loss. There is at least one.
 */
export function fairShareOf(accounts: readonly Weights[], maxBytes: number): number {
  const sizes = accounts.map((weights) => {
    return { bytes: totalOf(weights), leastBytes: weights.unsettledBytes }
  })
  let shareBytes = maxBytes / sizes.length
  let tooMuchBytes = Math.max(shareBytes, ...sizes.map(({ bytes }) => bytes))
  for (let step = 0; step < shareSteps; step += 1) {
    const betweenBytes = (shareBytes + tooMuchBytes) / 2
    const kept = sizes.map(({ bytes, leastBytes }) => {
      return Math.max(leastBytes, Math.min(bytes, betweenBytes))
    })
    if (kept.reduce((sum, bytes) => sum + bytes, 0) <= maxBytes) shareBytes = betweenBytes
    else tooMuchBytes = betweenBytes
  }
  return shareBytes
}

/** Halvings of the range in which the share lies: then it is exact to less than a byte. */
const shareSteps = 60

const shortestPauseMs = 60_000
const longestPauseMs = 3_600_000

/** Until records are weighed again: half of the time in which it would be full, as it has grown since the last one. */
export function pauseOf(
  bytes: number,
  maxBytes: number,
  grown: { bytes: number; inMs: number } | undefined,
): number {
  if (!grown) return shortestPauseMs
  const bytesPerMs = Math.max(0, grown.bytes) / Math.max(1, grown.inMs)
  const fullInMs = bytesPerMs === 0 ? Infinity : Math.max(0, maxBytes - bytes) / bytesPerMs
  return Math.min(longestPauseMs, Math.max(shortestPauseMs, fullInMs / 2))
}

/** Growth that is none, as a share of the limit: jobs come and go. */
const noiseShare = 0.01

/** What the last pass found, for metrics and the next one. */
export interface RetentionNote {
  endedAtMs: number
  /** What records and payloads take, after what had to go was dropped. */
  bytes: number
  /** The limit that it kept to. */
  maxBytes: number
  /** What Redis used then for everything, less what was dropped. */
  usedBytes: number
  /** When the next pass is due at the latest. */
  dueAtMs: number
}

/** Whether records are to be weighed again: by its time, for a lower limit, or because Redis took more than was left then. */
export function isPassDue(
  { dueAtMs, bytes, maxBytes, usedBytes }: RetentionNote,
  now: { nowMs: number; maxBytes: number; usedBytes: number },
): boolean {
  const waitMs = dueAtMs - now.nowMs
  if (waitMs <= 0 || waitMs > longestPauseMs) return true // written by a clock that was ahead
  if (maxBytes !== now.maxBytes && bytes > now.maxBytes) return true
  const roomBytes = Math.max(now.maxBytes - bytes, noiseShare * now.maxBytes)
  return now.usedBytes - usedBytes > roomBytes
}
