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
import { readMasterInfo } from '../redis/health.ts'
import type { Keys } from '../redis/keys.ts'
import { holdLease, releaseLease } from '../redis/scripts.ts'
import { type AccountStore, createIndexWatch } from './record-index.ts'

interface RetainedAccount extends AccountStore {
  readonly horizonMs: number
  readonly retention: { story: number }
}

interface TrimCounts {
  stories: number
  payloads: number
  /** Entries of the quarantine. */
  quarantined: number
}

export interface RetentionOptions {
  ledgers: readonly RetainedAccount[]
  maxBytes: number
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  /** Only the active configuration says how much may be kept. */
  isActive: () => boolean
  onTrimmed: (trimmed: TrimCounts) => void
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
      const mayContinue = async (): Promise<boolean> => {
        alive()
        await clock.sleep(pauseMs, signal)
        return !signal.aborted && isActive() && hold()
      }
      try {
        // what is not in the index would weigh nothing
        if (await index.isComplete(options.ledgers)) await runPass(options, mayContinue)
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
  const usedBytes = await readUsedBytes(redis)
  return !note || isPassDue(note, { nowMs: clock.now(), maxBytes, usedBytes })
}

type MayContinue = () => Promise<boolean>

interface WeighedLedger {
  ledger: RetainedAccount
  weights: Weights
}

async function runPass(options: RetentionOptions, mayContinue: MayContinue): Promise<void> {
  const { ledgers, maxBytes, redis, keys, clock } = options
  const before = await readRetentionNote(redis, keys)
  const usedBefore = await readUsedBytes(redis)
  const weighed: WeighedLedger[] = []
  for (const ledger of ledgers) {
    if (!(await dropSettled(options, ledger, { wantedBytes: 0, mayGoOn: mayContinue }))) return
    const weights = await weigh(ledger, mayContinue)
    if (!weights) return
    weighed.push({ ledger, weights })
  }
  const weighedBytes = weighed.reduce((sum, { weights }) => sum + totalBytes(weights), 0)
  const bytes = weighedBytes > maxBytes ? await trim(options, weighed, mayContinue) : weighedBytes
  if (bytes === undefined) return
  const nowMs = clock.now()
  const growth = before && { bytes: weighedBytes - before.bytes, inMs: nowMs - before.endedAtMs }
  const note: RetentionNote = {
    endedAtMs: nowMs,
    bytes,
    maxBytes,
    usedBytes: usedBefore - (weighedBytes - bytes),
    dueAtMs: Math.floor(nowMs + nextPauseMs(bytes, maxBytes, growth)),
  }
  await redis.set(keys.shared('keeping'), JSON.stringify(note))
}

/** So many records are weighed at most of those that are settled, and of the others; and by one script. */
const maxWeighed = 1_000
const pageLength = 200

/** Of an account with more, an even sample in the order of the index is weighed. undefined: broken off. */
async function weigh(
  { redis, key, run }: RetainedAccount,
  mayContinue: MayContinue,
): Promise<Weights | undefined> {
  const total = await redis.zcard(key('records'))
  const pending = await redis.zcount(key('records'), '-inf', '(0')
  let isBrokenOff = false

  async function weighPart(from: number, to: number): Promise<number> {
    const weighed = Math.min(to - from, maxWeighed)
    let bytes = 0
    for (let done = 0; done < weighed && !isBrokenOff; done += pageLength) {
      const places = Array.from({ length: Math.min(pageLength, weighed - done) }, (_none, i) =>
        Math.floor(from + ((done + i + 0.5) * (to - from)) / weighed),
      )
      bytes += Number(await run('weigh-records', ...places))
      isBrokenOff = !(await mayContinue())
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
  weighed: readonly WeighedLedger[],
  mayContinue: MayContinue,
): Promise<number | undefined> {
  const { maxBytes, logger } = options
  const all = weighed.map(({ weights }) => weights)
  const shareBytes = fairShareBytes(all, maxBytes)
  let bytes = 0
  for (const { ledger, weights } of weighed) {
    const wantedBytes = excessBytes(weights, shareBytes)
    const dropped =
      wantedBytes > 0 && (await dropSettled(options, ledger, { wantedBytes, mayGoOn: mayContinue }))
    if (dropped === undefined) return undefined
    const leftBytes = totalBytes(weights) - (dropped ? dropped.bytes : 0)
    bytes += leftBytes
    if (!dropped) continue
    const { stories, payloads, quarantined, lastMs } = dropped
    const settledUntil = new Date(lastMs).toISOString()
    const sum = { stories, payloads, quarantined, settledUntil, bytes: leftBytes }
    logger.info(
      { account: ledger.account, ...sum, shareBytes: Math.floor(shareBytes) },
      'the oldest settled events were dropped',
    )
  }
  if (bytes > maxBytes) {
    const message = 'more than retention.max_bytes is not settled: nothing else can go'
    logger.warn({ bytes, maxBytes }, message)
  }
  return bytes
}

interface DropResult extends TrimCounts {
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
async function dropSettled(
  { onTrimmed }: RetentionOptions,
  { run, retention, horizonMs }: RetainedAccount,
  { wantedBytes, mayGoOn: mayContinue }: { wantedBytes: number; mayGoOn: MayContinue },
): Promise<DropResult | undefined> {
  const sum: DropResult = { stories: 0, payloads: 0, quarantined: 0, bytes: 0, lastMs: 0 }
  for (;;) {
    const args = [retention.story, horizonMs, wantedBytes - sum.bytes]
    const answer = (await run('trim-records', ...args)) as TrimStep
    const [stories, payloads, quarantined, bytes, lastMs, more] = answer
    onTrimmed({ stories, payloads, quarantined })
    sum.stories += stories
    sum.payloads += payloads
    sum.quarantined += quarantined
    sum.bytes += bytes
    sum.lastMs = Math.max(sum.lastMs, lastMs)
    if (more === 0) return sum
    if (!(await mayContinue())) return undefined
  }
}

async function readUsedBytes(redis: Redis): Promise<number> {
  const nodes = await readMasterInfo(redis)
  return nodes.reduce((sum, node) => sum + Number(node.field('used_memory') ?? 0), 0)
}

/** Beyond 70 % of its memory nothing is polled: half of it leaves room for marks, jobs and what waits. */
async function warnOfMemory({ redis, maxBytes, logger }: RetentionOptions): Promise<void> {
  const nodes = await readMasterInfo(redis)
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

export function totalBytes({ unsettledBytes, settledBytes }: Weights): number {
  return unsettledBytes + settledBytes
}

/** So much of its share is left of an account that was trimmed, so that not every pass has to trim. */
const trimTargetShare = 0.9

/** How many bytes an account gives up; 0: it fits as it is. What is not settled never goes. */
export function excessBytes(weights: Weights, shareBytes: number): number {
  const bytes = totalBytes(weights)
  if (bytes <= shareBytes) return 0
  return Math.min(weights.settledBytes, Math.ceil(bytes - trimTargetShare * shareBytes))
}

/**
 * How much each account may keep once all of them together exceed `maxBytes`: an equal share, and what the
 * smaller ones leave over goes to the larger ones. What an account has not settled counts against its own share;
 * beyond it, it is nobody else's loss. There is at least one.
 */
export function fairShareBytes(accounts: readonly Weights[], maxBytes: number): number {
  const sizes = accounts.map((weights) => {
    return { bytes: totalBytes(weights), leastBytes: weights.unsettledBytes }
  })
  let shareBytes = maxBytes / sizes.length
  let tooMuchBytes = Math.max(shareBytes, ...sizes.map(({ bytes }) => bytes))
  for (let step = 0; step < shareSteps; step += 1) {
    const betweenBytes = (shareBytes + tooMuchBytes) / 2
    const sizesKept = sizes.map(({ bytes, leastBytes }) => {
      return Math.max(leastBytes, Math.min(bytes, betweenBytes))
    })
    if (sizesKept.reduce((sum, bytes) => sum + bytes, 0) <= maxBytes) shareBytes = betweenBytes
    else tooMuchBytes = betweenBytes
  }
  return shareBytes
}

/** Halvings of the range in which the share lies: then it is exact to less than a byte. */
const shareSteps = 60

const shortestPauseMs = 60_000
const longestPauseMs = 3_600_000

/** Until records are weighed again: half of the time in which it would be full, as it has grown since the last one. */
export function nextPauseMs(
  bytes: number,
  maxBytes: number,
  growth: { bytes: number; inMs: number } | undefined,
): number {
  if (!growth) return shortestPauseMs
  const bytesPerMs = Math.max(0, growth.bytes) / Math.max(1, growth.inMs)
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
  current: { nowMs: number; maxBytes: number; usedBytes: number },
): boolean {
  const waitMs = dueAtMs - current.nowMs
  if (waitMs <= 0 || waitMs > longestPauseMs) return true // written by a clock that was ahead
  if (maxBytes !== current.maxBytes && bytes > current.maxBytes) return true
  const roomBytes = Math.max(current.maxBytes - bytes, noiseShare * current.maxBytes)
  return current.usedBytes - usedBytes > roomBytes
}
