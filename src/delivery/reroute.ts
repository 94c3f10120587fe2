/**
 * Takes what cannot be sent to a sink to the sink's fallback. Each step is whole in itself: where the
 * process dies between two, the items are still the sink's, and the next pass goes on.
 */
import { ownFeed, type Severity } from '../event.ts'
import { messageIdOf, sealedMembers, type Unsealed, unsealMessage } from '../grouping/freeze.ts'
import { dueTimers, peekTurn } from '../grouping/timers.ts'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import { type Book, parseRef } from '../store/account-ledger.ts'
import {
  bySeverity,
  collectedRefs,
  divertItem,
  type Gathering,
  type MadeWork,
  type MoveTarget,
  overdueRefs,
  waitingRefs,
  wakeRetries,
} from '../store/pending-items.ts'
import { type FoundItem, readItems } from '../store/records.ts'
import type { Circuit } from './circuit.ts'
import { batchMembers } from './claims.ts'
import type { WorkTeller } from './due-accounts.ts'

export interface Diverter {
  /** Whether the sink has a fallback. */
  has(sink: string): boolean
  /** Diverts an item, or all that a sealed message holds; says how many items went. */
  divert(book: Book, ref: string, paging?: Paging): Promise<number>
  /** Diverts items of one sink, the worst first; resolves with the refs of those that went. */
  divertItems(book: Book, refs: readonly string[], paging?: Paging): Promise<string[]>
  /** Takes a sealed message apart, or goes on with that. */
  unseal(book: Book, ref: string): Promise<Unsealed>
}

interface DiverterOptions {
  sinks: ReadonlyMap<string, ReliefSink>
  books: readonly Book[]
  drains: Pick<WorkTeller, 'tellMade'>
  metrics: Metrics
}

/** An attempt that has not ended so long after the longest possible send has died with its process. */
const staleGraceMs = 60_000

const chunk = 100

const throughout: Paging = { goesOn: () => Promise.resolve(true), alive: () => undefined }

export function createDiverter(options: DiverterOptions): Diverter {
  const { sinks, books } = options

  async function divertItems(
    book: Book,
    refs: readonly string[],
    { goesOn, alive }: Paging = throughout,
  ): Promise<string[]> {
    const gone: string[] = []
    for (let at = 0; at < refs.length && (await goesOn()); at += chunk) {
      const found = await readItems(book, refs.slice(at, at + chunk))
      const going = found.filter((item) => !isCanary(item)).toSorted(bySeverity)
      gone.push(...(await divertFound(options, book, going)))
      alive()
    }
    return gone
  }

  async function unseal(book: Book, ref: string): Promise<Unsealed> {
    const sink = sinks.get(parseRef(ref).sink)
    return unsealMessage(book, ref, {
      books,
      staleMs: staleMsOf(sink),
      batchWaitMs: sink?.batchWaitMs,
      places: sink?.keptPlaces ?? {},
    })
  }

  return {
    has: (sink) => sinks.get(sink)?.fallback !== undefined,
    divertItems,
    unseal,
    async divert(book, ref, paging) {
      const parsed = parseRef(ref)
      if (parsed.kind === 'item') return (await divertItems(book, [ref], paging)).length
      if (parsed.kind !== 'batch') return 0
      const members = await membersOf(books, book, ref)
      if ((await unseal(book, ref)) !== 'open') return 0
      let count = 0
      for (const { holder, refs } of members) {
        count += (await divertItems(holder, refs, paging)).length
      }
      return count
    },
  }
}

function staleMsOf(sink: ReliefSink | undefined): number {
  return (sink?.sendTimeoutMs ?? 0) + staleGraceMs
}

/** A test of one sink says nothing at another. */
function isCanary({ record, item }: FoundItem): boolean {
  return record.type === 'canary' && record.sightings[item.sighting]?.feed === ownFeed
}

async function membersOf(
  books: readonly Book[],
  lead: Book,
  ref: string,
): Promise<{ holder: Book; refs: string[] }[]> {
  const inBatch = await batchMembers(lead, ref)
  if (inBatch.length > 0) return [{ holder: lead, refs: inBatch }]
  const messageId = ref.split(':')[1] ?? ''
  return Promise.all(
    books.map(async (holder) => ({ holder, refs: await sealedMembers(holder, messageId) })),
  )
}

async function divertFound(
  { sinks, drains, metrics }: DiverterOptions,
  book: Book,
  found: readonly FoundItem[],
): Promise<string[]> {
  const gone: string[] = []
  const made: MadeWork[] = []
  for (const placed of found) {
    const { sink: name, severity } = placed.item
    const sink = sinks.get(name)
    if (sink?.fallback === undefined) continue
    const targets = sink.targets(severity)
    const diverted = await divertItem(book, placed, {
      to: sink.fallback,
      targets,
      staleMs: staleMsOf(sink),
    })
    if (diverted.status !== 'done') continue
    gone.push(placed.ref)
    made.push(...diverted.made)
    metrics.sinkFallbacksTotal.inc({ sink: name })
    metrics.itemsSettledTotal.inc({ sink: name, outcome: 'diverted' })
  }
  for (const { k } of made) metrics.itemsCreatedTotal.inc({ sink: k })
  await drains.tellMade(book.account, made)
  return gone
}

