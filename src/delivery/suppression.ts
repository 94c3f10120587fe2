/** Freezes what a sink has collected into batches: at most `batch.max` items and `batch.maxBytes` each. */
import type { Gate, Verdict } from '../grouping/flush-context.ts'
import { judgedOf } from '../grouping/group-flush.ts'
import { heldPlace } from '../grouping/placement.ts'
import type { Sink } from '../sinks/sink.ts'
import type { Book } from '../store/account-ledger.ts'
import { keepBack, type Kept } from '../store/pending-items.ts'
import { type FoundItem, type Payload, readItems, type Suppression } from '../store/records.ts'
import {
  advanceClaims,
  type Claim,
  type Collected,
  freezeBatch,
  type Holder,
  type Message,
  peekCollection,
} from './claims.ts'

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

/** Keeps from being sent what a rule keeps just now, or for good: judged before the first attempt, and only then. */

export interface Judging {
  /** undefined: nothing is kept back. */
  gate?: Gate | undefined
  onSuppressed?: ((sink: string, severity: string, reason: Suppression) => void) | undefined
}

/** The messages that go. What was tried before may have been accepted, and batches were judged before. */
export async function withoutKeptBack(
  judging: Judging,
  { book, sink }: { book: Book; sink: Sink },
  messages: readonly Message[],
): Promise<Message[]> {
  const fresh = messages.filter(({ kind, attempts }) => kind === 'item' && attempts === 0)
  const refs = fresh.map(({ ref }) => ref)
  const kept = new Set(await keepSome(judging, { book, sink }, refs))
  return messages.filter(({ ref }) => !kept.has(ref))
}

/** Out of the collection from which a sink's batches are made; says how many were kept back. */
async function keepOutOfBatch(
  judging: Judging,
  { book, sink }: { book: Book; sink: Sink },
  refs: readonly string[],
): Promise<number> {
  const kept = await keepSome(judging, { book, sink, isCollection: true }, refs)
  return kept.length
}

interface Place {
  book: Book
  sink: Sink
  isCollection?: boolean
}

/** Those that do not go: what was not waiting any more does not either. */
async function keepSome(
  { gate, onSuppressed }: Judging,
  { book, sink, isCollection }: Place,
  refs: readonly string[],
): Promise<string[]> {
  if (!gate || refs.length === 0 || gate.isIdleFor(sink.name)) return []
  const found = await readItems(book, refs)
  const verdicts = await gate.judge(book, found.map(judgedOf))
  const kept = found.flatMap((item, i) => describeKept(sink, item, verdicts[i]) ?? [])
  if (kept.length === 0) return []
  const members = kept.map(({ member }) => member)
  const done = new Set(await keepBack(book, members, isCollection ? sink.name : undefined))
  for (const { member, severity } of kept) {
    const isDone = done.has(member.ref) && member.act === 'suppress'
    if (isDone) onSuppressed?.(sink.name, severity, member.reason)
  }
  return members.map(({ ref }) => ref)
}

function describeKept(
  sink: Sink,
  { ref, item: { severity, destination } }: FoundItem,
  verdict: Verdict | undefined,
): { member: Kept; severity: string } | undefined {
  if (!verdict || verdict.act === 'send') return undefined
  if (verdict.act === 'suppress') return { member: { ref, ...verdict }, severity }
  const untilMs = Math.floor(verdict.untilMs)
  const place = sink.type === 'webhook' ? undefined : heldPlace(destination, verdict.rule, untilMs)
  return { member: { ref, ...verdict, untilMs, place }, severity }
}
