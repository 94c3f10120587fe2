import type { Redis } from '../redis/client.ts'
import type { Keys } from '../redis/keys.ts'
import type { AccountLedger } from '../store/account-ledger.ts'

/** The ledgers that a command or the daemon has opened. */
export interface OpenLedgers {
  redis: Redis
  keys: Keys
  /** The leading one first. */
  ledgers: AccountLedger[]
}
