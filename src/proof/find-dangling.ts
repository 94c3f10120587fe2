import type { Book } from '../ledger/book.ts'
import { sinksOf } from '../ledger/due.ts'
import { parseRef } from '../ledger/refs.ts'
import type { IndexEntry } from '../store/record-index.ts'
import type { DanglingPlace, DanglingRef } from './ledger-proof.ts'

/** References that one script looks at: it stops everybody else meanwhile. */
const pageLength = 100

interface Place {
  place: Exclude<DanglingPlace, 'records'>
  /** Of the sink or the collection; empty where there is one for all. */
  name: string
}

/** References that stand where they move nothing. Yields after each page, so that the caller may pause. */
export async function* findDangling(book: Book): AsyncGenerator<DanglingRef[]> {
  for (const name of await sinksOf(book)) {
    for (const place of ['due', 'orphans', 'dead', 'collect'] as const) {
      yield* findIn(book, { place, name })
    }
  }
  for await (const timers of pagesOf(book, { place: 'timers', name: '' })) {
    yield lookAt(book, { place: 'timers', name: '' }, timers)
    for (const timer of timers) {
      const ref = parseRef(timer)
      if (ref.kind === 'gathering') yield* findIn(book, { place: 'collect', name: ref.id })
    }
  }
}

async function* findIn(book: Book, place: Place): AsyncGenerator<DanglingRef[]> {
  for await (const refs of pagesOf(book, place)) yield lookAt(book, place, refs)
}

async function* pagesOf(book: Book, { place, name }: Place): AsyncGenerator<string[]> {
  const set = name === '' ? book.key(place) : book.key(place, name)
  let cursor = '0'
  do {
    const [next, listed] =
      place === 'orphans'
        ? await book.redis.sscan(set, cursor, 'COUNT', pageLength)
        : await book.redis.zscan(set, cursor, 'COUNT', pageLength)
    cursor = next
    const refs = place === 'orphans' ? listed : listed.filter((_text, i) => i % 2 === 0)
    for (let at = 0; at < refs.length; at += pageLength) yield refs.slice(at, at + pageLength)
  } while (cursor !== '0')
}

async function lookAt(
  book: Book,
  { place, name }: Place,
  refs: readonly string[],
): Promise<DanglingRef[]> {
  const answer = (await book.run('find-dangling', place, name, ...refs)) as string[]
  return answer.flatMap((ref, i): DanglingRef[] => {
    if (i % 2 === 1) return []
    return [{ ref, sink: parseRef(ref).sink, place, why: answer[i + 1] as DanglingRef['why'] }]
  })
}

/** Entries of the index that have no record, or stand where it is not, each at one instant. */
export async function findMisfiled(
  book: Book,
  entries: readonly IndexEntry[],
): Promise<DanglingRef[]> {
  const ids = entries.map(({ recordId }) => recordId)
  const answer = (await book.run('find-misfiled', book.retention.story, ...ids)) as string[]
  return answer.flatMap((ref, i): DanglingRef[] =>
    i % 2 === 1
      ? []
      : [{ ref, sink: '', place: 'records', why: answer[i + 1] as DanglingRef['why'] }],
  )
}