/** Everything that waits for one sink, whatever it waits as, goes to the sink's fallback. */

export interface DivertWork {
  book: Book
  sink: string
  diverter: Diverter
  nowMs: number
}

/** The turns of a sink that takes nothing are put off again and again, by no more than this. */
const putOffMs = 15_000

/** Says how many items went. */
export async function divertAll(work: DivertWork, paging: Paging): Promise<number> {
  const counts = [await divertDue(work, paging)]
  for (const timer of await timersOf(work)) {
    counts.push(await divertGathered(work, timer, paging))
  }
  return counts.reduce((sum, count) => sum + count, 0)
}

/** Single items, sealed messages, and what waits in the sink's batch. */
async function divertDue(work: DivertWork, paging: Paging): Promise<number> {
  const { book, sink, diverter } = work
  let items = 0
  async function divertPage(refs: readonly string[]): Promise<number> {
    const kinds = Map.groupBy(refs, (ref) => parseRef(ref).kind)
    const gone = await diverter.divertItems(book, kinds.get('item') ?? [], paging)
    items += gone.length
    let opened = 0
    for (const ref of kinds.get('batch') ?? []) {
      const count = await diverter.divert(book, ref, paging)
      items += count
      opened += count > 0 ? 1 : 0
    }
    return gone.length + opened
  }
  await eachPage((page) => waitingRefs(book, sink, page), divertPage, paging)
  return items + (await divertCollection(work, sink, paging))
}

/** Groups, digests and what was muted, whose time has come. */
async function timersOf({ book, sink, nowMs }: DivertWork): Promise<string[]> {
  const count = 10_000
  const timers = await dueTimers(book, { nowMs: nowMs + putOffMs, count })
  return timers.filter((timer) => parseRef(timer).sink === sink)
}

/** A turn that was cut off while it sealed has members in a message that is not there yet. */
async function divertGathered(work: DivertWork, timer: string, paging: Paging): Promise<number> {
  const { book, sink, diverter, nowMs } = work
  const ref = parseRef(timer)
  if (ref.kind !== 'gathering') return 0
  const messageId = messageIdOf(await peekTurn(book, { id: ref.id, sink, nowMs }))
  const cutOff = await diverter.divert(book, `b:${messageId}:${sink}`, paging)
  return cutOff + (await divertCollection(work, ref.id, paging))
}

async function divertCollection(
  { book, diverter }: DivertWork,
  id: string,
  paging: Paging,
): Promise<number> {
  let items = 0
  async function divertPage(refs: readonly string[]): Promise<number> {
    const gone = await diverter.divertItems(book, refs, paging)
    items += gone.length
    return gone.length
  }
  await eachPage((page) => collectedRefs(book, id, page), divertPage, paging)
  return items
}

/**
 * Brings tries forward that wait since their sink failed: one while its circuit is half open and nothing
 * else tries it, all once it has closed. Their own times may be hours away.
 */

export interface Wake {
  /** Whether something tries a sink whose circuit is half open, or will within seconds; false where it is not. */
  ensureTried(sink: string): Promise<boolean>
  all(sink: string): Promise<void>
}

interface WakeOptions {
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

/** A sink as it is relieved. */
export interface ReliefSink {
  name: string
  /** Where its items go when it takes none; undefined: they wait. */
  fallback: string | undefined
  /** How long its circuit must have been open before that. */
  fallbackAfterMs: number
  /** Where the fallback gets an item of this severity. */
  targets: (severity: Severity) => MoveTarget[]
  pendingMax: number
  /** The longest that a send to it may take. */
  sendTimeoutMs: number
  batchWaitMs: number | undefined
  /** By destination: where people's items wait for company; empty for machines. */
  keptPlaces: Readonly<Record<string, Gathering>>
}

/** Of work that may last: in pages, so that it can be broken off, and says that it lives. */
export interface Paging {
  /** Asked before each page. */
  goesOn: () => Promise<boolean>
  /** Told after each page. */
  alive: () => void
}

const pageLength = 200

/** Of one list in one pass: what is more waits for the next. */
const maxPages = 50

/** Works through a list that what is done leaves; `work` says how many of a page left it. */
export async function eachPage(
  read: (page: { offset: number; count: number }) => Promise<string[]>,
  work: (refs: readonly string[]) => Promise<number>,
  { goesOn, alive }: Paging,
): Promise<void> {
  let left = 0
  for (let page = 0; page < maxPages && (await goesOn()); page += 1) {
    const refs = await read({ offset: left, count: pageLength })
    left += refs.length - (await work(refs))
    alive()
    if (refs.length < pageLength) return
  }
}
