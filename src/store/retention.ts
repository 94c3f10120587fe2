/**
 * Retention: drops settled records older than `retention.history`, and keeps records and payloads
 * within `retention.max_bytes`. Accounts above their fair share lose their oldest settled records,
 * each with all that is kept of it; pending records are never dropped. One replica at a time works
 * in small steps, and the cost of a pass is bounded, however much is kept.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Redis } from '../redis/client.ts'
import type { Keys } from '../redis/keys.ts'
import { holdLease, releaseLease, runScript } from '../redis/scripts.ts'
import { trimActs } from './history/acts.ts'
import type { AccountStore } from './record-index.ts'

interface RetainedAccount extends AccountStore {
  readonly retention: { history: number }
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
  /** Told how many events were dropped to make room. */
  onTrimmed: (events: number) => void
}

export interface Retention {
  /** Makes one pass if it is due; `alive` is called between steps. Throws what Redis throws. */
  retainOnce(signal: AbortSignal, alive: () => void): Promise<void>
}

/** What a pass found, stored for metrics and the next pass. */
interface RetentionNote {
  endedAtMs: number
  /** What records and payloads take after the pass. */
  bytes: number
  /** When the oldest settled record was settled that the pass left; undefined: there is none. */
  oldestMs?: number | undefined
}

/** Between two passes. */
const everyMs = 15 * 60_000

/** Between two steps, ms. */
const pauseMs = 5

/** After so long without renewal another replica takes over. */
const leaseMs = 60_000

export function createRetention(options: RetentionOptions): Retention {
  const { redis, keys, clock, isActive } = options
  const lease = keys.shared('walking')
  const holder = randomUUID()
  const hold = (): Promise<boolean> => holdLease(redis, lease, { holder, ms: leaseMs })

  return {
    async retainOnce(signal, alive) {
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

async function isDue({ redis, keys, clock }: RetentionOptions): Promise<boolean> {
  const note = await readRetentionNote(redis, keys)
  return !note || Math.abs(clock.now() - note.endedAtMs) >= everyMs
}

type MayContinue = () => Promise<boolean>

interface WeighedLedger {
  ledger: RetainedAccount
  bytes: number
}

async function runPass(options: RetentionOptions, mayContinue: MayContinue): Promise<void> {
  const { ledgers, maxBytes, redis, keys, clock, logger } = options
  const historyMs = Math.max(...ledgers.map(({ retention }) => retention.history))
  if (ledgers.length > 0) await trimActs(options, clock.now() - historyMs)
  const weighed: WeighedLedger[] = []
  for (const ledger of ledgers) {
    if (!(await dropSettled(options, ledger, { wantedBytes: 0, mayContinue }))) return
    const bytes = await weigh(ledger, mayContinue)
    if (bytes === undefined || !(await mayContinue())) return // a step for each, however little it keeps
    weighed.push({ ledger, bytes })
  }
  const bytes = await trim(options, weighed, mayContinue)
  if (bytes === undefined) return
  if (bytes > maxBytes) {
    const message = 'more than retention.max_bytes is not settled: nothing else can go'
    logger.warn({ bytes, maxBytes }, message)
  }
  const note: RetentionNote = {
    endedAtMs: clock.now(),
    bytes,
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

/** Records weighed at most, and those that one script call weighs. */
const [maxWeighed, pageLength] = [1_000, 200]

/**
 * Estimates the bytes of an account from an even sample, in the order of the index. undefined:
 * broken off.
 */
async function weigh(
  { redis, key, run }: RetainedAccount,
  mayContinue: MayContinue,
): Promise<number | undefined> {
  const total = await redis.zcard(key('records'))
  const count = Math.min(total, maxWeighed)
  const places = Array.from({ length: count }, (_none, i) =>
    Math.floor(((i + 0.5) * total) / count),
  )
  let bytes = 0
  for (let done = 0; done < count; done += pageLength) {
    bytes += Number(await run('weigh-records', ...places.slice(done, done + pageLength)))
    if (!(await mayContinue())) return undefined
  }
  return count === 0 ? 0 : Math.round((bytes / count) * total)
}

/** A trimmed account is left with this part of its share, so that not every pass has to trim. */
const trimTargetShare = 0.9

/** Resolves with the bytes that are left of all accounts; undefined: broken off. */
async function trim(
  options: RetentionOptions,
  weighed: readonly WeighedLedger[],
  mayContinue: MayContinue,
): Promise<number | undefined> {
  const sizes = weighed.map(({ bytes }) => bytes)
  const shareBytes = fairShareBytes(sizes, options.maxBytes)
  let left = sizes.reduce((sum, bytes) => sum + bytes, 0)
  for (const { ledger, bytes } of weighed) {
    if (bytes <= shareBytes) continue
    const wantedBytes = Math.ceil(bytes - trimTargetShare * shareBytes)
    const dropped = await dropSettled(options, ledger, { wantedBytes, mayContinue })
    if (!dropped) return undefined
    left -= dropped.bytes
    if (dropped.bytes === 0) continue
    const { events, lastMs } = dropped
    options.logger.info(
      {
        account: ledger.account,
        events,
        settledUntil: new Date(lastMs).toISOString(),
        bytes: bytes - dropped.bytes,
        shareBytes: Math.floor(shareBytes),
      },
      'the oldest settled events were dropped',
    )
  }
  return left
}

/**
 * How much each account may keep: Infinity while all of them fit, else an equal share. What smaller
 * ones leave over goes to the larger ones. Bytes that cannot be dropped count as the account's own,
 * and take nothing from the share of another.
 */
export function fairShareBytes(sizes: readonly number[], maxBytes: number): number {
  let leftBytes = maxBytes
  const ascending = sizes.toSorted((one, other) => one - other)
  for (const [place, bytes] of ascending.entries()) {
    const shareBytes = leftBytes / (ascending.length - place)
    if (bytes > shareBytes) return shareBytes
    leftBytes -= bytes
  }
  return Infinity
}

interface DropResult {
  events: number
  bytes: number
  /** When the last dropped record was settled. */
  lastMs: number
}

/** The reply of trim-records. `more`: 1 if a further step may drop more. */
type TrimStep = [events: number, bytes: number, lastMs: number, more: number]

/**
 * Drops records beyond `retention.history`, then the oldest settled ones until `wantedBytes` are
 * free. undefined: broken off.
 */
async function dropSettled(
  { onTrimmed }: RetentionOptions,
  { run, retention }: RetainedAccount,
  { wantedBytes, mayContinue }: { wantedBytes: number; mayContinue: MayContinue },
): Promise<DropResult | undefined> {
  const sum: DropResult = { events: 0, bytes: 0, lastMs: 0 }
  for (;;) {
    const args = [retention.history, wantedBytes - sum.bytes]
    const [events, bytes, lastMs, more] = (await run('trim-records', ...args)) as TrimStep
    onTrimmed(events)
    sum.events += events
    sum.bytes += bytes
    sum.lastMs = Math.max(sum.lastMs, lastMs)
    if (more === 0) return sum
    if (!(await mayContinue())) return undefined
  }
}
