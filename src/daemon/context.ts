/** What every part is built from. */
import type { Config } from '../config/config.ts'
import type { Clock, Timings } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import type { AccountLedger } from '../store/account-ledger.ts'

/** What stays for as long as the process runs, whatever its configuration. */
export interface ProcessContext {
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  metrics: Metrics
  timings: Timings
}

export interface EngineContext extends ProcessContext {
  config: Config
  /**
   * One for each account: the one that leads, the others of the configuration, then those that left it; empty
   * until Redis was reached. What left is added and removed while everything runs.
   */
  ledgers: AccountLedger[]
  /** Of the configuration, when its books were opened: those that had read nothing before. */
  newAccounts: string[]
  /** Of the configuration: 0 until it is registered in Redis; active unless another was started later. */
  generation: { number: number; readonly hash: string; isActive: boolean }
}

/** The accounts whose books are open and that the configuration does not have. */
export function leftLedgers({
  ledgers,
  config,
}: Pick<EngineContext, 'ledgers' | 'config'>): AccountLedger[] {
  const configured = new Set(config.accounts.map(({ name }) => name))
  return ledgers.filter(({ account }) => !configured.has(account))
}

export function findLedger({ ledgers }: EngineContext, account: string): AccountLedger | undefined {
  return ledgers.find((ledger) => ledger.account === account)
}
