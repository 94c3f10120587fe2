/** Who asks, and the part of the running daemon that the answer may come from. */
import { ownFeed } from '../event.ts'
import type { Config } from '../config/config.ts'
import type { DestinationLabels } from '../operator/recipients.ts'
import type { OpenLedgers } from '../operator/open-ledgers.ts'
import type { TriageAction } from '../upstream/resources/enumerations.ts'
import type { LedgerRecord } from '../store/records.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { PageError } from './page-error.ts'
import { seesAccount, type User } from './access/user.ts'

/** What the page needs of the engine that runs; it changes with each reload. */
export interface PageEngine {
  config: Config
  store: OpenLedgers
  /** Since when it runs, ms; the number of its configuration; what asked for the reload, if it was one. */
  generation: { number: number; sinceMs: number; by: string | undefined }
  /** Both throw UpstreamError. */
  triageEvent(account: string, uid: string, action: TriageAction): Promise<unknown>
  noteEvent(account: string, uid: string, note: string): Promise<unknown>
  /** Reads the configuration again, for whoever is named. undefined: it came from no file. */
  reload?: ((by: string) => Promise<Reloaded>) | undefined
}

export type Reloaded =
  | { status: 'changed' | 'unchanged'; generation: number }
  /** The old configuration stays. Without mistakes: something else failed, which is logged. */
  | { status: 'refused'; mistakes: readonly string[] }
  /** The process was asked to stop meanwhile. */
  | { status: 'stopped' }

export interface Asker {
  user: User
  engine: PageEngine
  config: Config
  /** Of everything: for what all accounts share. */
  store: OpenLedgers
  /** Of the accounts that the user may see, or the one that was asked for. */
  ledgers: readonly AccountLedger[]
  /** Their names; undefined: all there are. */
  accounts: readonly string[] | undefined
  /** The names of all that the user may see. */
  visible: string[]
  labels: DestinationLabels
  nowMs: number
}

/** Whether the user sees some accounts, and so nothing of what all share. */
export function isRestricted({ user }: Pick<Asker, 'user'>): boolean {
  return user.accounts !== 'all'
}

/**
 * Whether an event of these feeds is not for the user. Tocsin's own ones, which the ledger of the
 * first account has, tell of the whole installation.
 */
export function isHidden(asker: Pick<Asker, 'user'>, feeds: readonly string[]): boolean {
  return isRestricted(asker) && feeds.includes(ownFeed)
}

export function isHiddenRecord(
  asker: Pick<Asker, 'user'>,
  { sightings }: Pick<LedgerRecord, 'sightings'>,
): boolean {
  return isHidden(
    asker,
    sightings.map(({ feed }) => feed),
  )
}

/** The ledgers that the user sees. Throws PageError 404 for an account that is not among them. */
export function narrowLedgers(
  { ledgers }: OpenLedgers,
  user: User,
  account: string | undefined,
): Pick<Asker, 'ledgers' | 'accounts' | 'visible'> {
  const own = ledgers.filter((ledger) => seesAccount(user, ledger.account))
  const visible = own.map((ledger) => ledger.account).toSorted()
  if (account === undefined) {
    return { ledgers: own, visible, accounts: user.accounts === 'all' ? undefined : user.accounts }
  }
  const named = own.filter((ledger) => ledger.account === account)
  if (named.length === 0) throw new PageError('not_found', 'no such account is visible to you')
  return { ledgers: named, visible, accounts: [account] }
}

/** The ledger of an account. Throws PageError 404. */
export function requireLedger({ ledgers }: Pick<Asker, 'ledgers'>, account: string): AccountLedger {
  const ledger = ledgers.find((one) => one.account === account)
  if (ledger) return ledger
  throw new PageError('not_found', 'no such account is visible to you')
}
