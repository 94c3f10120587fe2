/**
 * Makes the queues agree with the ledger: whatever is due and has no job gets one again, whatever the
 * reason it was lost. It reads only what is overdue, and it is the only thing that has to be right
 * about jobs; everything else that adds them is a short cut.
 */
import {
  holdOrphan,
  releaseDetail,
  returnOrphans,
  type Gathering,
  type MadeWork,
  type SinkModes,
} from '../ledger/collecting.ts'
import { settleMembers } from '../digest/sealed-message.ts'
import { readAnswered } from '../ledger/attempts.ts'
import { overdueRefs, sinksOf } from '../ledger/due.ts'
import type { Book } from '../ledger/book.ts'
import { readPayload } from '../ledger/records.ts'
import { parseRef } from '../ledger/refs.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Clock } from '../runtime/clock.ts'
import { defaultTimings, type Timings } from '../runtime/timings.ts'
import type { WorkQueue } from './work-queue.ts'

export interface Reconciler {
  /** One pass over a page of every sink's overdue work; the next pass goes on behind it. */
  reconcileOnce(): Promise<Reconciled>
}

export interface Reconciled {
  /** Jobs that were missing. */
  added: number
  /** Refs of sinks that the configuration does not have, now held. */
  orphaned: number
  /** Items taken back because their sink is there again. */
  returned: number
  /** Sinks of the ledger that the configuration does not have, with something to hold. */
  unknownSinks: string[]
}

export interface ReconcilerOptions {
  books: Book[]
  modes: SinkModes
  queue: WorkQueue
  release: (account: string, made: MadeWork[]) => Promise<void>
  /** By destination: where what is taken back waits for company; empty where it goes singly. */
  returnPlaces: (sink: string) => Record<string, Gathering>
  /** Only the active configuration may call a sink unknown, or known again. */
  confirmGeneration: () => Promise<boolean>
  clock: Clock
  logger: Logger
  timings?: Timings
}

const pageLength = 500

export function createReconciler(options: ReconcilerOptions): Reconciler {
  const nextPage = createPaging(options)
  return {
    async reconcileOnce() {
      const sum: Reconciled = { added: 0, orphaned: 0, returned: 0, unknownSinks: [] }
      const mayHold = await options.confirmGeneration()
      for (const book of options.books) {
        for (const sink of await sinksOf(book)) {
          const isKnown = Object.hasOwn(options.modes, sink)
          if (isKnown) sum.added += await requeue(options, book, sink, await nextPage(book, sink))
          else if (mayHold) {
            addHeld(sum, sink, await hold(options, book, await nextPage(book, sink)))
          }
        }
        if (mayHold) sum.returned += await takeBack(options, book)
      }
      say(options.logger, sum)
      return sum
    },
  }
}

/** Walks on through each sink's overdue work, so that a long backlog hides nothing behind it. */
function createPaging({
  clock,
  timings = defaultTimings,
}: ReconcilerOptions): (book: Book, sink: string) => Promise<string[]> {
  const offsets = new Map<string, number>()
  return async (book, sink) => {
    const place = `${book.account}:${sink}`
    const page = { offset: offsets.get(place) ?? 0, count: pageLength }
    const refs = await overdueRefs(book, sink, clock.now() - timings.reconcileGraceMs, page)
    offsets.set(place, refs.length < pageLength ? 0 : page.offset + pageLength)
    return refs
  }
}

async function requeue(
  options: ReconcilerOptions,
  book: Book,
  sink: string,
  due: string[],
): Promise<number> {
  const missing = await options.queue.missing(book.account, sink, due)
  for (const ref of missing) await requeueOne(options, book, sink, ref)
  return missing.length
}

async function requeueOne(
  { modes, queue, release }: ReconcilerOptions,
  book: Book,
  sink: string,
  ref: string,
): Promise<void> {
  const parsed = parseRef(ref)
  // a due item may be one whose wait for its full event is over: all of its record go on without it
  const made = parsed.kind === 'item' ? await releaseWithout(book, parsed.recordId, modes) : []
  if (made.length > 0) await release(book.account, made)
  if (!made.some((work) => work.ref === ref)) {
    await queue.add(book.account, [{ ref, sink, severity: 'high' }])
  }
}

async function releaseWithout(book: Book, recordId: string, modes: SinkModes): Promise<MadeWork[]> {
  const payload = await readPayload(book, recordId)
  return releaseDetail(book, recordId, modes, payload && { detail: 'unavailable', ...payload })
}

function addHeld(sum: Reconciled, sink: string, count: number): void {
  sum.orphaned += count
  if (count > 0 && !sum.unknownSinks.includes(sink)) sum.unknownSinks.push(sink)
}

async function hold(options: ReconcilerOptions, book: Book, due: string[]): Promise<number> {
  let held = 0
  for (const ref of due) held += (await holdOne(options, book, ref)) ? 1 : 0
  return held
}

/** False for a summary that was answered already: only its members were left to be settled. */
async function holdOne({ books }: ReconcilerOptions, book: Book, ref: string): Promise<boolean> {
  if (parseRef(ref).kind === 'batch') {
    const answered = await readAnswered(book, ref)
    if (answered) {
      await settleMembers(book, ref, answered, (account) => bookOf(books, account))
      return false
    }
    // a digest may have members in other books too
    for (const other of books) if (other !== book) await holdOrphan(other, ref)
  }
  await holdOrphan(book, ref)
  return true
}

function bookOf(books: readonly Book[], account: string): Book | undefined {
  return books.find((book) => book.account === account)
}

async function takeBack({ modes, returnPlaces }: ReconcilerOptions, book: Book): Promise<number> {
  let returned = 0
  for (const [sink, mode] of Object.entries(modes)) {
    returned += await returnOrphans(book, { sink, mode, places: returnPlaces(sink) }, 100)
  }
  return returned
}

function say(logger: Logger, sum: Reconciled): void {
  const { added, orphaned, returned, unknownSinks: sinks } = sum
  const unknown = 'items held: their sink is not in the configuration'
  if (orphaned > 0) logger.warn({ sinks, items: orphaned }, unknown)
  if (returned > 0) logger.info({ items: returned }, 'items go on: their sink is back')
  if (added > 0) logger.info({ items: added }, 'due work had no job; queued again')
}
