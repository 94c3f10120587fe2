/**
 * Audits feeds on the schedule of their configuration, with API slots that polls leave over. One
 * replica at a time audits a feed; an audit that was interrupted begins again. Also the notes of
 * the last audit of each feed.
 */
import { randomUUID } from 'node:crypto'
import type { PolledFeed } from '../feed-types/feed-type.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { holdLease, releaseLease } from '../redis/scripts.ts'
import { peekFeed } from '../store/feed-state.ts'
import { readTrimmedUntilMs } from '../store/records.ts'
import { UpstreamError } from '../upstream/error.ts'
import { auditFeed, type AuditOptions } from './audit-feed.ts'
import { AuditError, type AuditResult, auditWindow, type AuditWindow } from './pages.ts'

interface AuditScheduleOptions {
  feeds: readonly PolledFeed[]
  optionsFor: (feed: PolledFeed) => AuditOptions
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  isActive: () => boolean
  /** Whether Redis has room: an audit whose notes cannot be written would begin again and again. */
  hasRoom: () => Promise<boolean>
}

export interface AuditSchedule {
  /** Audits a feed that is due, to its end. Throws what Redis throws. */
  auditOnce(signal: AbortSignal, alive: () => void): Promise<void>
}

/** Pause after a failed audit, ms; doubles with each further failure, up to a day. */
const retryMs = 10 * 60_000
const maxRetryMs = 86_400_000

/** How often a wait for the API reports the loop alive and renews the lease. */
const keepAliveMs = 15_000

export function createAuditSchedule(options: AuditScheduleOptions): AuditSchedule {
  const { redis, keys, clock, logger, isActive, hasRoom } = options
  const holder = randomUUID()

  /** Resolves with false if there is nothing to compare yet. */
  async function audit(
    feed: PolledFeed,
    signal: AbortSignal,
    alive: () => Promise<boolean>,
  ): Promise<boolean> {
    const auditOptions = options.optionsFor(feed)
    const { ledger } = auditOptions
    const state = await peekFeed(ledger, feed.name, clock.now())
    const retained = { ...ledger, trimmedUntilMs: await readTrimmedUntilMs(ledger) }
    const window = auditWindow(retained, feed, state, feed.audit?.backMs ?? 0)
    if (typeof window === 'string' || state?.paused) return false
    const steps = auditFeed(auditOptions, feed, window, { kind: 'rescan', signal })
    for (;;) {
      const step = await keepAliveDuring(clock, steps.next(), alive)
      if (step.done) await reportResult(feed, step.value)
      if (step.done || !(await alive())) return true
    }
  }

  async function reportResult({ name }: PolledFeed, result: AuditResult): Promise<void> {
    const note = toAuditNote(result, clock.now())
    await writeAuditNote(redis, keys, name, note)
    const uids = result.missing.slice(0, 20).map(({ uid }) => uid)
    if (note.missing === 0) logger.info({ feed: name, ...note }, 'audit ended')
    else logger.error({ feed: name, ...note, uids }, 'an audit found events that are missing')
  }

  return {
    async auditOnce(signal, alive) {
      for (const feed of isActive() && (await hasRoom()) ? await dueFeeds(options) : []) {
        if (signal.aborted) return
        alive() // thousands may be due and have nothing to compare yet
        const lease = { feed: feed.name, holder }
        if (!(await holdAudit(redis, keys, lease))) continue
        try {
          const isOurs = async (): Promise<boolean> => {
            alive()
            return isActive() && holdAudit(redis, keys, lease)
          }
          if (await audit(feed, signal, isOurs)) return
        } catch (error) {
          if (!signal.aborted) await reportFailure(options, feed, error)
        } finally {
          await releaseAudit(redis, keys, lease)
        }
      }
    },
  }
}

async function reportFailure(
  { redis, keys, clock, logger }: AuditScheduleOptions,
  { name }: PolledFeed,
  error: unknown,
): Promise<void> {
  if (!(error instanceof UpstreamError || error instanceof AuditError)) throw error
  const { count } = (await readFailures(redis, keys))[name] ?? { count: 0 }
  await noteFailure(redis, keys, name, { count: count + 1, lastMs: clock.now() })
  const about = { cause: error.reason, list: 'feeds', name } as const
  logger.repeated.warn({ feed: name, err: error }, 'audit failed', about)
}

async function dueFeeds({
  feeds,
  redis,
  keys,
  clock,
}: AuditScheduleOptions): Promise<PolledFeed[]> {
  const [notes, failures] = [await readAuditNotes(redis, keys), await readFailures(redis, keys)]
  const nowMs = clock.now()
  return feeds.filter(({ name, audit }) => {
    if (!audit) return false
    const { count, lastMs } = failures[name] ?? { count: 0, lastMs: 0 }
    const pauseMs = count === 0 ? 0 : Math.min(maxRetryMs, retryMs * 2 ** (count - 1))
    const endedAtMs = notes[name]?.endedAtMs ?? 0
    return hasPassed(lastMs, pauseMs, nowMs) && hasPassed(endedAtMs, audit.everyMs, nowMs)
  })
}

