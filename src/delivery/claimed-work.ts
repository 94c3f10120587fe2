/** What was claimed: picks the messages to send, freezes batches, and starts what sends nothing. */
import { settleMembers } from '../grouping/freeze.ts'
import type { Sink } from '../sinks/sink.ts'
import { type AccountLedger, parseRef } from '../store/account-ledger.ts'
import { type ItemChange, releaseDetail, type SinkBatchWaits } from '../store/pending-items.ts'
import type { AttemptOptions } from './send/attempt.ts'
import type { Claim, Message } from './claims.ts'
import { freezeBatches, type FreezeOptions, selectSendable } from './sendable.ts'

export interface ClaimedWorkOptions
  extends FreezeOptions, Pick<AttemptOptions, 'findLedger' | 'rerouter' | 'standing'> {
  /** By configured sink: how long its batch waits. */
  batchWaits: SinkBatchWaits
  /** Announces the items that were released from their wait for a full event. */
  release: (account: string, made: ItemChange[]) => void
}

interface ClaimedWork {
  ledger: AccountLedger
  sink: Sink
  claims: readonly Claim[]
  /** Most messages that may be made of what waits in a batch. */
  max: number
  /** Runs work beside the caller. */
  addChore: (work: Promise<unknown> | undefined) => void
  /** Something may be due. */
  nudge: () => void
}

/**
 * Picks messages to send and handles other claims. `unknown`: what only a newer configuration may have
 * a destination for; `againInMs`: when a batch's rest is due.
 */
export async function selectMessages(
  options: ClaimedWorkOptions,
  { ledger, sink, claims, max, addChore, nudge }: ClaimedWork,
): Promise<{ messages: Message[]; unknown: Message[]; againInMs: number }> {
  const { findLedger, rerouter, standing } = options
  const isForMachines = sink.audience === 'machines'
  const messages: Message[] = []
  let againInMs = Infinity
  for (const claim of claims) {
    if (claim.kind === 'detail') addChore(releaseWithoutDetail(options, ledger, claim.ref))
    else if (claim.kind === 'settling') {
      addChore(settleMembers(ledger, claim.ref, claim.batch, findLedger))
    } else if (claim.kind === 'unfreezing' || (claim.kind === 'summary' && isForMachines)) {
      // a summary was frozen while the sink was one for people: machines get each event
      addChore(rerouter.unfreeze(ledger, claim.ref).then(nudge))
    } else if (claim.kind !== 'collection') messages.push(claim)
    else {
      const few = Math.min(max, sink.concurrency) // frozen ones wait until all are frozen
      const { frozen, restInMs } = await freezeBatches(options, { ledger, sink, claim, max: few })
      messages.push(...frozen)
      againInMs = Math.min(againInMs, restInMs)
    }
  }
  const destinations = new Set(sink.destinations.map(({ id }) => id))
  const isUnknown = ({ destination }: Message): boolean =>
    !standing.isNewest && !destinations.has(destination)
  const known = messages.filter((message) => !isUnknown(message))
  const sendable = await selectSendable(options, { ledger, sink }, known)
  return { messages: sendable, unknown: messages.filter(isUnknown), againInMs }
}

/** The wait for the full event is over: all items of the record go on without it. */
async function releaseWithoutDetail(
  { batchWaits, release }: ClaimedWorkOptions,
  ledger: AccountLedger,
  ref: string,
): Promise<void> {
  const parsed = parseRef(ref)
  if (parsed.kind !== 'item') return
  const full = { detail: 'unavailable' } as const
  release(ledger.account, await releaseDetail(ledger, parsed.recordId, batchWaits, full))
}
