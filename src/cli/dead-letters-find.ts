/** Which dead letters a command speaks of. */
import type { Config } from '../config/config.ts'
import type { Book } from '../ledger/book.ts'
import { findDeadLetter, listDeadLetters, type DeadLetter } from '../ledger/dead-letters.ts'
import { sinksOf } from '../ledger/due.ts'
import { CommandError, findNamed } from './command-error.ts'
import type { OpenLedger } from './open-ledger.ts'

/** One sink's letters in one account's book. */
export interface Drawer {
  book: Book
  sink: string
}

/** Those of one sink, or all; also of sinks that the configuration no longer has. Throws CommandError. */
export async function drawersOf(
  { books }: OpenLedger,
  { sinks }: Config,
  sink: string | undefined,
): Promise<Drawer[]> {
  const drawers: Drawer[] = []
  for (const book of books) {
    for (const name of await sinksOf(book)) drawers.push({ book, sink: name })
  }
  if (sink === undefined) return drawers
  const names = new Set([...sinks.map(({ name }) => name), ...drawers.map((one) => one.sink)])
  findNamed(
    [...names].map((name) => ({ name })),
    sink,
    'sink',
  )
  return drawers.filter((drawer) => drawer.sink === sink)
}

const pageLength = 200

/** Every letter of the drawers that stands there now. */
export async function* eachLetter(drawers: readonly Drawer[]): AsyncGenerator<DeadLetter> {
  for (const { book, sink } of drawers) {
    for (let offset = 0, total = 1; offset < total; offset += pageLength) {
      const page = await listDeadLetters(book, sink, { offset, count: pageLength })
      total = page.total
      yield* page.letters
    }
  }
}

/** By the id that `dead-letters list` shows. Throws CommandError. */
export async function letterById({ books }: OpenLedger, id: string): Promise<DeadLetter> {
  const [, account = '', inBook = ''] = /^([a-z][a-z0-9_-]*)\.([0-9a-f]+\.\d+)$/.exec(id) ?? []
  if (inBook === '') {
    const remedy = 'take one from "dead-letters list"'
    throw new CommandError('mistake', `"${id}" is not the id of a dead letter; ${remedy}`)
  }
  const named = books.map((book) => ({ name: book.account, book }))
  const letter = await findDeadLetter(findNamed(named, account, 'account').book, inBook)
  if (letter !== undefined) return letter
  throw new CommandError(
    'refused',
    `there is no dead letter ${id}: it was replayed or discarded, or its story has expired`,
  )
}
