/** Claims as tests of the ledger need them: of one piece of work, due or not, whoever holds it. */
import { readItems } from '../../src/store/records.ts'
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import {
  advanceClaims,
  claimDue,
  freezeBatch,
  peekBatch,
  type Claim,
  type Message,
  type Outcome,
  type SettleResult,
} from '../../src/delivery/claims.ts'

export { peekBatch, type Outcome }

export type BegunAttempt =
  | { status: 'missing' | 'unfreezing' | 'settling' }
  | (Omit<Message, 'attempts'> & { status: 'send'; attempt: number })

/** Whose lease has ended, or who waits for a later time, is due at once. */
export async function makeDue(ledger: AccountLedger, ref: string): Promise<void> {
  const due = ledger.key('due', ref.split(':').at(-1) ?? '')
  const score = await ledger.redis.zscore(due, ref)
  if (score !== null && Number(score) > Date.now()) await ledger.redis.zadd(due, 1, ref)
}

/** Claims it as `owner`. */
export async function claimRef(
  ledger: AccountLedger,
  ref: string,
  owner: string,
  leaseMs = 10_000,
): Promise<Claim | undefined> {
  await makeDue(ledger, ref)
  const sink = ref.split(':').at(-1) ?? ''
  const { claims } = await claimDue(ledger, { owner, leaseMs }, { sink, max: 1, leastRank: 1, ref })
  return claims[0]
}

/** Claims it and opens an attempt, as a process of its own would. */
export async function beginAttempt(
  ledger: AccountLedger,
  ref: string,
  token: string,
  leaseMs: number,
): Promise<BegunAttempt> {
  const owner = token.replaceAll(' ', '-')
  const claim = await claimRef(ledger, ref, owner, leaseMs)
  if (!claim || claim.kind === 'detail' || claim.kind === 'collection') return { status: 'missing' }
  if (claim.kind === 'unfreezing' || claim.kind === 'settling') return { status: claim.kind }
  const { begun } = await advanceClaims(
    ledger,
    { owner, leaseMs, by: owner },
    { begin: [{ ref, token }] },
  )
  const { attempts: _before, ...message } = claim
  return begun[0] ? { status: 'send', ...message, ...begun[0] } : { status: 'missing' }
}

export async function settleAttempt(
  ledger: AccountLedger,
  { ref, token, replica }: { ref: string; token: string; replica: string },
  outcome: Outcome,
): Promise<SettleResult> {
  const holder = { owner: token.replaceAll(' ', '-'), leaseMs: 10_000, by: replica }
  const { settled } = await advanceClaims(ledger, holder, { settle: [{ ref, token, outcome }] })
  return settled[0]!
}

/** Opens one attempt, and settles it. */
export async function attemptOf(
  ledger: AccountLedger,
  ref: string,
  outcome: Outcome,
): Promise<SettleResult> {
  await beginAttempt(ledger, ref, 't', 10_000)
  return settleAttempt(ledger, { ref, token: 't', replica: 'r1' }, outcome)
}

/** Freezes members of a sink's collection, and lets go of the batch; what is left of it waits on. */
export async function sealBatch(
  ledger: AccountLedger,
  { sink, destination }: { sink: string; destination: string; waitMs?: number },
  refs: readonly string[],
): Promise<string | undefined> {
  const holder = { owner: 'freezer', leaseMs: 10_000, by: 'freezer' }
  const found = new Map((await readItems(ledger, refs)).map((item) => [item.ref, item]))
  const members = refs.map((ref) => ({ ref, ageMs: 0, found: found.get(ref) }))
  await claimRef(ledger, `c:${sink}`, holder.owner)
  const message = await freezeBatch(ledger, holder, { sink, destination, members })
  if (!message) return undefined
  await advanceClaims(ledger, holder, { giveBack: [{ ref: message.ref, rank: message.rank }] })
  return message.ref
}
