import type { Book } from '../ledger/book.ts'
import { readPayloads, scanRecords, type LedgerRecord } from '../ledger/records.ts'
import { clocksDifferMs } from '../ledger/trimmed.ts'
import type { AuditWindow, Extra } from './finding.ts'

interface Searched extends AuditWindow {
  feed: string
  /** What was taken in since then may stand behind the place that the audit had read. */
  begunMs: number
}

const atOnce = 200

/**
 * Events of the window that the ledger has from the feed and the service did not show, as far back as payloads
 * are kept: nothing is settled before it was created. People may have ignored them, or the service took them back.
 */
export async function findExtra(
  book: Book,
  searched: Searched,
  shown: ReadonlySet<string>,
): Promise<Extra[]> {
  const extra = new Map<string, Extra>()
  let waiting: LedgerRecord[] = []
  const sift = async (): Promise<void> => {
    for (const one of await withinWindow(book, searched, waiting)) extra.set(one.uid, one)
    waiting = []
  }
  for await (const record of scanRecords(book, searched.fromMs - clocksDifferMs)) {
    if (shown.has(record.uid) || record.firstSeenMs >= searched.begunMs) continue
    if (!record.sightings.some(({ feed }) => feed === searched.feed)) continue
    waiting.push(record)
    if (waiting.length >= atOnce) await sift()
  }
  await sift()
  return [...extra.values()].toSorted((left, right) => left.firstSeenMs - right.firstSeenMs)
}

async function withinWindow(
  book: Book,
  { fromMs, toMs }: Searched,
  records: readonly LedgerRecord[],
): Promise<Extra[]> {
  const payloads = await readPayloads(
    book,
    records.map(({ recordId }) => recordId),
  )
  return records.flatMap(({ uid, firstSeenMs, closed }, at) => {
    const createdAtMs = payloads[at]?.event.createdAtMs ?? Number.NaN
    return createdAtMs >= fromMs && createdAtMs <= toMs ? [{ uid, firstSeenMs, closed }] : []
  })
}
