/**
 * Runs the consistency check of the ledger every 15 minutes, on one replica at a time and in small
 * steps, so that nothing else has to wait. Also the note of the last check.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { holdLease, releaseLease, runScript } from '../redis/scripts.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { type LedgerCheck, countDiscrepancies, isConsistent, checkLedgers } from './ledger-check.ts'

interface LedgerCheckScheduleOptions {
  ledgers: readonly AccountLedger[]
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  /** Only the active configuration has every account whose items a message may contain. */
  isActive: () => boolean
}

export interface LedgerCheckSchedule {
  /** Runs the check, if it is due, to its end. Throws what Redis throws. */
  checkOnce(signal: AbortSignal, alive: () => void): Promise<void>
}

/** From the end of one check to the beginning of the next. */
export const ledgerCheckEveryMs = 15 * 60_000

/**
 * Settled records per account that one check compares with the index; the next one goes on from
 * there.
 */
const maxSettled = 10_000

/** Between two steps of some hundred records. */
const pauseMs = 5

export function createLedgerCheckSchedule(
  options: LedgerCheckScheduleOptions,
): LedgerCheckSchedule {
  const { ledgers, redis, keys, clock, isActive } = options
  const holder = randomUUID()

  /** Resolves with undefined if it was broken off. */
  async function runCheck(
    { settledToMs = {} }: Partial<LedgerCheckNote>,
    signal: AbortSignal,
    alive: () => void,
  ): Promise<LedgerCheck[] | undefined> {
    const settledFromMs = (account: string): number => settledToMs[account] ?? 0
    const steps = checkLedgers(ledgers, { settledFromMs, maxSettled })
    for (;;) {
      const step = await steps.next()
      if (step.done) return step.value
      alive()
      if (!isActive() || !(await holdLedgerCheck(redis, keys, holder))) return undefined
      await clock.sleep(pauseMs, signal)
      if (signal.aborted) return undefined
    }
  }

  return {
    async checkOnce(signal, alive) {
      const lastNote = await readLedgerCheckNote(redis, keys)
      // a note from the future was written by a clock that was ahead: check again
      const isDue = Math.abs(clock.now() - (lastNote?.endedAtMs ?? 0)) >= ledgerCheckEveryMs
      if (!isDue || !isActive() || !(await holdLedgerCheck(redis, keys, holder))) return
      try {
        const checks = await runCheck(lastNote ?? {}, signal, alive)
        if (!checks) return
        await writeLedgerCheckNote(redis, keys, checks, clock.now())
        logResults(options, checks)
      } finally {
        await releaseLedgerCheck(redis, keys, holder)
      }
    },
  }
}

/** Findings of each kind in the log; `tocsin audit --ledger` shows more. */
const maxLogged = 20

function logResults({ logger }: LedgerCheckScheduleOptions, checks: readonly LedgerCheck[]): void {
  for (const check of checks) {
    const { account, records, unfiled, differences, stranded, dangling } = check
    if (isConsistent(check)) {
      logger.info({ account, records }, 'the ledger adds up')
      continue
    }
    const findings = {
      unfiled,
      differences,
      stranded: stranded.slice(0, maxLogged),
      dangling: dangling.slice(0, maxLogged),
    }
    logger.error({ account, records, ...findings }, 'the ledger does not add up')
  }
}

/** What the last check found, for metrics and the next check. */
interface LedgerCheckNote {
  endedAtMs: number
  records: number
  /** Number of defects by sink; '' for the index. */
  discrepancies: Record<string, number>
  /** By account: from when on, ms, the next check compares settled records. */
  settledToMs?: Record<string, number>
}

export async function writeLedgerCheckNote(
  redis: Redis,
  keys: Keys,
  checks: readonly LedgerCheck[],
  endedAtMs: number,
): Promise<void> {
  const records = checks.reduce((sum, proof) => sum + proof.records, 0)
  const discrepancies = countDiscrepancies(checks)
  const settledToMs = Object.fromEntries(
    checks.map((proof) => [proof.account, proof.settledToMs] as const).filter(([, ms]) => ms > 0),
  )
  const note: LedgerCheckNote = {
    endedAtMs: Math.floor(endedAtMs),
    records,
    discrepancies,
    settledToMs,
  }
  await runScript(redis, 'write-note', [keys.shared('proof')], [JSON.stringify(note)])
}

/** What the last check found; undefined if there was none. */
export async function readLedgerCheckNote(
  redis: Redis,
  keys: Keys,
): Promise<LedgerCheckNote | undefined> {
  const text = await redis.get(keys.shared('proof'))
  return text === null ? undefined : (JSON.parse(text) as LedgerCheckNote)
}

/** After so long without renewal another replica may run the check. */
const leaseMs = 60_000

/** Takes or renews the lease of the check; returns false if another replica holds it. */
export function holdLedgerCheck(redis: Redis, keys: Keys, holder: string): Promise<boolean> {
  return holdLease(redis, keys.shared('proving'), { holder, ms: leaseMs })
}

function releaseLedgerCheck(redis: Redis, keys: Keys, holder: string): Promise<void> {
  return releaseLease(redis, keys.shared('proving'), holder)
}
