/** The two walks over the records of a book: one weighs them, one drops those that are too old. */
import type { Book } from '../ledger/book.ts'
import { scanRecordIds } from '../ledger/records.ts'
import { addSettled, type Weights } from './cutoff.ts'

/** Records that one script looks at: it stops everybody else meanwhile. */
const pageLength = 200

async function* pagesOf(book: Book): AsyncGenerator<string[]> {
  for await (const ids of scanRecordIds(book)) {
    for (let at = 0; at < ids.length; at += pageLength) yield ids.slice(at, at + pageLength)
  }
}

/** Adds what the book keeps to the weights; yields after each page, so that the caller may pause. */
export async function* weighBook(book: Book, weights: Weights): AsyncGenerator<void> {
  for await (const ids of pagesOf(book)) {
    const answer = (await book.run('weigh-records', ...ids)) as number[]
    for (let at = 0; at < answer.length; at += 2) {
      const [settledAtMs = -1, bytes = 0] = answer.slice(at, at + 2)
      if (settledAtMs < 0) weights.unsettledBytes += bytes
      else addSettled(weights, settledAtMs, bytes)
    }
    yield
  }
  const entries = (await book.run('weigh-quarantine')) as number[]
  for (let at = 0; at < entries.length; at += 2) {
    addSettled(weights, entries[at] ?? 0, entries[at + 1] ?? 0)
  }
}

export interface Trimmed {
  stories: number
  payloads: number
  /** Entries of the quarantine. */
  quarantined: number
}

/** Drops what was settled, or set aside, before then; yields what each page dropped. */
export async function* trimBook(book: Book, beforeMs: number): AsyncGenerator<Trimmed> {
  for await (const ids of pagesOf(book)) {
    const asked = [Math.floor(beforeMs), book.horizonMs, ...ids]
    const answer = await book.run('trim-records', ...asked)
    const [stories, payloads] = answer as [number, number]
    yield { stories, payloads, quarantined: 0 }
  }
  for (let quarantined = 1; quarantined > 0;) {
    quarantined = Number(await book.run('trim-quarantine', Math.floor(beforeMs)))
    if (quarantined > 0) yield { stories: 0, payloads: 0, quarantined }
  }
}
