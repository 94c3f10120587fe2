/** Keeps from being sent what a rule keeps just now, or for good: judged before the first attempt, and only then. */
import { heldPlace } from '../digest/placement.ts'
import type { Gate, Verdict } from '../digest/gate.ts'
import { judgedOf } from '../digest/read-members.ts'
import type { Book } from '../ledger/book.ts'
import { keepBack, type Kept } from '../ledger/collecting.ts'
import { readItems, type FoundItem, type Suppression } from '../ledger/records.ts'
import type { Sink } from '../sinks/sink.ts'
import type { Message } from './claims.ts'

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
export async function keepOutOfBatch(
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
  const all = await readItems(book, refs)
  const found = all.filter(({ payload, item }) => isCollection || (payload && item.attempts === 0))
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
