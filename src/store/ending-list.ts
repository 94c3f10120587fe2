/**
 * Lists of endings over several accounts, newest first, in pages. A cursor is a place in the order of all
 * entries, which new ones do not change.
 */
import { z } from 'zod'
import { type Severity, severityRank } from '../event.ts'
import type { AccountLedger } from './account-ledger.ts'
import type { Outcome } from './dated-counts.ts'
import {
  type Ending,
  type Entry,
  type PageOptions,
  type Place,
  readEntries,
  type Span,
  type Stream,
  toEnding,
} from './endings.ts'

/** What is left out does not narrow. */
export interface EndingFilter extends Span {
  outcomes?: ReadonlySet<Outcome> | undefined
  sink?: string | undefined
  destinations?: ReadonlySet<string> | undefined
  /** The worst of its items is at least as severe. */
  leastSeverity?: Severity | undefined
  reason?: string | undefined
  rule?: string | undefined
  messageId?: string | undefined
  /** Whether all of it is what Tocsin tells of itself. */
  isOwn?: boolean | undefined
}

function fits(entry: Entry, filter: EndingFilter): boolean {
  const {
    outcomes: among,
    sink,
    destinations,
    leastSeverity,
    reason,
    rule,
    messageId,
    isOwn,
  } = filter
  return (
    (among?.has(entry.outcome) ?? true) &&
    (sink === undefined || entry.sink === sink) &&
    (destinations?.has(entry.destination) ?? true) &&
    (leastSeverity === undefined || severityRank(entry.severity) >= severityRank(leastSeverity)) &&
    (reason === undefined || entry.reason === reason) &&
    (rule === undefined || entry.rule === rule) &&
    (messageId === undefined || entry.messageId === messageId) &&
    (isOwn === undefined || entry.isOwn === isOwn)
  )
}

interface Limit {
  /** Endings at most. */
  limit: number
  /** Items at most, but for those of the last ending. */
  itemsAtMost?: number
}

interface ListOptions extends Limit {
  /** Where the page before ended. */
  before?: string | undefined
  /** Entries read at most, from 1 on. Where that ends a page, its last message may be there in part. */
  scanAtMost: number
  /** Each entry is an ending of its own, also where it is part of a message. */
  isByEntry?: boolean
}

export interface EndingList {
  endings: Ending[]
  /** Goes on behind this page; undefined: nothing is behind it. */
  next: string | undefined
  /** How far back was looked, ms; undefined: to the end. */
  scannedToMs: number | undefined
}

/**
 * Lists endings of all ledgers, newest first. The cursor survives new entries: each that was there at the
 * first page is on one page. Throws CursorError for a cursor that is none.
 */
export async function listEndings(
  ledgers: readonly AccountLedger[],
  filter: EndingFilter,
  options: ListOptions,
): Promise<EndingList> {
  const { before, scanAtMost, isByEntry = false } = options
  const start = before === undefined ? undefined : parseCursor(before)
  const page = new Page(filter, options, start?.shown)
  let scanned = 0
  for await (const entry of walkEntries(ledgers, filter, start)) {
    if (scanned === scanAtMost || page.isComplete(entry)) return page.end(true)
    page.add(isByEntry ? { ...entry, isPart: false } : entry)
    scanned += 1
  }
  return page.end(false)
}

/**
 * Within so long of its newest entry the rest of a message is looked for, ms: some hundred members are
 * settled at a time, account after account. What is settled later is an ending of its own.
 */
const settlingMs = 60_000

/** Gathers endings up to the limit, and after that only what belongs to those that it has. */
class Page {
  readonly #filter: EndingFilter
  readonly #limit: Limit
  readonly #shownBefore: ReadonlyMap<string, number>
  readonly #found: Entry[] = []
  /** Messages of which more may come. */
  readonly #open = new Map<string, Entry>()
  #count = 0
  #items = 0
  /** The last entry that belongs to the page, or to none. */
  #last: Entry | undefined
  #hasPassedOver = false

  constructor(filter: EndingFilter, limit: Limit, shownBefore: Cursor['shown'] = []) {
    this.#filter = filter
    this.#limit = limit
    this.#shownBefore = new Map(shownBefore)
  }

