/** Freezes what a sink has collected into batches: at most `batch.max` items and `batch.maxBytes` each. */
import type { Book } from '../ledger/book.ts'
import type { Payload } from '../ledger/records.ts'
import type { Sink } from '../sinks/sink.ts'
import {
  advanceClaims,
  freezeBatch,
  peekCollection,
  type Claim,
  type Collected,
  type Holder,
  type Message,
} from './claims.ts'
import { keepOutOfBatch, type Judging } from './suppression.ts'

export interface FreezeOptions extends Judging {
  holder: Holder
  /** Names this process in the histories. */
  replica: string
}

/** What a sink collected before its configuration lost `batch` goes one by one. */
const single = { max: 1, waitMs: 0, maxBytes: 0 }

/**
 * Every batch that is full or has waited long enough, at most `max`; each is claimed by who asks. The claim of the
 * collection is given back: due when the rest of it is, in `restInMs`.
 */
export async function freezeBatches(
  options: FreezeOptions,
  asked: { book: Book; sink: Sink; claim: Pick<Claim, 'ref' | 'rank'>; max: number },
): Promise<{ frozen: Message[]; restInMs: number }> {
  const { book, sink, claim, max } = asked
  const { batch = single } = sink
  const [destination] = sink.destinations
  const frozen: Message[] = []
  let restInMs = 0
  while (destination && frozen.length < max) {
    const waiting = await peekCollection(book, sink.name, batch.max)
    const [oldest] = waiting
    if (!oldest) break
    const isFull = waiting.length >= batch.max
    restInMs = isFull ? 0 : Math.max(0, batch.waitMs - oldest.ageMs)
    if (restInMs > 0) break
    const refs = waiting.map(({ ref }) => ref)
    if ((await keepOutOfBatch(options, { book, sink }, refs)) > 0) continue
    const members = fitting(sink, waiting, batch.maxBytes)
    const freezing = { sink: sink.name, destination: destination.id, members }
    const message = await freezeBatch(book, options.holder, freezing)
    if (message) frozen.push(message)
  }
  const back = [{ ref: claim.ref, rank: claim.rank, inMs: restInMs }]
  await advanceClaims(book, { ...options.holder, by: options.replica }, { back })
  return { frozen, restInMs }
}

/** The longest run from the start that stays within the size; never less than one. */
function fitting(sink: Sink, waiting: readonly Collected[], maxBytes: number): Collected[] {
  let bytes = 0
  const found: Collected[] = []
  for (const member of waiting) {
    bytes += member.payload ? sizeOf(sink, member.payload) : 0
    if (found.length > 0 && bytes > maxBytes) break
    found.push(member)
  }
  return found
}

function sizeOf(sink: Sink, payload: Payload): number {
  const member = { id: '', account: '', feed: '', labels: {}, routes: [], ...payload }
  return sink.measure?.(member) ?? 0
}
