/** Items whose sink the configuration does not have: held until it is there again, and nothing of them is lost. */
import { settleMembers } from '../grouping/freeze.ts'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import { type Book, parseRef } from '../store/account-ledger.ts'
import {
  type Gathering,
  holdOrphan,
  overdueRefs,
  returnOrphans,
  type SinkModes,
} from '../store/pending-items.ts'
import { readAnswered } from './claims.ts'

export interface Orphans {
  /** Holds what of the book is due for a sink that the configuration does not have, some at a time. */
  hold(book: Book, sink: string): Promise<void>
  /** Takes back what was held for a sink that is there again, some at a time; says how many. */
  takeBack(book: Book, sink: string): Promise<number>
  /** Says what was done since it was last asked. */
  report(): void
}

export interface OrphansOptions {
  books: readonly Book[]
  modes: SinkModes
  /** By destination: where what is taken back waits for company; empty where it goes singly. */
  returnPlaces: (sink: string) => Record<string, Gathering>
  /** Only the active configuration may call a sink unknown, or known again. */
  isActive: () => boolean
  /** What is due for less long is left alone: a newer configuration may have the sink. */
  graceMs: number
  clock: Clock
  logger: Logger
}

const pageLength = 500
const returnedAtOnce = 100
const returnSteps = 20

export function createOrphans(options: OrphansOptions): Orphans {
  const { books, modes, clock, logger } = options
  let held = { items: 0, sinks: new Set<string>() }
  let returned = 0

  /** False for a summary that was answered already: only its members were left to be settled. */
  async function holdOne(book: Book, ref: string): Promise<boolean> {
    if (parseRef(ref).kind === 'batch') {
      const answered = await readAnswered(book, ref)
      if (answered) {
        const find = (name: string): Book | undefined => books.find((one) => one.account === name)
        await settleMembers(book, ref, answered, find)
        return false
      }
      // a digest may have members in other books too
      for (const other of books) if (other !== book) await holdOrphan(other, ref)
    }
    await holdOrphan(book, ref)
    return true
  }

  return {
    async hold(book, sink) {
      if (!options.isActive()) return
      const page = { offset: 0, count: pageLength }
      const refs = await overdueRefs(book, sink, clock.now() - options.graceMs, page)
      for (const ref of refs) {
        if (!(await holdOne(book, ref))) continue
        held.items += 1
        held.sinks.add(sink)
      }
    },
    async takeBack(book, sink) {
      const mode = modes[sink]
      if (!options.isActive() || mode === undefined) return 0
      const places = options.returnPlaces(sink)
      let count = 0
      for (let step = 0; step < returnSteps; step += 1) {
        const some = await returnOrphans(book, { sink, mode, places }, returnedAtOnce)
        count += some
        if (some < returnedAtOnce) break
      }
      returned += count
      return count
    },
    report() {
      const about = { sinks: [...held.sinks], items: held.items }
      if (held.items > 0) logger.warn(about, 'items held: their sink is not in the configuration')
      if (returned > 0) logger.info({ items: returned }, 'items go on: their sink is back')
      held = { items: 0, sinks: new Set() }
      returned = 0
    },
  }
}
