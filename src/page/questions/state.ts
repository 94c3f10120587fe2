/** Questions about the state of the ledger: status, and the lists that commands print. */
import { z } from 'zod'
import { accountColumns } from '../../operator/reports/account-report.ts'
import { type Column, toJson } from '../../operator/reports/columns.ts'
import {
  type LedgerState,
  readFeeds,
  readFleetOf,
  readLedgerState,
} from '../../operator/ledger-state.ts'
import { type ListedThing, problemsOf, withoutShared } from '../../operator/problems.ts'
import { feedColumns, type FeedReport } from '../../operator/reports/feed-report.ts'
import { readAllSilences, silenceJson } from '../../operator/silences.ts'
import { ownSinkColumns, sinkColumns } from '../../operator/reports/sink-report.ts'
import { readStatus, statusJson } from '../../operator/status.ts'
import { type Asker, isRestricted } from '../asker.ts'
import { type AnswerOf, field, question } from '../question.ts'
import { visibleSilences } from './silences.ts'

const ofAccount = z.object({ account: field.account })

/** A status is read from Redis alone; what hangs there ends with the connection. */
const never = new AbortController().signal

export const statusQuestion = question({
  path: '/status',
  summary: 'whether all is well, the last 24 hours, and what is not well, the worst first',
  query: ofAccount,
  isShared: true,
  async ask(asker) {
    const { store, config, accounts, nowMs } = asker
    const of = { accounts, isRestricted: isRestricted(asker) }
    const status = await readStatus(store.redis, config, { ...of, stop: never })
    const fleet = await readFleetOf(store, config, nowMs)
    const feeds = await readFeeds(store, config, { fleet, wanted: accounts })
    return { ...statusJson(status), feeds: latest(feeds) }
  },
})

export type StatusAnswer = AnswerOf<typeof statusQuestion>

const feedsShown = 12

/** Those that were never read, then by the share of what is expected. */
function latest(reports: readonly FeedReport[]) {
  const late = ({ lagMs = Infinity, lagObjectiveMs }: FeedReport): number => lagMs / lagObjectiveMs
  return reports
    .toSorted((one, other) => late(other) - late(one))
    .slice(0, feedsShown)
    .map(({ feed, lagMs, lagObjectiveMs }) => ({
      name: feed.name,
      account: feed.account,
      lag_s: lagMs === undefined ? null : lagMs / 1000,
      objective_s: lagObjectiveMs / 1000,
    }))
}

/** Of the accounts that are asked for, as far as the user may know it. */
export async function readState(asker: Asker): Promise<LedgerState> {
  const state = await readLedgerState(asker.store, asker.config, asker.accounts)
  return isRestricted(asker) ? withoutShared(state) : state
}

function list<Row>(
  thing: ListedThing,
  rowsOf: (state: LedgerState) => readonly Row[],
  describe: { nameOf: (row: Row) => string; columns: (asker: Asker) => readonly Column<Row>[] },
) {
  return question({
    path: `/${thing}s`,
    summary: `${thing}s with their state and problems`,
    query: ofAccount,
    isShared: true,
    async ask(asker) {
      const state = await readState(asker)
      const columns = describe.columns(asker)
      return rowsOf(state).map((row) => ({
        ...toJson(columns, row),
        problems: problemsOf(state.problems, thing, describe.nameOf(row)),
      }))
    },
  })
}

export const feedsQuestion = list('feed', ({ feeds }) => feeds, {
  nameOf: ({ feed }) => feed.name,
  columns: () => feedColumns,
})

export const sinksQuestion = list('sink', ({ sinks }) => sinks, {
  nameOf: ({ name }) => name,
  columns: (asker) => (isRestricted(asker) ? ownSinkColumns : sinkColumns),
})

export const accountsQuestion = list('account', ({ accounts }) => accounts, {
  nameOf: ({ name }) => name,
  columns: ({ config }) => accountColumns(config),
})

export const silencesQuestion = question({
  path: '/silences',
  summary: 'silences: active, not begun, over',
  query: z.object({}),
  async ask({ store, config, user }) {
    const { silences, nowMs } = await readAllSilences(store, config)
    return visibleSilences(silences, user).map((silence) => silenceJson(silence, nowMs))
  },
})
