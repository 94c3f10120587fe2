/** The state of each account that ever had a ledger, as lists show it. */
import type { Config } from '../../config/config.ts'
import type { Trouble } from '../../lib/trouble.ts'
import { type AccountEntry, upstreamFeedNames } from '../../store/accounts.ts'
import { countByState } from '../../store/item-states.ts'
import type { AccountState, FleetState } from '../fleet-state.ts'
import { type Column, formatIsoTime, troubleJson } from './columns.ts'
import { addCounts, formatPending } from './sink-report.ts'

export interface AccountReport extends AccountEntry {
  isConfigured: boolean
  /** Items that are not final, by state; only states that occur. */
  pending: Record<string, number>
  deadLetters: number
  quarantined: number
  /** Feeds that it ever had. */
  feeds: string[]
  /** Why its key is refused upstream. */
  trouble: Trouble | undefined
}

/** Accounts that left the configuration come last. */
export function reportAccounts(
  entries: readonly AccountEntry[],
  { accounts }: FleetState,
  config: Config,
): AccountReport[] {
  const reports = entries.map((entry): AccountReport => {
    const state = accounts.find(({ name }) => name === entry.name)
    const isConfigured = config.accounts.some(({ name }) => name === entry.name)
    return { ...entry, isConfigured, trouble: state?.trouble, ...holdingsOf(state) }
  })
  return reports.toSorted((a, b) => Number(b.isConfigured) - Number(a.isConfigured))
}

/** Nothing is left in the ledger of an account without a state. */
function holdingsOf(
  state: AccountState | undefined,
): Pick<AccountReport, 'pending' | 'deadLetters' | 'quarantined' | 'feeds'> {
  const { accounting = { feeds: {}, sinks: {} }, deadLetters = 0, quarantine = {} } = state ?? {}
  const pending = Object.values(accounting.sinks).map((sink) => sink.pending)
  return {
    pending: pending.reduce(addCounts, {}),
    deadLetters,
    quarantined: Object.values(quarantine).reduce((sum, count) => sum + count, 0),
    feeds: upstreamFeedNames(accounting.feeds),
  }
}

export function accountColumns({ feeds }: Config): readonly Column<AccountReport>[] {
  const listFeeds = ({ name, feeds: read }: AccountReport): object[] => {
    const own = feeds.filter((feed) => feed.account === name).map((feed) => feed.name)
    const all = new Set([...own, ...read])
    return [...all].map((feed) => ({ feed, is_configured: own.includes(feed) }))
  }
  return [
    { key: 'account', title: 'ACCOUNT', json: ({ name }) => name },
    {
      key: 'is_configured',
      title: 'STATE',
      json: ({ isConfigured }) => isConfigured,
      text: ({ isConfigured, discarding }) => {
        if (isConfigured) return 'configured'
        return discarding ? 'being discarded' : 'not configured'
      },
    },
    { key: 'since', json: ({ sinceMs }) => formatIsoTime(sinceMs) },
    { key: 'last_configured', json: ({ configuredMs }) => formatIsoTime(configuredMs) },
    { key: 'trouble', json: ({ trouble }) => troubleJson(trouble) },
    {
      key: 'discarding',
      json: ({ discarding }) =>
        discarding ? { since: formatIsoTime(discarding.atMs), by: discarding.by } : null,
    },
    {
      key: 'pending',
      title: 'PENDING',
      json: ({ pending }) => countByState(pending),
      text: ({ pending }) => formatPending(pending),
    },
    { key: 'dead_letters', title: 'DEAD', json: ({ deadLetters }) => deadLetters },
    { key: 'quarantined', title: 'QUARANTINED', json: ({ quarantined }) => quarantined },
    {
      key: 'feeds',
      title: 'FEEDS READ',
      json: listFeeds,
      text: ({ feeds: read }) => read.join(', ') || 'none yet',
    },
  ]
}
