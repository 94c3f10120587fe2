/** What a silence would have kept back of what came lately. */
import type { Book } from '../ledger/book.ts'
import { readPayload, scanRecords, type LedgerRecord } from '../ledger/records.ts'
import { findSilence, type Silence } from '../routing/silences.ts'
import { isIndexed } from '../store/record-index.ts'
import type { Context } from './context.ts'
import type { OpenLedger } from './open-ledger.ts'

/** Both null: more is kept than is worth a look, or not all of it is in the index yet. */
export interface MatchedLately {
  events: number | null
  matching: number | null
}

/** Reading so many records takes seconds, and the daemon shares Redis. */
const maxRecords = 20_000

const dayMs = 24 * 3_600_000

/** Of the last 24 h before `nowMs`; what is no longer kept in full is not counted as matching. */
export async function matchedLately(
  { terminal }: Context,
  ledger: OpenLedger,
  { silence, nowMs }: { silence: Silence; nowMs: number },
): Promise<MatchedLately> {
  const indexed = await Promise.all(ledger.books.map(isIndexed))
  if (!indexed.every(Boolean)) return { events: null, matching: null }
  const sinceMs = nowMs - dayMs
  let [read, events, matching] = [0, 0, 0]
  for (const book of ledger.books) {
    for await (const record of scanRecords(book, sinceMs)) {
      read += 1
      if (read > maxRecords) return { events: null, matching: null }
      if (read % 1_000 === 0) terminal.progress(`${read} events looked at`)
      if (record.firstSeenMs < sinceMs) continue
      events += 1
      if (await isMatch(book, record, silence)) matching += 1
    }
  }
  terminal.progress('')
  return { events, matching }
}

async function isMatch(book: Book, record: LedgerRecord, silence: Silence): Promise<boolean> {
  const { account, recordId, sightings } = record
  const payload = await readPayload(book, recordId)
  if (!payload) return false
  return sightings.some(({ feed, labels, severity }) => {
    const input = { event: { ...payload.event, severity }, account, feed, labels }
    return findSilence([silence], input, silence.startsAtMs) !== undefined
  })
}
