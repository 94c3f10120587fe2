/** Feeds, sinks and accounts as commands and the API list them, each with its problems. */
import type { Config } from '../config/config.ts'
import type { Problem } from './alerts/troubles.ts'
import type { LedgerState } from './ledger-state.ts'
import { type AccountReport, accountColumns } from './reports/account-report.ts'
import type { Column } from './reports/columns.ts'
import { feedColumns, type FeedReport } from './reports/feed-report.ts'
import { sinkColumns, type SinkReport } from './reports/sink-report.ts'

interface RowOf {
  feed: FeedReport
  sink: SinkReport
  account: AccountReport
}

export type ListedThing = keyof RowOf

export interface Listed<Row> {
  name: string
  row: Row
  /** Without what the row says. */
  problems: Omit<Problem, 'check' | 'subject'>[]
}

interface List<Row> {
  rows: (state: LedgerState) => readonly Row[]
  nameOf: (row: Row) => string
  columns: (config: Config) => readonly Column<Row>[]
  /** Problems that are the row's. */
  isOwn: (row: Row, problem: Problem) => boolean
}

const lists: { [Thing in ListedThing]: List<RowOf[Thing]> } = {
  feed: {
    rows: ({ feeds }) => feeds,
    nameOf: ({ feed }) => feed.name,
    columns: () => feedColumns,
    // what stops the account stops the feed
    isOwn: ({ feed }, { check, subject, stops }) =>
      (check === 'feed' && subject === feed.name) ||
      (check === 'account' && subject === feed.account && stops === true),
  },
  sink: {
    rows: ({ sinks }) => sinks,
    nameOf: ({ name }) => name,
    columns: () => sinkColumns,
    isOwn: ({ name }, { check, subject }) => check === 'delivery' && subject === name,
  },
  account: {
    rows: ({ accounts }) => accounts,
    nameOf: ({ name }) => name,
    columns: accountColumns,
    isOwn: ({ name }, { check, subject }) =>
      (check === 'account' || check === 'accounting') && subject === name,
  },
}

export function listThings<Thing extends ListedThing>(
  thing: Thing,
  state: LedgerState,
  config: Config,
): { columns: readonly Column<RowOf[Thing]>[]; rows: Listed<RowOf[Thing]>[] } {
  const { rows, nameOf, columns, isOwn } = lists[thing]
  const listed = rows(state).map((row) => ({
    name: nameOf(row),
    row,
    problems: state.problems
      .filter((one) => isOwn(row, one))
      .map(({ check: _check, subject: _subject, ...one }) => one),
  }))
  return { columns: columns(config), rows: listed }
}