/** Whether so long has passed; true also for a time after now, written by a clock that was ahead. */
function hasPassed(sinceMs: number, durationMs: number, nowMs: number): boolean {
  return sinceMs > nowMs || nowMs >= sinceMs + durationMs
}

async function keepAliveDuring<T>(
  clock: Clock,
  running: Promise<T>,
  alive: () => Promise<boolean>,
): Promise<T> {
  const ending = new AbortController()
  const ended = running.finally(() => ending.abort())
  ended.catch(() => undefined)
  for (;;) {
    await Promise.race([ended.catch(() => undefined), clock.sleep(keepAliveMs, ending.signal)])
    if (ending.signal.aborted) break
    await alive()
  }
  return ended
}

/** What the last audit of a feed found, for metrics and self-alerts: its window, and counts. */
interface AuditNote {
  endedAtMs: number
  fromMs: number
  toMs: number
  shown: number
  missing: number
  awaited: number
  extra: number
}

/**
 * Writes the note of an audit that was asked for. A note of a longer window with missing events is
 * not replaced by that of a shorter one: only a repair lowers its count.
 */
export async function recordAudit(
  redis: Redis,
  keys: Keys,
  result: AuditResult,
  repaired = 0,
): Promise<void> {
  const before = (await readAuditNotes(redis, keys))[result.feed]
  const fresh = toAuditNote(result, systemClock.now())
  const isShorter = before && windowLengthMs(before) > windowLengthMs(fresh) + windowToleranceMs
  if (!isShorter || before.missing === 0) return writeAuditNote(redis, keys, result.feed, fresh)
  if (repaired === 0) return
  const missing = Math.max(0, before.missing - repaired)
  await writeAuditNote(redis, keys, result.feed, { ...before, missing })
}

/** Windows of the same length differ by when the feed was last read. */
const windowToleranceMs = 3_600_000

function windowLengthMs({ fromMs, toMs }: AuditWindow): number {
  return toMs - fromMs
}

function toAuditNote(result: AuditResult, endedAtMs: number): AuditNote {
  const { fromMs, toMs, shown, missing, awaited, extra, malformed } = result
  return {
    endedAtMs: Math.floor(endedAtMs),
    fromMs: Math.floor(fromMs),
    toMs: Math.floor(toMs),
    shown,
    missing: missing.length + malformed.length,
    awaited: awaited.length,
    extra: extra.length,
  }
}

async function writeAuditNote(
  redis: Redis,
  keys: Keys,
  feed: string,
  note: AuditNote,
): Promise<void> {
  await redis.hset(keys.shared('audits'), feed, JSON.stringify(note))
  await redis.hdel(keys.shared('audit-failures'), feed)
}

/** Reads the notes by feed; feeds that were never audited are left out. */
export async function readAuditNotes(redis: Redis, keys: Keys): Promise<Record<string, AuditNote>> {
  const stored = await redis.hgetall(keys.shared('audits'))
  return Object.fromEntries(
    Object.entries(stored).map(([feed, text]) => [feed, JSON.parse(text) as AuditNote]),
  )
}

/** Failures in a row since an audit of the feed last ended. */
interface AuditFailures {
  count: number
  lastMs: number
}

async function noteFailure(
  redis: Redis,
  keys: Keys,
  feed: string,
  failures: AuditFailures,
): Promise<void> {
  await redis.hset(keys.shared('audit-failures'), feed, JSON.stringify(failures))
}

async function readFailures(redis: Redis, keys: Keys): Promise<Record<string, AuditFailures>> {
  const stored = await redis.hgetall(keys.shared('audit-failures'))
  return Object.fromEntries(
    Object.entries(stored).map(([feed, text]) => [feed, JSON.parse(text) as AuditFailures]),
  )
}

/** After so long without renewal another replica may audit the feed. */
const leaseMs = 120_000

interface Lease {
  feed: string
  holder: string
}

/** Takes or renews the lease of a feed's audit; returns false if another replica holds it. */
function holdAudit(redis: Redis, keys: Keys, { feed, holder }: Lease): Promise<boolean> {
  return holdLease(redis, keys.shared('auditing', feed), { holder, ms: leaseMs })
}

function releaseAudit(redis: Redis, keys: Keys, { feed, holder }: Lease): Promise<void> {
  return releaseLease(redis, keys.shared('auditing', feed), holder)
}
