/**
 * Applies the suppression rules right before the first attempt, and freezes a sink's waiting items
 * into batches of at most `batch.max` items and `batch.maxBytes` bytes.
 */
import type { SuppressionRules } from '../grouping/suppression-rules.ts'
import { type MemberOptions, toStoredMember } from './send/delivery-member.ts'
import { toSuppressionInput } from '../grouping/members.ts'
import { suppressedBy } from '../grouping/placement.ts'
import type { Sink } from '../sinks/sink.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { suppressItems } from '../store/pending-items.ts'
import { readItems, type Suppression } from '../store/records.ts'
import {
  advanceClaims,
  type Claim,
  type WaitingMember,
  freezeBatch,
  type Holder,
  type Message,
  peekBatch,
} from './claims.ts'

export interface FreezeOptions extends SuppressionOptions, MemberOptions {
  holder: Holder
  /** Names this process in histories. */
  replica: string
}

/** For items that joined a batch before the configuration lost `batch`: they go one by one. */
const unbatched = { max: 1, waitMs: 0, maxBytes: 0 }

/**
 * Freezes every batch that is full or has waited long enough, at most `max` of them, and claims
 * each for this process. Gives back the claim of the batch itself; it is due again in `restInMs`.
 */
export async function freezeBatches(
  options: FreezeOptions,
  request: { ledger: AccountLedger; sink: Sink; claim: Pick<Claim, 'ref' | 'rank'>; max: number },
): Promise<{ frozen: Message[]; restInMs: number }> {
  const { ledger, sink, claim, max } = request
  const { batch = unbatched } = sink
  const [destination] = sink.destinations
  const frozen: Message[] = []
  let restInMs = 0
  while (destination && frozen.length < max) {
    const waiting = await peekBatch(ledger, sink.name, batch.max)
    const [oldest] = waiting
    if (!oldest) break
    const isFull = waiting.length >= batch.max
    restInMs = isFull ? 0 : Math.max(0, batch.waitMs - oldest.ageMs)
    if (restInMs > 0) break
    const refs = waiting.map(({ ref }) => ref)
    if ((await suppressInBatch(options, { ledger, sink }, refs)) > 0) continue
    const members = takeFitting(options, sink, waiting)
    const freezing = { sink: sink.name, destination: destination.id, members }
    const message = await freezeBatch(ledger, options.holder, freezing)
    if (!message) break
    frozen.push(message)
  }
  const back = [{ ref: claim.ref, rank: claim.rank, inMs: restInMs }]
  await advanceClaims(ledger, { ...options.holder, by: options.replica }, { giveBack: back })
  return { frozen, restInMs }
}

/** What stands around the members of a message. */
const frameBytes = 256

/** Returns the longest run from the start that fits into a batch; at least one member. */
function takeFitting(
  options: MemberOptions,
  sink: Sink,
  waiting: readonly WaitingMember[],
): WaitingMember[] {
  const { maxBytes } = sink.batch ?? unbatched
  let bytes = frameBytes
  const fitting: WaitingMember[] = []
  for (const member of waiting) {
    // as it will be sent: what the configuration says of an event counts, too
    const made = member.found && toStoredMember(sink, member.found, options)
    bytes += made === undefined ? 0 : (sink.measure?.(made) ?? 0) + 1 // a comma
    if (fitting.length > 0 && bytes > maxBytes) break
    fitting.push({ ...member, made })
  }
  return fitting
}

export interface SuppressionOptions {
  /** undefined: nothing is suppressed. */
  rules?: SuppressionRules | undefined
  onSuppressed?: ((sink: string, severity: string, reason: Suppression) => void) | undefined
}

/**
 * Returns the messages to send. Suppression applies only to items that were never attempted. An
 * attempted one may have been accepted, and batch members were checked when the batch was frozen.
 */
export async function selectSendable(
  options: SuppressionOptions,
  { ledger, sink }: { ledger: AccountLedger; sink: Sink },
  messages: readonly Message[],
): Promise<Message[]> {
  const fresh = messages.filter(({ kind, attempts }) => kind === 'item' && attempts === 0)
  const refs = fresh.map(({ ref }) => ref)
  const suppressed = new Set(await suppressByRules(options, { ledger, sink }, refs))
  return messages.filter(({ ref }) => !suppressed.has(ref))
}

/** Suppresses items of a sink's waiting batch; returns how many. */
async function suppressInBatch(
  options: SuppressionOptions,
  { ledger, sink }: { ledger: AccountLedger; sink: Sink },
  refs: readonly string[],
): Promise<number> {
  const suppressed = await suppressByRules(options, { ledger, sink, isBatch: true }, refs)
  return suppressed.length
}

interface ItemSource {
  ledger: AccountLedger
  sink: Sink
  isBatch?: boolean
}

/** Returns the references that must not be sent, including those that no longer wait. */
async function suppressByRules(
  { rules, onSuppressed }: SuppressionOptions,
  { ledger, sink, isBatch }: ItemSource,
  refs: readonly string[],
): Promise<string[]> {
  if (!rules || refs.length === 0 || rules.allowsAll(sink.name)) return []
  const found = await readItems(ledger, refs)
  const verdicts = await rules.decide(ledger, found.map(toSuppressionInput))
  const suppressed = found.flatMap(({ ref, item }, i) => {
    const verdict = verdicts[i] ?? { act: 'send' }
    if (verdict.act === 'send') return []
    return { ...suppressedBy({ ref, destination: item.destination }, verdict), item }
  })
  if (suppressed.length === 0) return []
  const done = new Set(await suppressItems(ledger, suppressed, isBatch ? sink.name : undefined))
  for (const one of suppressed) {
    if (one.act === 'suppress' && done.has(one.ref))
      onSuppressed?.(sink.name, one.item.severity, one.reason)
  }
  return suppressed.map(({ ref }) => ref)
}
