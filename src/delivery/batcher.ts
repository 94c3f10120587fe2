/** Seals what a sink has collected into batches: at most `max` items and `maxBytes` each. */
import { peekCollection, sealBatch, type Collected } from '../ledger/collecting.ts'
import type { Book } from '../ledger/book.ts'
import type { Payload } from '../ledger/records.ts'
import type { Sink } from '../sinks/sink.ts'

export type FlushOutcome =
  | { next: 'done'; batches: string[] }
  | { next: 'later'; atMs: number; batches: string[] }

/** What a sink collected before its configuration lost `batch` goes one by one. */
const single = { max: 1, waitMs: 0, maxBytes: 0 }

/** Seals every batch that is full or has waited long enough; says when to look again. */
export async function flushOnce(book: Book, sink: Sink, nowMs: number): Promise<FlushOutcome> {
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
    const refs = fitting(sink, waiting, batch.maxBytes)
    const sealing = { sink: sink.name, destination: destination.id, waitMs: batch.waitMs }
    const sealed = await sealBatch(book, sealing, refs)
    if (sealed) batches.push(sealed)
  }
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
