/** The contexts that every part is built from. */
import type { Config } from '../config/config.ts'
import type { Clock, Timings } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics/metrics.ts'
import type { Redis } from '../redis/client.ts'
import type { Keys } from '../redis/keys.ts'
import {
  type AccountLedger,
  isNewestGeneration,
  type LedgerLoss,
  type PreviousConfirmation,
  type Standing,
  unconfirmed,
} from '../store/account-ledger.ts'

/** What lives as long as the process, whatever its configuration. */
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
   * One per account: the leading one, the others of the configuration, then those of accounts that
   * left. Empty until Redis is reached. Ledgers of accounts that left are added and removed while
   * everything runs.
   */
  ledgers: AccountLedger[]
  /**
   * Accounts whose ledgers are open, and that a newer configuration brought: it serves them. With the
   * number of the generation by then.
   */
  foreignAccounts: Map<string, number>
  /**
   * The configuration's generation: its number is 0 until it is registered in Redis. Active unless
   * another was started later. The newest if none was, also while another stands in for it.
   * `previous`: the latest confirmation that this process has seen in Redis. `loss`: noticed, and
   * Redis has no note of it yet.
   */
  generation: {
    readonly hash: string
    number: number
    isActive: boolean
    isNewest: boolean
    previous: PreviousConfirmation
    loss?: LedgerLoss | undefined
  }
}

/** The generation of a configuration that is not registered in Redis: a command's, or one that starts. */
export function unregistered(hash = ''): EngineContext['generation'] {
  return { hash, number: 0, isActive: false, isNewest: false, previous: unconfirmed }
}

export function standingOf({ redis, keys, generation, foreignAccounts }: EngineContext): Standing {
  return {
    get isActive() {
      return generation.isActive
    },
    get isNewest() {
      return generation.isNewest
    },
    async checkNewest() {
      generation.isNewest = await isNewestGeneration(redis, keys, generation.hash)
      return generation.isNewest
    },
    isForeign: (account) => foreignAccounts.has(account),
  }
}

export function findLedger({ ledgers }: EngineContext, account: string): AccountLedger | undefined {
  return ledgers.find((ledger) => ledger.account === account)
}
