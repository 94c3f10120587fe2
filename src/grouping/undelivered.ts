/** What a digest says of items by themselves: those that could not be delivered to its destination. */
import { eventPath, type PageAddress } from '../messages/page-links.ts'
import { compareForDigest, type Undelivered } from '../messages/summary.ts'
import { type AccountLedger, parseRef } from '../store/account-ledger.ts'
import { type Item, type LedgerRecord, readRecords } from '../store/records.ts'

export interface UndeliveredWindow {
  sink: string
  destination: string
  fromMs: number
  toMs: number
  /** A reader must be told the account. */
  namesAccounts: boolean
}

/** Dead letters of an account that are read and counted, the newest. */
const maxRead = 5_000

/** Records per Redis reply. */
export const readAtOnce = 100

const maxNamed = 5

/** Counts the dead letters that are still open, and names the worst. */
export async function readUndelivered(
  ledgers: readonly AccountLedger[],
  window: UndeliveredWindow,
  pageAddress: PageAddress,
): Promise<{ total: number; worst: Undelivered[] }> {
  const found: RecordItem[] = []
  for (const ledger of ledgers) {
    const refs = await ledger.redis.zrange(
      ledger.key('dead', window.sink),
      window.toMs,
      `(${window.fromMs}`,
      'BYSCORE',
      'REV',
    )
    found.push(...(await readItemsOf(ledger, refs.slice(0, maxRead), window.destination)))
  }
  const worst = found.toSorted((a, b) => compareForDigest(toPart(a), toPart(b))).slice(0, maxNamed)
  return {
    total: found.length,
    worst: worst.map((letter) => describe(letter, window, pageAddress)),
  }
}

interface RecordItem {
  record: LedgerRecord
  item: Item
}

/** Reads the items of a destination without their payloads; those that are gone are left out. */
export async function readItemsOf(
  ledger: AccountLedger,
  refs: readonly string[],
  destination: string,
): Promise<RecordItem[]> {
  const found: RecordItem[] = []
  for (let from = 0; from < refs.length; from += readAtOnce) {
    const items = refs.slice(from, from + readAtOnce).flatMap((ref) => {
      const parsed = parseRef(ref)
      return parsed.kind === 'item' ? [parsed] : []
    })
    const ids = [...new Set(items.map(({ recordId }) => recordId))]
    const records = await readRecords(ledger, ids)
    const byId = new Map(records.map((record) => [record.recordId, record]))
    for (const { recordId, index } of items) {
      const record = byId.get(recordId)
      const item = record?.items[index]
      if (record && item?.destination === destination) found.push({ record, item })
    }
  }
  return found
}

function toPart({ item }: RecordItem): Parameters<typeof compareForDigest>[0] {
  return { severity: item.severity, identifiers: [], createdAtMs: item.createdAtMs }
}

function describe(
  { record, item: { severity } }: RecordItem,
  { namesAccounts }: UndeliveredWindow,
  pageAddress: PageAddress,
): Undelivered {
  const { account, type, uid, title } = record
  const pageUrl = pageAddress(eventPath(record))
  return {
    severity,
    type,
    uid,
    ...(namesAccounts && { account }),
    ...(title !== undefined && { title }),
    ...(pageUrl !== undefined && { pageUrl }),
  }
}
