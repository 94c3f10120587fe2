/**
 * Takes what cannot be sent to a sink to the sink's fallback. Each step is whole in itself: where the
 * process dies between two, the items are still the sink's, and the next pass goes on.
 */
import { unsealMessage, type Unsealed } from '../../digest/unseal-message.ts'
import { sealedMembers } from '../../digest/seal.ts'
import { ownFeed } from '../../events/own-feed.ts'
import type { Book } from '../../ledger/book.ts'
import type { MadeWork } from '../../ledger/collecting.ts'
import { readItems, type FoundItem } from '../../ledger/records.ts'
import { bySeverity, divertItem } from '../../ledger/redirect.ts'
import { parseRef } from '../../ledger/refs.ts'
import type { Metrics } from '../../runtime/metrics.ts'
import { batchMembers } from '../claims.ts'
import type { WorkTeller } from '../work-hints.ts'
import type { Paging } from './each-page.ts'
import type { ReliefSink } from './relief-sink.ts'

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

export interface DiverterOptions {
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
