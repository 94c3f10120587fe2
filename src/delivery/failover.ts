/**
 * What happens to a sink's backlog while nothing can be sent to it, in order: people's items come
 * together for one message, then all goes to the fallback; and beyond `pending_max` the least severe are
 * given up. Any replica may do any of it, several at once.
 */
import { severityRank } from '../event.ts'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import { type Book, parseRef } from '../store/account-ledger.ts'
import { pendingOf, readAccounting } from '../store/accounts.ts'
import { gatherItems, overflowItems, pendingItems, waitingRefs } from '../store/pending-items.ts'
import { isIndexed } from '../store/record-index.ts'
import type { Circuit, CircuitReading } from './circuit.ts'
import type { WorkTeller } from './due-accounts.ts'
import {
  divertAll,
  type Diverter,
  eachPage,
  type Paging,
  type ReliefSink,
  type Wake,
} from './reroute.ts'

export interface Relief {
  /** One pass over all sinks. */
  relieveOnce(signal?: AbortSignal, alive?: () => void): Promise<void>
}

export interface ReliefOptions {
  sinks: ReadonlyMap<string, ReliefSink>
  circuit: Pick<Circuit, 'read'>
  diverter: Diverter
  drains: Pick<WorkTeller, 'booksOf'>
  wake: Pick<Wake, 'ensureTried'>
  clock: Clock
  logger: Logger
  /** Items that were given up. */
  onOverflow: (sink: string, items: number) => void
}

/** A short fault leaves people's single messages single. */
const gatherAfterMs = 60_000

export function createRelief(options: ReliefOptions): Relief {
  const { sinks } = options
  const overflow = createOverflow(options)
  return {
    async relieveOnce(signal = new AbortController().signal, alive = () => undefined) {
      const steps: ((sink: ReliefSink, until: Until) => Promise<unknown>)[] = [
        ({ name }) => options.wake.ensureTried(name),
        (sink, until) => gather(options, sink, until),
        (sink, until) => divert(options, sink, until),
        (sink, { signal, alive }) =>
          overflow.relieve(sink, { goesOn: async () => !signal.aborted, alive }),
      ]
      const failures: unknown[] = []
      for (const sink of sinks.values()) {
        for (const step of steps) {
          if (signal.aborted) return
          await step(sink, { signal, alive }).catch((error: unknown) => failures.push(error))
          alive()
        }
      }
      if (failures.length > 0) throw failures[0] // what a full Redis refuses keeps nothing else from its relief
    },
  }
}

interface Until {
  signal: AbortSignal
  alive: () => void
}

/** Not while a message tries whether the sink is back. */
function isBlockedFor(
  { state, openedAtMs, paused }: CircuitReading,
  nowMs: number,
  ms: number,
): boolean {
  const isOpen = state === 'open' || state === 'disabled'
  const sinceMs = Math.min(isOpen ? (openedAtMs ?? nowMs) : nowMs, paused?.sinceMs ?? nowMs)
  return nowMs - sinceMs > ms
}

async function gather(
  { drains, circuit, clock }: ReliefOptions,
  { name, keptPlaces }: ReliefSink,
  { signal, alive }: Until,
): Promise<void> {
  if (Object.keys(keptPlaces).length === 0) return
  const nowMs = clock.now()
  if (!isBlockedFor(await circuit.read(name, nowMs), nowMs, gatherAfterMs)) return
  const paging: Paging = { goesOn: async () => !signal.aborted, alive }
  for (const book of drains.booksOf(name)) {
    const gatherPage = async (refs: readonly string[]): Promise<number> => {
      const singles = refs.filter((ref) => parseRef(ref).kind === 'item')
      return gatherItems(book, singles, keptPlaces)
    }
    await eachPage((page) => waitingRefs(book, name, page), gatherPage, paging)
  }
}

async function divert(
  options: ReliefOptions,
  sink: ReliefSink,
  { signal, alive }: Until,
): Promise<void> {
  const { drains, diverter, clock, logger } = options
  const goesOn = async (): Promise<boolean> => !signal.aborted && (await mayDivert(options, sink))
  if (!(await goesOn())) return
  let items = 0
  for (const book of drains.booksOf(sink.name)) {
    const work = { book, sink: sink.name, diverter, nowMs: clock.now() }
    items += await divertAll(work, { goesOn, alive })
  }
  const fields = { sink: sink.name, fallback: sink.fallback, items }
  if (items > 0) logger.warn(fields, 'the sink takes nothing: its items go to the fallback')
}

/**
 * A pause is the operator's: nothing goes elsewhere. While a message tries whether the sink is back, and
 * while the fallback takes nothing either, what waits stays.
 */
