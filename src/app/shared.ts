/** What every part is built from. */
import type { Config } from '../config/config.ts'
import type { Book } from '../ledger/book.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'

/** What stays for as long as the process runs, whatever its configuration. */
export interface Lasting {
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  metrics: Metrics
}

export interface Shared extends Lasting {
  config: Config
  /** One for each account; empty until Redis was reached. */
  books: Book[]
  /** Of the configuration: 0 until it is registered in Redis; active unless another was started later. */
  generation: { number: number; readonly hash: string; isActive: boolean }
}

export function findBook({ books }: Shared, account: string): Book | undefined {
  return books.find((book) => book.account === account)
}
