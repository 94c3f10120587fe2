/** Walks over records of several accounts, page by page: account after account, of each the newest first. */
import type { AccountLedger } from '../store/account-ledger.ts'
import { type LedgerRecord, scanRecordsBefore } from '../store/records.ts'
import { badCursor } from './listing.ts'

/** Where a page ends: of one time by id. */
export interface Place {
  account: string
  /** Among what waits, which comes before what was settled. */
  isPending: boolean
  sinceMs: number
  id: string
}

/** Records that one page looks into: some 100 ms. */
export const recordsAtMost = 1_500

export function byName(ledgers: readonly AccountLedger[]): AccountLedger[] {
  return ledgers.toSorted((one, other) => (one.account < other.account ? -1 : 1))
}

interface Walk {
  /** What comes up to it is left out; undefined: nothing is. */
  start: Place | undefined
  /** Only records that wait. */
  onlyPending?: boolean
}

interface Walked {
  ledger: AccountLedger
  record: LedgerRecord
  place: Place
}

export async function* walkRecords(
  ledgers: readonly AccountLedger[],
  { start, onlyPending = false }: Walk,
): AsyncGenerator<Walked> {
  for (const ledger of byName(ledgers)) {
    if (start && ledger.account < start.account) continue
    const behind = start?.account === ledger.account ? start : undefined
    if (behind?.isPending !== false) yield* walkPart(ledger, true, behind)
    if (!onlyPending) yield* walkPart(ledger, false, behind?.isPending ? undefined : behind)
  }
}

async function* walkPart(
  ledger: AccountLedger,
  isPending: boolean,
  behind: Place | undefined,
): AsyncGenerator<Walked> {
  const from = { isPending, beforeMs: behind?.sinceMs, atMost: recordsAtMost + 1 }
  for await (const { record, sinceMs } of scanRecordsBefore(ledger, from)) {
    const place = { account: ledger.account, isPending, sinceMs, id: record.recordId }
    if (!behind || isBehind(place, behind)) yield { ledger, record, place }
  }
}

export function isBehind(one: Place, other: Place): boolean {
  if (one.sinceMs !== other.sinceMs) return one.sinceMs < other.sinceMs
  return one.isPending ? one.id > other.id : one.id < other.id
}

export function formatPlace({ account, isPending, sinceMs, id }: Place): string {
  return `${isPending ? '-' : ''}${sinceMs}.${id}.${account}`
}

/** Throws PageError. */
export function parsePlace(cursor: string): Place {
  const [, minus, ms, id, account] = /^(-?)(\d{1,15})\.([0-9a-f]{24})\.(.+)$/u.exec(cursor) ?? []
  if (ms === undefined || id === undefined || account === undefined) throw badCursor()
  return { account, isPending: minus === '-', sinceMs: Number(ms), id }
}
