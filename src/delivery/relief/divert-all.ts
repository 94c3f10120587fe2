/** Everything that waits for one sink, whatever it waits as, goes to the sink's fallback. */
import { messageIdOf } from '../../digest/seal.ts'
import { dueTimers, peekTurn } from '../../digest/timers.ts'
import type { Book } from '../../ledger/book.ts'
import { collectedRefs, waitingRefs } from '../../ledger/due.ts'
import { parseRef } from '../../ledger/refs.ts'
import type { Diverter } from './diverter.ts'
import { eachPage, type Paging } from './each-page.ts'

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
