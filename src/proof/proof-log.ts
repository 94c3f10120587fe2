/** What the last proof of the ledger found, for metrics; and whose turn it is to make the next. */
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { holdLease, releaseLease } from '../redis/lease.ts'
import { discrepanciesOf, type BookProof } from './ledger-proof.ts'

export interface ProofNote {
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

export function releaseProof(redis: Redis, keys: Keys, holder: string): Promise<void> {
  return releaseLease(redis, keys.shared('proving'), holder)
}
