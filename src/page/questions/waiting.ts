/** What waits for somebody: held items and quarantined ones, account after account, of each the newest first. */
import type { AccountLedger } from '../../store/account-ledger.ts'
import { readAccounting } from '../../store/accounts.ts'
import { countQuarantined } from '../../store/feed-state.ts'
import { type LedgerItem, readQuarantine, recordItems } from '../../store/items.ts'
import {
  byName,
  formatPlace,
  isBehind,
  parsePlace,
  type Place,
  recordsAtMost,
  walkRecords,
} from '../record-walk.ts'

const waitingStates = ['quarantined', 'held'] as const

type WaitingState = (typeof waitingStates)[number]

export interface WaitingSearch {
  state: WaitingState
  isWanted: (item: LedgerItem) => boolean
  /** Items; a record that has more by itself is shown whole. */
  limit: number
}

export interface WaitingPage {
  items: LedgerItem[]
  /** Goes on behind this page; undefined: nothing is behind it. */
  next: string | undefined
  /** How far back was looked, ms, where that ended the page. */
  scannedToMs: number | undefined
}

/**
 * Lists a page of what waits; the cursor survives what comes and goes meanwhile. A record of which an older
 * item ends between two pages moves before the cursor, and is on neither. Throws PageError.
 */
export async function listWaiting(
  ledgers: readonly AccountLedger[],
  { state, isWanted, limit }: WaitingSearch,
  cursor?: string,
): Promise<WaitingPage> {
  const start = cursor === undefined ? undefined : parsePlace(cursor)
  const items: LedgerItem[] = []
  let last: Place | undefined
  let read = 0
  for await (const { place, found } of walkers[state](ledgers, start)) {
    const wanted = found.filter(isWanted)
    const isFull = items.length > 0 && items.length + wanted.length > limit
    if (last && (isFull || read === recordsAtMost)) {
      return { items, next: formatPlace(last), scannedToMs: isFull ? undefined : last.sinceMs }
    }
    items.push(...wanted)
    last = place
    read += 1
  }
  return { items, next: undefined, scannedToMs: undefined }
}

interface Waiting {
  place: Place
  found: LedgerItem[]
}

const walkers = { held: walkHeld, quarantined: walkQuarantine }

async function* walkHeld(
  ledgers: readonly AccountLedger[],
  start: Place | undefined,
): AsyncGenerator<Waiting> {
  for await (const { ledger, record, place } of walkRecords(ledgers, {
    start,
    onlyPending: true,
  })) {
    yield { place, found: recordItems(ledger, record).filter(({ state }) => state === 'held') }
  }
}

/** They are 250 at most in an account. */
async function* walkQuarantine(
  ledgers: readonly AccountLedger[],
  start: Place | undefined,
): AsyncGenerator<Waiting> {
  for (const ledger of byName(ledgers)) {
    const { account } = ledger
    if (start && account < start.account) continue
    const entries = (await readQuarantine(ledger)).map((item) => {
      const place = { account, isPending: true, sinceMs: item.sinceMs, id: item.ref }
      return { place, found: [item] }
    })
    for (const one of entries.toSorted((a, b) => (isBehind(a.place, b.place) ? 1 : -1)))
      if (start?.account !== account || isBehind(one.place, start)) yield one
  }
}

/** The states in which something waits, by the counters. */
export async function findWaiting(ledgers: readonly AccountLedger[]): Promise<WaitingState[]> {
  const counts = { quarantined: 0, held: 0 }
  for (const ledger of ledgers) {
    const { sinks } = await readAccounting(ledger)
    for (const { pending } of Object.values(sinks)) counts.held += pending['held'] ?? 0
    for (const open of Object.values(await countQuarantined(ledger))) counts.quarantined += open
  }
  return waitingStates.filter((state) => counts[state] > 0)
}
