/**
 * Retention: drops settled records older than `retention.history`, and keeps records, payloads and
 * the quarantine within `retention.max_bytes`. Accounts above their fair share lose their oldest
 * settled records, each with all that is kept of it; pending records are never dropped. One replica
 * at a time works in small steps, and the cost of a pass is bounded, however much is kept.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Redis } from '../redis/connection.ts'
import { inspectRedis, readMasterInfo } from '../redis/health.ts'
import type { Keys } from '../redis/keys.ts'
import { holdLease, releaseLease, runScript } from '../redis/scripts.ts'
import { trimActs } from './acts.ts'
import type { AccountStore } from './record-index.ts'

interface RetainedAccount extends AccountStore {
  readonly horizonMs: number
  readonly retention: { history: number }
}

interface TrimCounts {
  histories: number
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
  /** Only replicas with the active configuration drop anything: it says how much may be kept. */
  isActive: () => boolean
  onTrimmed: (trimmed: TrimCounts) => void
}

export interface Retention {
  /** Makes one pass if it is due; `alive` is called between steps. Throws what Redis throws. */
  retainOnce(signal: AbortSignal, alive: () => void): Promise<void>
}

/** Between two steps, ms. */
const pauseMs = 5

/** After so long without renewal another replica takes over. */
const leaseMs = 60_000

export function createRetention(options: RetentionOptions): Retention {
  const { redis, keys, clock, isActive } = options
  const lease = keys.shared('walking')
  const holder = randomUUID()
  const hold = (): Promise<boolean> => holdLease(redis, lease, { holder, ms: leaseMs })
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
        await runPass(options, mayContinue)
      } finally {
        await releaseLease(redis, lease, holder)
      }
    },
  }
}

/** What the last pass found; undefined if there was none. */
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
  const historyMs = Math.max(...ledgers.map(({ retention }) => retention.history))
  if (ledgers.length > 0) await trimActs(options, clock.now() - historyMs)
  for (const ledger of ledgers) {
    if (!(await dropSettled(options, ledger, { wantedBytes: 0, mayGoOn: mayContinue }))) return
    const weights = await weigh(ledger, mayContinue)
    if (!weights || !(await mayContinue())) return // a step for each, however little it keeps
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
    oldestMs: await findOldestMs(ledgers),
  }
  await runScript(redis, 'write-note', [keys.shared('keeping')], [JSON.stringify(note)])
}

/** When the first of all settled records that are kept was settled; undefined: none is kept. */
async function findOldestMs(ledgers: readonly RetainedAccount[]): Promise<number | undefined> {
  let oldestMs = Infinity
  for (const { redis, key } of ledgers) {
    const range = ['(0', '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES'] as const
    const [, settledMs = Infinity] = await redis.zrange(key('records'), ...range)
    oldestMs = Math.min(oldestMs, Number(settledMs))
  }
  return oldestMs === Infinity ? undefined : oldestMs
}

/** Records weighed at most: of the settled ones, and of the pending ones. */
const maxWeighed = 1_000
/** Records that one script call weighs. */
const pageLength = 200

/**
 * Estimates the bytes of an account from an even sample, in the order of the index. undefined:
 * broken off.
 */
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

/** Resolves with the bytes that are left of all accounts; undefined: broken off. */
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
    const { histories, payloads, quarantined, lastMs } = dropped
    const settledUntil = new Date(lastMs).toISOString()
    const sum = { histories, payloads, quarantined, settledUntil, bytes: leftBytes }
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
  /** When the last dropped record was settled. */
  lastMs: number
}

/** The reply of trim-records. `more`: 1 if a further step may drop more. */
type TrimStep = [
  histories: number,
  payloads: number,
  quarantined: number,
  bytes: number,
  lastMs: number,
  more: number,
]

/**
 * Drops records beyond `retention.history`, then the oldest settled ones until `wantedBytes` are
 * free. undefined: broken off.
 */
