/** Seals what a sink has collected into batches: at most `max` items and `maxBytes` each. */
import { keepBack, peekCollection, sealBatch, type Collected } from '../ledger/collecting.ts'
import type { Book } from '../ledger/book.ts'
import type { Gate } from '../digest/gate.ts'
import { judgedOf } from '../digest/read-members.ts'
import { readItems, type Payload, type Suppression } from '../ledger/records.ts'
import type { Sink } from '../sinks/sink.ts'

export type FlushOutcome =
  | { next: 'done'; batches: string[] }
  | { next: 'later'; atMs: number; batches: string[] }

/** What a sink collected before its configuration lost `batch` goes one by one. */
const single = { max: 1, waitMs: 0, maxBytes: 0 }

export interface FlushOptions {
  nowMs: number
  /** Judges what is about to enter a batch; undefined: nothing is kept back. */
  gate?: Gate | undefined
  onSuppressed?: ((sink: string, severity: string, reason: Suppression) => void) | undefined
}

/** Seals every batch that is full or has waited long enough; says when to look again. */
export async function flushOnce(
  book: Book,
  sink: Sink,
  options: FlushOptions,
): Promise<FlushOutcome> {
  const { nowMs } = options
  const { batch = single } = sink
  const [destination] = sink.destinations
  const batches: string[] = []
  if (!destination) return { next: 'done', batches }
  for (;;) {
    const waiting = await peekCollection(book, sink.name, batch.max)
    const [oldest] = waiting
    if (!oldest) return { next: 'done', batches }
    const dueAtMs = oldest.sinceMs + batch.waitMs
    if (waiting.length < batch.max && dueAtMs > nowMs) {
      return { next: 'later', atMs: dueAtMs, batches }
    }
    if ((await keptOut(book, sink, waiting, options)) > 0) continue
    const refs = fitting(sink, waiting, batch.maxBytes)
    const sealing = { sink: sink.name, destination: destination.id, waitMs: batch.waitMs }
    const sealed = await sealBatch(book, sealing, refs)
    if (sealed) batches.push(sealed)
  }
}

/** Takes out what a rule keeps from being sent; how many that were. */
async function keptOut(
  book: Book,
  sink: Sink,
  waiting: Collected[],
  { gate, onSuppressed }: FlushOptions,
): Promise<number> {
  if (!gate || gate.isIdleFor(sink.name)) return 0
  const found = await readItems(
    book,
    waiting.map(({ ref }) => ref),
  )
  const verdicts = await gate.judge(book, found.map(judgedOf))
  const members = found.flatMap(({ ref, item }, i) => {
    const verdict = verdicts[i]
    if (!verdict || verdict.act === 'send') return []
    if (verdict.act === 'suppress') onSuppressed?.(sink.name, item.severity, verdict.reason)
    return [{ ref, ...verdict }]
  })
  return members.length === 0 ? 0 : keepBack(book, members, sink.name)
}

/** The longest run from the start that stays within the size; never less than one. */
function fitting(sink: Sink, waiting: Collected[], maxBytes: number): string[] {
  let bytes = 0
  const refs: string[] = []
  for (const { ref, payload } of waiting) {
    bytes += payload ? sizeOf(sink, payload) : 0
    if (refs.length > 0 && bytes > maxBytes) break
    refs.push(ref)
  }
  return refs
}

function sizeOf(sink: Sink, payload: Payload): number {
  const member = { id: '', account: '', feed: '', labels: {}, routes: [], ...payload }
  return sink.measure?.(member) ?? 0
}
