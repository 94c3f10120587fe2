/** Proves the ledger now and then, one replica at a time, in small steps: nothing else waits for it. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { holdLease, releaseLease } from '../redis/scripts.ts'
import type { Book } from '../store/account-ledger.ts'
import { createIndexWatch } from '../store/record-index.ts'
import { type BookProof, discrepanciesOf, isWhole, proveLedger } from './ledger-check.ts'

interface ProofScheduleOptions {
  books: readonly Book[]
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  /** Only the active configuration has all the accounts that messages are made of. */
  isActive: () => boolean
}

export interface ProofSchedule {
  /** Makes the proof that is due, to its end. Throws what Redis throws. */
  proveOnce(signal: AbortSignal, alive: () => void): Promise<void>
}

/** From the end of one proof to the beginning of the next, ms. */
export const proofEveryMs = 15 * 60_000

/** Settled records of an account that one proof compares with the index; the next one goes on behind them. */
const mostSettled = 10_000

/** Between two steps of some hundred records, ms. */
const pauseMs = 5

export function createProofSchedule(options: ProofScheduleOptions): ProofSchedule {
  const { books, redis, keys, clock, isActive } = options
  const holder = randomUUID()
  const index = createIndexWatch(options.logger, 'the ledger audit')

  /** undefined: broken off. */
  async function prove(
    { settledToMs = {} }: Partial<ProofNote>,
    signal: AbortSignal,
    alive: () => void,
  ): Promise<BookProof[] | undefined> {
    const settledFromMs = (account: string): number => settledToMs[account] ?? 0
    const steps = proveLedger(books, { settledFromMs, mostSettled })
    for (;;) {
      const step = await steps.next()
      if (step.done) return step.value
      alive()
      if (!isActive() || !(await holdProof(redis, keys, holder))) return undefined
      await clock.sleep(pauseMs, signal)
      if (signal.aborted) return undefined
    }
  }

  return {
    async proveOnce(signal, alive) {
      const before = await readProofNote(redis, keys)
      // one from the future was written by a clock that was ahead
      const isDue = Math.abs(clock.now() - (before?.endedAtMs ?? 0)) >= proofEveryMs
      if (!isDue || !isActive() || !(await holdProof(redis, keys, holder))) return
      try {
        if (!(await index.isComplete(books))) return // what is not in the index yet is not missing
        const proofs = await prove(before ?? {}, signal, alive)
        if (!proofs) return
        await writeProofNote(redis, keys, proofs, clock.now())
        tell(options, proofs)
      } finally {
        await releaseProof(redis, keys, holder)
      }
    },
  }
}

/** Findings of each kind that the log names; `tocsin audit --ledger` names more. */
const logged = 20

function tell({ logger }: ProofScheduleOptions, proofs: readonly BookProof[]): void {
  for (const proof of proofs) {
    const { account, records, unfiled, differences, stranded, dangling } = proof
    if (isWhole(proof)) {
      logger.info({ account, records }, 'the ledger adds up')
      continue
    }
    const found = {
      unfiled,
      differences,
      stranded: stranded.slice(0, logged),
      dangling: dangling.slice(0, logged),
    }
    logger.error({ account, records, ...found }, 'the ledger does not add up')
  }
}

/** What the last proof of the ledger found, for metrics; and whose turn it is to make the next. */

interface ProofNote {
  endedAtMs: number
  records: number
  /** By sink: how many things are wrong with it. */
  discrepancies: Record<string, number>
  /** By account, where the next proof goes on with settled records. */
  settledToMs?: Record<string, number>
}

export async function writeProofNote(
  redis: Redis,
  keys: Keys,
  proofs: readonly BookProof[],
  endedAtMs: number,
): Promise<void> {
  const records = proofs.reduce((sum, proof) => sum + proof.records, 0)
  const discrepancies = discrepanciesOf(proofs)
  const settledToMs = Object.fromEntries(
    proofs.map((proof) => [proof.account, proof.settledToMs] as const).filter(([, ms]) => ms > 0),
  )
  const note: ProofNote = { endedAtMs: Math.floor(endedAtMs), records, discrepancies, settledToMs }
  await redis.set(keys.shared('proof'), JSON.stringify(note))
}

/** undefined: none was made yet. */
export async function readProofNote(redis: Redis, keys: Keys): Promise<ProofNote | undefined> {
  const text = await redis.get(keys.shared('proof'))
  return text === null ? undefined : (JSON.parse(text) as ProofNote)
}

/** How long a replica that no longer says so is believed to be at it, ms. */
const leaseMs = 60_000

/** Whether this replica may make the proof, or goes on with it. */
export function holdProof(redis: Redis, keys: Keys, holder: string): Promise<boolean> {
  return holdLease(redis, keys.shared('proving'), { holder, ms: leaseMs })
}

function releaseProof(redis: Redis, keys: Keys, holder: string): Promise<void> {
  return releaseLease(redis, keys.shared('proving'), holder)
}
