/** What pages of messages and items share: filters, choices, records and cursors. */
import { severities } from '../event.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import type { EndedItem } from '../store/history/endings.ts'
import { type LedgerRecord, readRecords } from '../store/records.ts'
import { type Asker, isRestricted } from './asker.ts'
import { PageError } from './page-error.ts'
import { CursorError } from '../store/history/ending-list.ts'

const filterNames = [
  'since',
  'until',
  'sink',
  'recipient',
  'severity',
  'account',
  'state',
  'reason',
  'rule',
] as const

/** Null: it does not narrow. */
export type Filters = Record<(typeof filterNames)[number], string | null>

export function toFilters(query: Readonly<Record<string, unknown>>): Filters {
  const filters = filterNames.map((name) => [name, (query[name] as string | undefined) ?? null])
  return Object.fromEntries(filters) as Filters
}

/** What filters offer; over 100 recipients are not all. */
type Choices = Record<'sinks' | 'recipients' | 'severities' | 'states' | 'accounts', string[]>

export function choicesOf(asker: Asker, states: readonly string[]): Choices {
  const { config, ledgers, labels } = asker
  // sinks and recipients are named after customers, too
  const isWhole = !isRestricted(asker)
  const recipients = [...new Set(isWhole ? labels.values() : [])].toSorted()
  return {
    sinks: isWhole ? config.sinks.map(({ name }) => name) : [],
    recipients: recipients.slice(0, 101), // one more than are shown
    severities: severities.toReversed(),
    states: [...states],
    accounts: ledgers.map(({ account }) => account).toSorted(),
  }
}

/** The destinations that a recipient's name or address means: several sinks may have the same. */
export function destinationsOf(
  { labels }: Pick<Asker, 'labels'>,
  recipient: string | undefined,
): ReadonlySet<string> | undefined {
  if (recipient === undefined) return undefined
  const meant = [...labels].filter(([, label]) => label === recipient).map(([id]) => id)
  return new Set([recipient, ...meant])
}

/** The records of items; undefined: it is gone. */
export async function readRecordsOf(
  ledgers: readonly AccountLedger[],
  items: readonly (EndedItem | undefined)[],
): Promise<(LedgerRecord | undefined)[]> {
  const known = new Map<string, LedgerRecord>()
  for (const ledger of ledgers) {
    const own = items.filter((item) => item?.account === ledger.account)
    const ids = [...new Set(own.flatMap((item) => item?.recordId ?? []))]
    for (const record of ids.length === 0 ? [] : await readRecords(ledger, ids))
      known.set(`${record.account} ${record.recordId}`, record)
  }
  return items.map((item) => item && known.get(`${item.account} ${item.recordId}`))
}

/** Throws PageError for a cursor that no list gave. */
export async function refuseCursor<Result>(read: () => Promise<Result>): Promise<Result> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof CursorError)) throw error
    throw badCursor()
  }
}

export function badCursor(): PageError {
  return new PageError('bad_request', 'cursor: not one of an answer', 'begin without it')
}
