/**
 * Lists of endings over several accounts, newest first, in pages. A cursor is a place in the order of all
 * entries, which new ones do not change.
 */
import { z } from 'zod'
import { type Severity, severityRank } from '../../event.ts'
import type { AccountLedger } from '../account-ledger.ts'
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

interface ListOptions {
  /** Endings at most. */
  limit: number
  /** Where the page before ended. */
  before?: string | undefined
  /** Entries read at most, from 1 on. */
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
 * first page is on one page. Entries of one message are one ending where they are on one page. Throws
 * CursorError for a cursor that is none.
 */
export async function listEndings(
  ledgers: readonly AccountLedger[],
  filter: EndingFilter,
  options: ListOptions,
): Promise<EndingList> {
  const { limit, scanAtMost, isByEntry = false } = options
  const start = options.before === undefined ? undefined : parseCursor(options.before)
  const found: Entry[] = []
  /** Of each message the ending that more of it belongs to. */
  const open = new Map<string, Entry>()
  let [scanned, count] = [0, 0]
  let last: Entry | undefined
  for await (const entry of walkEntries(ledgers, filter, start)) {
    const known = isByEntry ? undefined : findRest(open, entry)
    const didFit = known !== undefined && fits(known, filter)
    if (scanned === scanAtMost || (count >= limit && !didFit)) return endPage(found, filter, last)
    if (known) merge(known, entry)
    else found.push(entry)
    if (!known && entry.isPart) open.set(nameOf(entry), entry)
    count += Number(fits(known ?? entry, filter)) - Number(didFit)
    last = entry
    scanned += 1
  }
  return endPage(found, filter, undefined)
}

/**
 * Within so long of its newest entry the rest of a message is looked for, ms. Some hundred members
 * are settled at a time, account after account. What is settled later was sent again.
 */
const settlingMs = 60_000

/** The ending of which the entry is more. */
function findRest(open: ReadonlyMap<string, Entry>, entry: Entry): Entry | undefined {
  const known = entry.isPart ? open.get(nameOf(entry)) : undefined
  return known && known.atMs - entry.atMs <= settlingMs ? known : undefined
}

function nameOf({ messageId = '', outcome }: Entry): string {
  return `${messageId} ${outcome}`
}

function merge(known: Entry, { items, severity, toldAfterMs, isOwn }: Entry): void {
  const worse = severityRank(severity) - severityRank(known.severity)
  const isLonger = worse === 0 && (toldAfterMs ?? -1) > (known.toldAfterMs ?? -1)
  if (worse > 0 || isLonger) Object.assign(known, { severity, toldAfterMs })
  known.isOwn &&= isOwn
  if (worse > 0) known.items.unshift(...items)
  else known.items.push(...items)
}

/** `last`: behind which more may be. */
function endPage(
  found: readonly Entry[],
  filter: EndingFilter,
  last: Entry | undefined,
): EndingList {
  const endings = found.filter((entry) => fits(entry, filter)).map(toEnding)
  return { endings, next: last && formatCursor(last), scannedToMs: last?.atMs }
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
])

function formatCursor({ atMs, sequence, account }: Place): string {
  return Buffer.from(JSON.stringify([atMs, sequence, account])).toString('base64url')
}

/** A cursor of a list by entries that goes on with this one, however many new ones come. */
export function cursorAt({ account, id }: Ending): string {
  const [atMs = 0, sequence = 0] = id.split('-').map(Number)
  return formatCursor({ account, atMs, sequence: sequence + 1 })
}

function parseCursor(text: string): Place {
  try {
    const json: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    const [atMs, sequence, account] = storedCursor.parse(json)
    return { atMs, sequence, account }
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
  const open = (await Promise.all(pages)).filter(({ entries }) => entries.length > 0)
  while (open.length > 0) {
    const newest = open.reduce((one, other) =>
      comparePlaces(headOf(one), headOf(other)) < 0 ? one : other,
    )
    yield headOf(newest)
    if (!(await advance(newest, span))) open.splice(open.indexOf(newest), 1)
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

/** Returns whether the stream has a further entry. */
async function advance(stream: OpenStream, { fromMs }: Span): Promise<boolean> {
  const { ledger, entries, isLast } = stream
  const before = headOf(stream).id
  stream.at += 1
  if (stream.at < entries.length) return true
  if (isLast) return false
  // of many streams each gives little, so that is asked for; of few each gives much
  const more = { fromMs, before, count: Math.min(maxPage, 2 * entries.length) }
  Object.assign(stream, await readStream(ledger, more))
  return stream.entries.length > 0
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
