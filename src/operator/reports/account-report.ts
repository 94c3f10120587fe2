/** The state of each account that ever had a ledger, read without changing it. */
import type { Config } from '../../config/config.ts'
import type { Trouble } from '../../lib/trouble.ts'
import { openExistingLedger } from '../../store/account-ledger.ts'
import {
  type AccountEntry,
  type Holdings,
  readAccounts,
  readHoldings,
} from '../../store/accounts.ts'
import { countByState } from '../../store/item-states.ts'
import { readAccountTrouble } from '../../upstream/access/tokens.ts'
import { type Column, formatIsoTime, troubleJson } from './columns.ts'
import type { OpenLedgers } from '../open-ledgers.ts'
import { formatPending } from './sink-report.ts'

export interface AccountReport extends AccountEntry {
  isConfigured: boolean
  /** undefined: nothing is left in its ledger. */
  holdings: Holdings | undefined
  /** Why its key is refused upstream. */
  trouble: Trouble | undefined
}

/** Accounts that left the configuration come last. */
export async function reportAccounts(store: OpenLedgers, config: Config): Promise<AccountReport[]> {
  const { redis, keys } = store
  const reports = (await readAccounts(store)).map(async (entry): Promise<AccountReport> => {
    const { name: account } = entry
    const ledger = await openExistingLedger({ redis, keys, account, config: config.ledger })
    const configured = config.accounts.find(({ name }) => name === account)
    return {
      ...entry,
      isConfigured: configured !== undefined,
      holdings: ledger && (await readHoldings(ledger)),
      trouble: configured && (await readAccountTrouble(store, configured)),
    }
  })
  return (await Promise.all(reports)).toSorted(
    (a, b) => Number(b.isConfigured) - Number(a.isConfigured),
  )
}

export function accountColumns({ feeds }: Config): readonly Column<AccountReport>[] {
  const listFeeds = ({ name, holdings }: AccountReport): object[] => {
    const own = feeds.filter((feed) => feed.account === name).map((feed) => feed.name)
    const all = new Set([...own, ...(holdings?.feeds ?? [])])
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
      json: ({ holdings }) => countByState(holdings?.pending ?? {}),
      text: ({ holdings }) => formatPending(holdings?.pending ?? {}),
    },
    { key: 'dead_letters', title: 'DEAD', json: ({ holdings }) => holdings?.deadLetters ?? 0 },
    {
      key: 'quarantined',
      title: 'QUARANTINED',
      json: ({ holdings }) => holdings?.quarantined ?? 0,
    },
    {
      key: 'feeds',
      title: 'FEEDS READ',
      json: listFeeds,
      text: ({ holdings }) => holdings?.feeds.join(', ') || 'none yet',
    },
  ]
}
