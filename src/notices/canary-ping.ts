/**
 * Pings a dead-man switch once for each canary that all its sinks took: what stops Tocsin or a sink stops
 * the pings, and the switch rings outside. One replica pings, once; what fails is counted, never repeated.
 */
import type { Book } from '../ledger/book.ts'
import { readRecord } from '../ledger/records.ts'
import type { Keys } from '../redis/keys.ts'
import type { Clock } from '../runtime/clock.ts'
import { messageOf } from '../runtime/errors.ts'
import type { Logger } from '../runtime/logger.ts'
import { canaryUid, slotAt } from './canary.ts'

export interface CanaryPingOptions {
  everyMs: number
  book: Book
  keys: Keys
  /** Throws what names no address. */
  ping: () => Promise<void>
  onPing: (outcome: 'delivered' | 'failed') => void
  /** Whether this configuration is the active one. */
  isActive: () => boolean
  clock: Clock
  logger: Logger
}

export interface CanaryPing {
  /** Pings for the last two canaries, where that is to be done. */
  pingOnce(): Promise<void>
}

export function createCanaryPing(options: CanaryPingOptions): CanaryPing {
  const { everyMs, book, isActive, clock } = options
  let settled: number[] = [] // spares a look into Redis; which knows it for all
  return {
    async pingOnce() {
      if (!isActive()) return
      const slotMs = slotAt(clock.now(), everyMs)
      const slots = [slotMs - everyMs, slotMs] // the one before may have arrived late
      for (const slot of slots.filter((one) => !settled.includes(one))) {
        if (!(await hasArrived(book, slot))) continue
        if (await claim(options, slot)) await pingFor(options, slot)
        settled = [slot, ...settled].slice(0, slots.length)
      }
    },
  }
}

/** What went to another sink instead did not arrive. */
async function hasArrived(book: Book, slotMs: number): Promise<boolean> {
  const record = await readRecord(book, book.digests.recordId(canaryUid(slotMs)))
  const items = record?.items ?? []
  return items.length > 0 && items.every(({ state }) => state === 'delivered')
}

/** Before the ping, so that no other replica and no later start pings for the same canary. */
async function claim({ everyMs, book, keys }: CanaryPingOptions, slotMs: number): Promise<boolean> {
  const name = keys.shared('canary-ping', String(slotMs))
  return (await book.redis.set(name, '1', 'PX', 2 * everyMs, 'NX')) === 'OK'
}

async function pingFor({ ping, onPing, logger }: CanaryPingOptions, slotMs: number): Promise<void> {
  const slot = new Date(slotMs).toISOString()
  try {
    await ping()
    onPing('delivered')
    logger.debug({ slot }, 'pinged for the canary')
  } catch (error) {
    onPing('failed')
    logger.warn({ slot, cause: messageOf(error) }, 'the ping for the canary failed')
  }
}
