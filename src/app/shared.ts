/** What every part is built from. */
import type { Config } from '../config/config.ts'
import type { Book } from '../ledger/book.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'

export interface Shared {
  config: Config
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  metrics: Metrics
  /** One for each account; empty until Redis was reached. */
  books: Book[]
  /** Of the configuration: 0 until it is registered in Redis; active unless another was started later. */
  generation: { number: number; readonly hash: string; isActive: boolean }
}

export function findBook({ books }: Shared, account: string): Book | undefined {
  return books.find((book) => book.account === account)
}
