/** A summary as a delivery: the events that it shows, and the file with all of them where one is sent. */
import { sealedMembers } from '../digest/seal.ts'
import type { MessageAbout } from '../digest/sealed-message.ts'
import type { Book } from '../ledger/book.ts'
import { readItems, type FoundItem } from '../ledger/records.ts'
import { attachmentOf, csvRowOf, type CsvRow } from '../messages/csv.ts'
import type { Attachment, DeliveryMember, Sink } from '../sinks/sink.ts'
import type { Begun } from './attempt.ts'
import { memberOfItem, type MemberOptions } from './member-of.ts'

export interface SummaryWork {
  sink: Sink
  messageId: string
  book: (account: string) => Book | undefined
  options: MemberOptions
  /** All that it stands for, in one book; by default what is sealed. */
  refs?: (book: Book) => Promise<string[]>
}

export interface SummaryParts {
  about: MessageAbout
  members: DeliveryMember[]
  attachment: Attachment | undefined
}

const readChunk = 300

/** Rows of a file: more take seconds to pack, and the job's lock is short. The last line counts the rest. */
const maxRows = 20_000

/** Members of an account that is not configured any more are counted and not shown. */
export async function summaryOf(
  work: SummaryWork,
  begun: Pick<Begun, 'about'>,
): Promise<SummaryParts> {
  const about = JSON.parse(begun.about ?? '{}') as MessageAbout
  const found: FoundItem[] = []
  for (const { account, ref } of about.shown) {
    const book = work.book(account)
    if (book) found.push(...(await readItems(book, [ref])))
  }
  return {
    about,
    members: found.flatMap((item) => memberOfItem(work.sink, item, work.options) ?? []),
    attachment: await fileOf(work, about),
  }
}

/** Every event, where more were collected than the message shows. */
async function fileOf(work: SummaryWork, about: MessageAbout): Promise<Attachment | undefined> {
  const { summary, accounts, shown } = about
  if (work.sink.canAttach !== true || summary.total <= shown.length) return undefined
  const rows: CsvRow[] = []
  for (const account of accounts) {
    const book = work.book(account)
    if (book) rows.push(...(await rowsOf(work, book, maxRows - rows.length)))
  }
  const day = new Date(summary.digest?.toMs ?? summary.lastAtMs).toISOString().slice(0, 10)
  return attachmentOf(rows, `tocsin-${summary.kind}-${day}`, summary.total)
}

async function rowsOf(work: SummaryWork, book: Book, max: number): Promise<CsvRow[]> {
  const { sink, messageId, options } = work
  const all = await (work.refs?.(book) ?? sealedMembers(book, messageId))
  const refs = all.slice(0, max)
  const rows: CsvRow[] = []
  for (let at = 0; at < refs.length; at += readChunk) {
    const found = await readItems(book, refs.slice(at, at + readChunk))
    rows.push(...found.flatMap((item) => memberOfItem(sink, item, options) ?? []).map(csvRowOf))
  }
  return rows
}