  isComplete({ atMs }: Entry): boolean {
    return this.#isFull() && !this.#listOpen(atMs).some(([name]) => this.#open.has(name))
  }

  #isFull(): boolean {
    const { limit, itemsAtMost = Infinity } = this.#limit
    return this.#count >= limit || this.#items >= itemsAtMost
  }

  add(entry: Entry): void {
    const isFull = this.#isFull()
    if (!isFull) this.#last = entry
    const name = nameOf(entry)
    const shownMs = this.#shownBefore.get(name) ?? Infinity
    if (entry.isPart && shownMs - entry.atMs <= settlingMs) return
    const known = entry.isPart ? this.#open.get(name) : undefined
    if (known && known.atMs - entry.atMs <= settlingMs) {
      if (!isFull || fits(known, this.#filter)) this.#merge(known, entry)
    } else if (isFull) this.#hasPassedOver = true
    else {
      this.#found.push(entry)
      this.#count += Number(fits(entry, this.#filter))
      this.#items += fits(entry, this.#filter) ? countItems(entry) : 0
      if (entry.isPart && this.#hasRoom(entry)) this.#open.set(name, entry)
    }
  }

  #merge(known: Entry, { items, severity, toldAfterMs, isOwn }: Entry): void {
    const didFit = fits(known, this.#filter)
    const worse = severityRank(severity) - severityRank(known.severity)
    const isLonger = worse === 0 && (toldAfterMs ?? -1) > (known.toldAfterMs ?? -1)
    if (worse > 0 || isLonger) Object.assign(known, { severity, toldAfterMs })
    known.isOwn &&= isOwn
    if (worse > 0) known.items.unshift(...items)
    else known.items.push(...items)
    this.#count += Number(fits(known, this.#filter)) - Number(didFit)
    this.#items += fits(known, this.#filter) ? countItems({ items }) : 0
  }

  /** Messages on this page, or on one before, of which more may come at this time or before it. */
  #listOpen(atMs: number): Cursor['shown'] {
    return this.#listNear(atMs, (entry) => fits(entry, this.#filter))
  }

  /** A cursor names so many as fit into an address; later parts of others are rows of their own. */
  #hasRoom({ atMs }: Entry): boolean {
    return this.#listNear(atMs, () => true).length < mostShown
  }

  #listNear(atMs: number, isWanted: (entry: Entry) => boolean): Cursor['shown'] {
    const here = [...this.#open].filter(([, entry]) => isWanted(entry))
    const newest = here.map(([name, entry]): [string, number] => [name, entry.atMs])
    return [...this.#shownBefore, ...newest].filter(([, newestMs]) => newestMs - atMs <= settlingMs)
  }

  end(hasMore: boolean): EndingList {
    const endings = this.#found.filter((entry) => fits(entry, this.#filter)).map(toEnding)
    const last = hasMore || this.#hasPassedOver ? this.#last : undefined
    if (!last) return { endings, next: undefined, scannedToMs: undefined }
    const next = formatCursor({ ...last, shown: this.#listOpen(last.atMs) })
    return { endings, next, scannedToMs: last.atMs }
  }
}

function countItems({ items }: Pick<Entry, 'items'>): number {
  return items.reduce((sum, { text }) => sum + text.split(' ').length, 0)
}

/** Short, for when many digests end at once a cursor names hundreds. */
function nameOf({ messageId = '', outcome }: Pick<Entry, 'messageId' | 'outcome'>): string {
  return `${messageId.slice(1, 11)}${outcome.slice(0, 3)}`
}

const mostShown = 300

interface Cursor extends Place {
  /** Messages that earlier pages have, of which more may come, and when the newest of each ended, ms. */
  shown: [name: string, newestMs: number][]
}

function comparePlaces(one: Place, other: Place): number {
  if (one.atMs !== other.atMs) return other.atMs - one.atMs
  if (one.account !== other.account) return one.account < other.account ? -1 : 1
  return other.sequence - one.sequence
}

/** A cursor of another list, or one that somebody made up. */
export class CursorError extends Error {
  override readonly name = 'CursorError'

  constructor() {
    super('the cursor is none that a list of endings gave')
  }
}

const storedCursor = z.tuple([
  z.int().min(1), // no entry is at 0-0
  z.int().min(0),
  z.string().max(200),
  z.array(z.tuple([z.string().max(20), z.int()])).max(mostShown),
])

function formatCursor({ atMs, sequence, account, shown }: Cursor): string {
  const after = shown.map(([name, newestMs]): [string, number] => [name, newestMs - atMs])
  const stored: z.infer<typeof storedCursor> = [atMs, sequence, account, after]
  return Buffer.from(JSON.stringify(stored)).toString('base64url')
}

/** A cursor of a list by entries that goes on with this one, however many new ones come. */
export function cursorAt({ account, id }: Ending): string {
  const [atMs = 0, sequence = 0] = id.split('-').map(Number)
  return formatCursor({ account, atMs, sequence: sequence + 1, shown: [] })
}

function parseCursor(text: string): Cursor {
  try {
    const json: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    const [atMs, sequence, account, after] = storedCursor.parse(json)
    const shown = after.map(([name, afterMs]): [string, number] => [name, atMs + afterMs])
    return { atMs, sequence, account, shown }
  } catch {
    throw new CursorError()
  }
}

/** Entries of all ledgers behind `start`, in the order of their places. */
async function* walkEntries(
  ledgers: readonly AccountLedger[],
  span: Span,
  start: Place | undefined,
): AsyncGenerator<Entry> {
  const count = Math.max(minPage, Math.ceil(maxPage / Math.max(1, ledgers.length)))
  const pages = ledgers.map((ledger) => {
    const { fromMs } = span
    return readStream(ledger, { fromMs, ...startOf(ledger, span, start), count })
  })
  const streams = (await Promise.all(pages)).filter(({ entries }) => entries.length > 0)
  /** The one with the newest entry last. */
  const open = streams.toSorted((one, other) => comparePlaces(headOf(other), headOf(one)))
  for (let newest = open.pop(); newest !== undefined; newest = open.pop()) {
    yield headOf(newest)
    const rest = await advance(newest, span)
    if (rest) open.splice(findPlace(open, headOf(rest)), 0, rest)
  }
}

/** Entries that one command reads. */
const [minPage, maxPage] = [10, 500]

/** What is read of a stream, from the entry at `at` on. */
interface OpenStream {
  ledger: AccountLedger
  entries: Entry[]
  at: number
  isLast: boolean
}

async function readStream(ledger: AccountLedger, options: PageOptions): Promise<OpenStream> {
  const entries = await readEntries(ledger, options)
  return { ledger, entries, at: 0, isLast: entries.length < options.count }
}

function headOf({ entries, at }: OpenStream): Entry {
  const entry = entries[at]
  if (!entry) throw new Error('a stream without entries is not open')
  return entry
}

async function advance(stream: OpenStream, { fromMs }: Span): Promise<OpenStream | undefined> {
  const { ledger, entries, at, isLast } = stream
  if (at + 1 < entries.length) return { ...stream, at: at + 1 }
  if (isLast) return undefined
  // of many streams each gives little, so that is asked for; of few each gives much
  const more = { fromMs, before: headOf(stream).id, count: Math.min(maxPage, 2 * entries.length) }
  const next = await readStream(ledger, more)
  return next.entries.length > 0 ? next : undefined
}

/** Where a stream belongs among those that are open, by its newest entry. */
function findPlace(open: readonly OpenStream[], place: Place): number {
  let [from, to] = [0, open.length]
  while (from < to) {
    const middle = Math.floor((from + to) / 2)
    const stream = open[middle]
    if (stream && comparePlaces(headOf(stream), place) > 0) from = middle + 1
    else to = middle
  }
  return from
}

function startOf(
  { account }: Stream,
  { toMs = Infinity }: Span,
  start: Place | undefined,
): Partial<PageOptions> {
  if (!start || toMs < start.atMs) return toMs === Infinity ? {} : { toMs }
  const { atMs, sequence } = start
  if (account === start.account) return { before: `${atMs}-${sequence}` }
  return { toMs: account < start.account ? atMs - 1 : atMs }
}
