/** Messages as CSV, written page by page while they are read. */
import { Readable } from 'node:stream'
import { byteOrderMark, csvLine } from '../../messages/csv.ts'
import type { ToldMessage } from '../questions/told.ts'

/** A longer period is asked for in parts. */
const rowsAtMost = 10_000

const columns = [
  'at',
  'account',
  'sink',
  'recipient',
  'severity',
  'title',
  'events',
  'outcome',
  'attempts',
  'delay_s',
  'id',
] as const

interface Page {
  messages: ToldMessage[]
  cursor: string | undefined
}

/**
 * `read`: a page of messages behind a cursor. Throws what reading the first one throws. The last line
 * says so where more was left out.
 */
export async function messagesCsv(
  read: (cursor: string | undefined) => Promise<Page>,
): Promise<Readable> {
  return Readable.from(lines(await read(undefined), read))
}

async function* lines(
  first: Page,
  read: (cursor: string | undefined) => Promise<Page>,
): AsyncGenerator<string> {
  yield `${byteOrderMark}${csvLine(columns)}`
  let rows = 0
  for (let page = first; ; page = await read(page.cursor)) {
    yield page.messages
      .map((message) => csvLine(columns.map((name) => String(message[name] ?? ''))))
      .join('')
    rows += page.messages.length
    if (page.cursor === undefined) return
    if (rows >= rowsAtMost) {
      yield csvLine([`more messages are left out: ask for a shorter period`])
      return
    }
  }
}
