/**
 * Brings tries forward that wait since their sink failed: one while its circuit is half open and nothing
 * else tries it, all once it has closed. Their own times may be hours away.
 */
import type { Book } from '../../ledger/book.ts'
import { overdueRefs, wakeRetries } from '../../ledger/due.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Circuit } from '../circuit.ts'
import type { WorkTeller } from '../work-hints.ts'

export interface Wake {
  /** Whether something tries a sink whose circuit is half open, or will within seconds; false where it is not. */
  ensureTried(sink: string): Promise<boolean>
  all(sink: string): Promise<void>
}

export interface WakeOptions {
  circuit: Pick<Circuit, 'read'>
  drains: Pick<WorkTeller, 'tell' | 'booksOf'>
  clock: Clock
  logger: Logger
}

/** What is being sent is due again after as long. */
const soonMs = 30_000

/** Of one book: what waits for its next try has been tried, and few are while a circuit is open. */
const mostAtOnce = 500

export function createWake(options: WakeOptions): Wake {
  const { drains, circuit, clock, logger } = options

  async function isTried(sink: string): Promise<boolean> {
    const page = { offset: 0, count: 1 }
    for (const book of drains.booksOf(sink)) {
      const soon = await overdueRefs(book, sink, clock.now() + soonMs, page)
      if (soon.length > 0) return true
    }
    return false
  }

  return {
    async ensureTried(sink) {
      const { state, paused } = await circuit.read(sink, clock.now())
      if (state !== 'half_open' || paused !== undefined) return false
      if (await isTried(sink)) return true
      for (const book of drains.booksOf(sink))
        if ((await wakeIn(options, book, sink, 1)) > 0) return true
      return false
    },
    async all(sink) {
      try {
        for (const book of drains.booksOf(sink)) await wakeIn(options, book, sink, mostAtOnce)
      } catch (error) {
        logger.warn(
          { sink, err: error },
          'retries were not brought forward: each waits for its time',
        )
      }
    },
  }
}

async function wakeIn(
  { drains }: WakeOptions,
  book: Book,
  sink: string,
  max: number,
): Promise<number> {
  const refs = await wakeRetries(book, sink, max)
  if (refs.length > 0) await drains.tell(book.account, [{ sink }])
  return refs.length
}
