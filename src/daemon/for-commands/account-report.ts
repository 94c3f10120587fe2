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
import { readAccountTrouble } from '../../upstream/tokens.ts'
import type { OpenLedgers } from './feed-report.ts'

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