async function dropSettled(
  { onTrimmed }: RetentionOptions,
  { run, retention, horizonMs }: RetainedAccount,
  { wantedBytes, mayGoOn: mayContinue }: { wantedBytes: number; mayGoOn: MayContinue },
): Promise<DropResult | undefined> {
  const sum: DropResult = { histories: 0, payloads: 0, quarantined: 0, bytes: 0, lastMs: 0 }
  for (;;) {
    const args = [retention.history, horizonMs, wantedBytes - sum.bytes]
    const answer = (await run('trim-records', ...args)) as TrimStep
    const [histories, payloads, quarantined, bytes, lastMs, more] = answer
    onTrimmed({ histories, payloads, quarantined })
    sum.histories += histories
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

/**
 * Warns if `max_bytes` is more than half of Redis' memory. Above 70 % no feed is polled, and
 * fingerprints, jobs and pending items need the rest.
 */
async function warnOfMemory({ redis, maxBytes, logger }: RetentionOptions): Promise<void> {
  const { memoryLimitBytes: maxmemory } = await inspectRedis(redis)
  if (isWithinMemory(maxBytes, maxmemory)) return
  const { problem, remedy } = excessiveRetention
  logger.warn({ maxBytes, maxmemory }, `${problem}: ${remedy}`)
}

export function isWithinMemory(maxBytes: number, memoryLimitBytes: number | undefined): boolean {
  return maxBytes <= (memoryLimitBytes ?? Infinity) / 2
}

export const excessiveRetention = {
  problem: 'retention.max_bytes is more than half of what Redis may use (maxmemory)',
  remedy: 'lower it, or give Redis more',
}

/** What an account takes: bytes that cannot be dropped, and bytes that can. */
export interface Weights {
  unsettledBytes: number
  settledBytes: number
}

export function totalBytes({ unsettledBytes, settledBytes }: Weights): number {
  return unsettledBytes + settledBytes
}

/** A trimmed account is left with this part of its share, so that not every pass has to trim. */
const trimTargetShare = 0.9

/** How many bytes an account has to drop, at most its settled ones; 0 if it fits into its share. */
export function excessBytes(weights: Weights, shareBytes: number): number {
  const bytes = totalBytes(weights)
  if (bytes <= shareBytes) return 0
  return Math.min(weights.settledBytes, Math.ceil(bytes - trimTargetShare * shareBytes))
}

/**
 * How much each account may keep once all of them together exceed `maxBytes`: an equal share, and
 * what smaller ones leave over goes to the larger ones. Bytes that cannot be dropped count against
 * the account's own share; an account that exceeds its share with them takes nobody else below the
 * equal share. Needs at least one account.
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

/** Halvings of the range that holds the share; so many make it exact to less than a byte. */
const shareSteps = 60

const shortestPauseMs = 60_000
const longestPauseMs = 3_600_000

/**
 * Time until records are weighed again, ms: half of the time in which the limit would be reached at
 * the growth since the last pass.
 */
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

/** Growth below this share of the limit counts as none: jobs come and go. */
const noiseShare = 0.01

/** What a pass found, stored for metrics and the next pass. */
export interface RetentionNote {
  endedAtMs: number
  /** What records, payloads and the quarantine take after the pass. */
  bytes: number
  /** The limit at that time. */
  maxBytes: number
  /** What Redis used for everything before the pass, less what it dropped. */
  usedBytes: number
  /** When the next pass is due at the latest. */
  dueAtMs: number
  /** When the oldest settled record was settled that the pass left; undefined: there is none. */
  oldestMs?: number | undefined
}

/**
 * Whether records are to be weighed again: the time has come, the limit was lowered, or Redis has
 * grown by more than there was room for.
 */
export function isPassDue(
  { dueAtMs, bytes, maxBytes, usedBytes }: RetentionNote,
  current: { nowMs: number; maxBytes: number; usedBytes: number },
): boolean {
  const waitMs = dueAtMs - current.nowMs
  if (waitMs <= 0 || waitMs > longestPauseMs) return true // the clock was set back
  if (maxBytes !== current.maxBytes && bytes > current.maxBytes) return true
  const roomBytes = Math.max(current.maxBytes - bytes, noiseShare * current.maxBytes)
  return current.usedBytes - usedBytes > roomBytes
}
