/** What waits for somebody: held items and quarantined ones, account after account, of each the newest first. */
import type { AccountLedger } from '../../store/account-ledger.ts'
import { type LedgerItem, readQuarantine, recordItems } from '../../store/items.ts'
import { scanRecordsBefore } from '../../store/records.ts'
import { badCursor } from '../listing.ts'

export const waitingStates = ['quarantined', 'held'] as const

export interface WaitingSearch {
  state: (typeof waitingStates)[number]
  isWanted: (item: LedgerItem) => boolean
  /** What has waited since before is left out, ms; an event waits since its first item began to. */
  fromMs: number
  /** Items; a record that has more by itself is shown whole. */
  limit: number
  /** Records and entries that are read. */
  readAtMost: number
}

export interface WaitingPage {
  items: LedgerItem[]
  /** Goes on behind this page; undefined: nothing is behind it. */
  next: string | undefined
  /** How far back was looked, ms, where that ended the page. */
  scannedToMs: number | undefined
}

/** Of one time by id. */
interface Place {
  account: string
  sinceMs: number
  id: string
}

/**
 * Lists a page of what waits; the cursor survives what comes and goes meanwhile. A record of which an older
 * item ends between two pages moves before the cursor, and is on neither. Throws PageError.
 */
export async function listWaiting(
  ledgers: readonly AccountLedger[],
  search: WaitingSearch,
  cursor?: string,
): Promise<WaitingPage> {
  const items: LedgerItem[] = []
  let last = cursor === undefined ? undefined : parsePlace(cursor)
  let read = 0
  for await (const { place, found } of walk(ledgers, search, last)) {
    const isFull = items.length > 0 && items.length + found.length > search.limit
    const isRead = read === search.readAtMost
    if (last && (isFull || isRead)) {
      return { items, next: formatPlace(last), scannedToMs: isRead ? last.sinceMs : undefined }
    }
    items.push(...found)
    last = place
    read += 1
  }
  return { items, next: undefined, scannedToMs: undefined }
}

/** The newest of what waits in any account; `hasMore`: there may be others. */
export async function listNewestWaiting(
  ledgers: readonly AccountLedger[],
  search: WaitingSearch,
): Promise<{ items: LedgerItem[]; hasMore: boolean }> {
  const share = Math.ceil(search.readAtMost / Math.max(1, ledgers.length))
  const pages: WaitingPage[] = []
  for (const ledger of ledgers) {
    pages.push(await listWaiting([ledger], { ...search, readAtMost: share }))
  }
  const items = pages.flatMap((page) => page.items).toSorted(newestFirst)
  const hasMore = items.length > search.limit || pages.some(({ next }) => next !== undefined)
  return { items: items.slice(0, search.limit), hasMore }
}

export function newestFirst(one: LedgerItem, other: LedgerItem): number {
  return other.sinceMs - one.sinceMs
}

interface Waiting {
  place: Place
  found: LedgerItem[]
}

async function* walk(
  ledgers: readonly AccountLedger[],
  { state, isWanted, fromMs, readAtMost }: WaitingSearch,
  start: Place | undefined,
): AsyncGenerator<Waiting> {
  const walkOne = state === 'held' ? walkHeld : walkQuarantine
  for (const ledger of ledgers.toSorted((one, other) => (one.account < other.account ? -1 : 1))) {
    if (start && ledger.account < start.account) continue
    const behind = start?.account === ledger.account ? start : undefined
    for await (const { place, found } of walkOne(ledger, behind?.sinceMs, readAtMost + 1)) {
      if (place.sinceMs < fromMs) break
      if (!behind || isBehind(place, behind)) yield { place, found: found.filter(isWanted) }
    }
  }
}

async function* walkHeld(
  ledger: AccountLedger,
  beforeMs: number | undefined,
  atMost: number,
): AsyncGenerator<Waiting> {
  const { account } = ledger
  const from = { isPending: true, beforeMs, atMost }
  for await (const { record, sinceMs } of scanRecordsBefore(ledger, from)) {
    const found = recordItems(ledger, record).filter(({ state }) => state === 'held')
    yield { place: { account, sinceMs, id: record.recordId }, found }
  }
}

/** They are a thousand at most. */
async function* walkQuarantine(ledger: AccountLedger): AsyncGenerator<Waiting> {
  const { account } = ledger
  const entries = (await readQuarantine(ledger)).map((item) => {
    return { place: { account, sinceMs: item.sinceMs, id: item.ref }, found: [item] }
  })
  yield* entries.toSorted((one, other) => (isBehind(one.place, other.place) ? 1 : -1))
}

function isBehind(one: Place, other: Place): boolean {
  return one.sinceMs === other.sinceMs ? one.id > other.id : one.sinceMs < other.sinceMs
}

function formatPlace({ account, sinceMs, id }: Place): string {
  return `${sinceMs}.${id}.${account}`
}

function parsePlace(cursor: string): Place {
  const [, sinceMs, id, account] = /^(\d{1,15})\.([0-9a-f]{24})\.(.+)$/u.exec(cursor) ?? []
  if (id === undefined || account === undefined) throw badCursor()
  return { account, sinceMs: Number(sinceMs), id }
}
