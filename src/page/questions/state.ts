/** Questions about the state of the ledger: status, and the lists that commands print. */
import { z } from 'zod'
import { toJson } from '../../operator/reports/columns.ts'
import {
  type LedgerState,
  readFeeds,
  readFleetOf,
  readLedgerState,
} from '../../operator/ledger-state.ts'
import { type ListedThing, listThings } from '../../operator/lists.ts'
import { withoutShared } from '../../operator/problems.ts'
import type { FeedReport } from '../../operator/reports/feed-report.ts'
import { readAllSilences, silenceJson } from '../../operator/silences.ts'
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

function list<Thing extends ListedThing>(thing: Thing) {
  return question({
    path: `/${thing}s`,
    summary: `${thing}s with their state and problems`,
    query: ofAccount,
    isShared: true,
    async ask(asker) {
      const { columns, rows } = listThings(thing, await readState(asker), asker.config)
      const isSeen = ({ key }: { key: string }): boolean =>
        thing !== 'sink' || !isRestricted(asker) || ownSinkKeys.has(key)
      const seen = columns.filter(isSeen)
      return rows.map(({ row, problems }) => ({ ...toJson(seen, row), problems }))
    },
  })
}

/** What whoever may see some accounts alone sees of a sink: what of theirs it has; the rest is of all. */
const ownSinkKeys = new Set(['sink', 'type', 'pending', 'dead_letters'])

export const feedsQuestion = list('feed')
export const sinksQuestion = list('sink')
export const accountsQuestion = list('account')

export const silencesQuestion = question({
  path: '/silences',
  summary: 'silences: active, not begun, over',
  query: z.object({}),
  async ask({ store, config, user }) {
    const { silences, nowMs } = await readAllSilences(store, config)
    return visibleSilences(silences, user).map((silence) => silenceJson(silence, nowMs))
  },
})