async function mayDivert(
  { circuit, clock }: ReliefOptions,
  { name, fallback, fallbackAfterMs }: ReliefSink,
): Promise<boolean> {
  if (fallback === undefined) return false
  const nowMs = clock.now()
  const { state, openedAtMs, paused } = await circuit.read(name, nowMs)
  if (paused !== undefined) return false
  const isLong = openedAtMs !== undefined && nowMs - openedAtMs >= fallbackAfterMs
  if (state !== 'disabled' && !(state === 'open' && isLong)) return false
  const other = await circuit.read(fallback, nowMs)
  return other.paused === undefined && other.state !== 'open' && other.state !== 'disabled'
}

/** Bounds what waits for a sink: beyond `pending_max` the least severe are given up, of those the oldest. */

interface Overflow {
  /** Looks at the counters; where there are too many, at all pending records, and then not again for a while. */
  relieve(sink: ReliefSink, paging: Paging): Promise<void>
}

interface OverflowOptions {
  drains: Pick<WorkTeller, 'booksOf'>
  diverter: Diverter
  clock: Clock
  logger: Logger
  /** Items that were given up. */
  onOverflow: (sink: string, items: number) => void
}

/** A walk over all pending records takes seconds. */
const betweenScansMs = 60_000

const chunk = 100

interface Waiting {
  book: Book
  ref: string
  rank: number
  createdAtMs: number
}

export function createOverflow(options: OverflowOptions): Overflow {
  const { drains, clock } = options
  const lastScanMs = new Map<string, number>()
  return {
    async relieve(sink, paging) {
      const books = drains.booksOf(sink.name)
      const pending = await countPending(books, sink.name)
      const excess = sumOf(pending.values()) - sink.pendingMax
      const nowMs = clock.now()
      if (excess <= 0 || nowMs - (lastScanMs.get(sink.name) ?? -Infinity) < betweenScansMs) return
      lastScanMs.set(sink.name, nowMs)
      // the least severe may be among those that an upgrade has not put into the index yet
      if (!(await Promise.all(books.map(isIndexed))).every(Boolean)) return
      const least = (await findWaiting(books, sink.name, paging))
        .toSorted((a, b) => a.rank - b.rank || a.createdAtMs - b.createdAtMs)
        .slice(0, excess)
      for (const [book, its] of Map.groupBy(least, (waiting) => waiting.book)) {
        const refs = its.map(({ ref }) => ref)
        const keep = (pending.get(book) ?? 0) - refs.length
        await giveUp(options, sink, { book, refs, keep }, paging)
      }
    },
  }
}

async function countPending(books: readonly Book[], sink: string): Promise<Map<Book, number>> {
  const counts = books.map(async (book) => {
    const account = (await readAccounting(book)).sinks[sink]
    return [book, account === undefined ? 0 : pendingOf(account)] as const
  })
  return new Map(await Promise.all(counts))
}

function sumOf(counts: Iterable<number>): number {
  return [...counts].reduce((sum, count) => sum + count, 0)
}

/** What is in a message already, or being sent, stays. */
async function findWaiting(
  books: readonly Book[],
  sink: string,
  { alive }: Paging,
): Promise<Waiting[]> {
  const found: Waiting[] = []
  for (const book of books) {
    for await (const { ref, item } of pendingItems(book, sink)) {
      alive()
      if (item.state === 'sending' || item.state === 'batch') continue
      const { severity, createdAtMs } = item
      found.push({ book, ref, rank: severityRank(severity), createdAtMs })
    }
  }
  return found
}

interface TooMany {
  book: Book
  refs: string[]
  /** Where another replica has been here meanwhile, so many stay all the same. */
  keep: number
}

async function giveUp(
  { diverter, logger, onOverflow }: OverflowOptions,
  { name, fallback, pendingMax }: ReliefSink,
  { book, refs, keep }: TooMany,
  paging: Paging,
): Promise<void> {
  const about = { sink: name, pendingMax }
  if (fallback !== undefined) {
    const { length: items } = await diverter.divertItems(book, refs, paging)
    logger.warn(
      { ...about, fallback, items },
      'more than pending_max wait: items go to the fallback',
    )
    return
  }
  let items = 0
  for (let at = 0; at < refs.length && (await paging.goesOn()); at += chunk) {
    paging.alive()
    items += await overflowItems(book, refs.slice(at, at + chunk), { sink: name, keep })
  }
  onOverflow(name, items)
  logger.warn({ ...about, items }, 'more than pending_max wait: the least severe are dead letters')
}
