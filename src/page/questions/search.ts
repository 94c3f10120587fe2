/** Searches events: by uid, by identifier, login or host, or by words in what is kept of each. */
import { z } from 'zod'
import { refang } from '../../messages/sanitize.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { type LedgerRecord, readRecord, scanRecordsBefore } from '../../store/records.ts'
import { listByTerm, listSeenBefore, type TermKind, type TermPage } from '../../store/terms.ts'
import { type Asker, isHiddenRecord } from '../asker.ts'
import { PageError } from '../page-error.ts'
import { field, question } from '../question.ts'
import { addressOf, eventUrl } from '../urls.ts'
import type { SearchData } from '../view-data.ts'
import { toIso } from './event.ts'
import { badCursor } from '../listing.ts'

const kinds = ['identifier', 'login', 'host'] as const

const searchQuery = z.object({
  account: field.account,
  q: field.text('A uid, an identifier, a login, a host, or words.'),
  by: z
    .enum(['any', ...kinds, 'words'])
    .default('any')
    .describe('What q is; any: whatever is found first, in this order.'),
  term: z
    .string()
    .max(60)
    .optional()
    .describe('In place of q: a login or host as an event names it; goes back from cursor.'),
  cursor: field.cursor,
  limit: field.limit,
})

type SearchQuery = z.output<typeof searchQuery>

interface Found {
  records: LedgerRecord[]
  by: SearchQuery['by']
  cursor?: string | undefined
  searchedToMs?: number | undefined
}

export const searchQuestion = question({
  path: '/events',
  summary:
    'events by uid, identifier, login, host, or words of titles: newest first, of several accounts by account',
  query: searchQuery,
  async ask(asker, query): Promise<SearchData> {
    const { q = '', limit } = query
    const found = await findEvents(asker, { ...query, q: refang(q) })
    const { by, cursor, searchedToMs } = found
    const records = found.records.filter((record) => !isHiddenRecord(asker, record))
    const next = cursor === undefined ? null : addressOf('/search', { ...query, by, cursor, limit })
    return {
      query: query.term === undefined ? q : `the same ${query.by}`,
      results: records.map(describeResult),
      next,
      searched_back_to: searchedToMs === undefined ? null : toIso(searchedToMs),
    }
  },
})

const nothing: Found = { records: [], by: 'any' }

function describeResult(record: LedgerRecord): SearchData['results'][number] {
  const { title, uid, type, severity, account, firstSeenMs } = record
  const at = toIso(firstSeenMs)
  return { url: eventUrl(record), title: title ?? null, uid, type, severity, account, at }
}

type Wanted = SearchQuery & { q: string }

async function findEvents(asker: Asker, query: Wanted): Promise<Found> {
  const { term, q } = query
  if (term !== undefined) return findBefore(asker.ledgers, { ...query, term })
  if (q === '') return nothing
  const found = await findNext(asker, { ...query, ...readPlace(query) })
  return { ...found, ...(found.cursor !== undefined && { cursor: `${found.by}.${found.cursor}` }) }
}

/** A cursor says by what was found: it goes on by that. Throws PageError. */
function readPlace({ by, cursor }: Wanted): Pick<Wanted, 'by' | 'cursor'> {
  if (cursor === undefined) return { by, cursor }
  const [, found, place] = /^(identifier|login|host|words)\.(.+)$/.exec(cursor) ?? []
  if (place === undefined) throw badCursor()
  return { by: found as SearchQuery['by'], cursor: place }
}

async function findNext(asker: Asker, query: Wanted): Promise<Found> {
  const { by } = query
  if (by === 'any') {
    const known = await findByUid(asker.ledgers, query.q)
    if (known.length > 0) return { records: known, by }
    for (const kind of kinds) {
      const found = await findByTerm(asker.ledgers, kind, query)
      if (found.records.length > 0) return found
    }
  }
  return by === 'any' || by === 'words'
    ? findByWords(asker.ledgers, query)
    : findByTerm(asker.ledgers, by, query)
}

/** What an event names as seen before: of one account, back from a record. */
async function findBefore(
  [ledger, another]: Asker['ledgers'],
  { by, term: digest, limit, cursor }: Wanted & { term: string },
): Promise<Found> {
  if (!ledger || another || cursor === undefined || (by !== 'login' && by !== 'host')) {
    const problem = 'term goes with account, by and cursor, as an event has them'
    throw new PageError('bad_request', problem, 'open it from the event')
  }
  const page = await listSeenBefore(ledger, { kind: by, digest }, { limit, before: cursor })
  return { records: page.records, by, cursor: page.next }
}

async function findByUid(ledgers: Asker['ledgers'], uid: string): Promise<LedgerRecord[]> {
  const found = await Promise.all(
    ledgers.map((ledger) => readRecord(ledger, ledger.fingerprints.recordId(uid))),
  )
  return found.filter((record) => record !== undefined)
}

/** Account after account, of each the newest first; a page in order of time. */
async function findByTerm(
  all: Asker['ledgers'],
  by: TermKind,
  { q, limit, cursor = '~' }: Wanted,
): Promise<Found> {
  const [place = '', first = ''] = cursor.split('~')
  const ledgers = all
    .filter(({ account }) => account >= first)
    .toSorted((one, other) => (one.account < other.account ? -1 : 1))
  const list = (ledger: AccountLedger, most: number): Promise<TermPage> => {
    const before = ledger.account === first && place !== '' ? place : undefined
    return listByTerm(ledger, { kind: by, value: q }, { limit: most, before })
  }
  const pages = await Promise.all(ledgers.map((ledger) => list(ledger, limit)))
  const records: LedgerRecord[] = []
  for (const [at, ledger] of ledgers.entries()) {
    const room = limit - records.length
    let page = pages[at]
    if (!page || (page.records.length === 0 && page.next === undefined)) continue
    if (room === 0) return { records: newestFirst(records), by, cursor: `~${ledger.account}` }
    if (page.records.length > room) page = await list(ledger, room)
    records.push(...page.records)
    if (page.next !== undefined) {
      return { records: newestFirst(records), by, cursor: `${page.next}~${ledger.account}` }
    }
  }
  return { records: newestFirst(records), by }
}

function newestFirst(records: readonly LedgerRecord[]): LedgerRecord[] {
  return records.toSorted((one, other) => other.firstSeenMs - one.firstSeenMs)
}

/** Records that wait, and settled ones, of all accounts that one page looks into: some 100 ms. */
const recordsAtMost = 1_800

/** Of each account; less of it would find little. */
const leastOfOne = 600

/** Looks into what waits, then into what was settled, each newest first. */
async function findByWords(ledgers: Asker['ledgers'], query: Wanted): Promise<Found> {
  if (ledgers.length * leastOfOne > recordsAtMost) {
    const problem = 'words are searched in a few accounts at a time'
    throw new PageError('bad_request', problem, 'choose an account, or name a whole identifier')
  }
  const { limit } = query
  const start = readCursor(query.cursor)
  const words = query.q.toLowerCase()
  const waiting = start.isPending
    ? await readPart(ledgers, { ...start, words, limit })
    : { records: [], readTo: undefined }
  if (waiting.readTo) {
    return { records: waiting.records, by: 'words', cursor: `-${formatPlace(waiting.readTo)}` }
  }
  const settled = await readPart(ledgers, {
    words,
    isPending: false,
    behind: start.isPending ? undefined : start.behind,
    limit: Math.max(1, limit - waiting.records.length),
  })
  const { readTo } = settled
  return {
    records: [...waiting.records, ...settled.records],
    by: 'words',
    ...(readTo && { cursor: formatPlace(readTo), searchedToMs: readTo.sinceMs }),
  }
}

/** Of a record in the order of the index: of one millisecond by id. */
interface Place {
  sinceMs: number
  recordId: string
}

function formatPlace({ sinceMs, recordId }: Place): string {
  return `${sinceMs}.${recordId}`
}

interface Start {
  isPending: boolean
  /** Newer records are passed over, and this one; undefined: none is. */
  behind: Place | undefined
}

/** A place; with a minus, among what waits. */
function readCursor(cursor: string | undefined): Start {
  if (cursor === undefined) return { isPending: true, behind: undefined }
  const [, minus, ms, recordId] = /^(-?)(\d{1,15})\.([0-9a-f]{24})$/.exec(cursor) ?? []
  if (ms === undefined || recordId === undefined) throw badCursor()
  return { isPending: minus === '-', behind: { sinceMs: Number(ms), recordId } }
}

function isBehind(one: Place, other: Place, isPending: boolean): boolean {
  if (one.sinceMs !== other.sinceMs) return one.sinceMs < other.sinceMs
  return isPending ? one.recordId > other.recordId : one.recordId < other.recordId
}

interface Part extends Start {
  words: string
  /** How many are found at most. */
  limit: number
}

interface Page {
  found: { record: LedgerRecord; place: Place }[]
  /** The last that was looked into; undefined: all were. */
  readTo: Place | undefined
}

/** Each account is read as far as the others, so that one place is enough of a cursor. */
async function readPart(
  ledgers: Asker['ledgers'],
  part: Part,
): Promise<{ records: LedgerRecord[]; readTo: Place | undefined }> {
  const { isPending, limit } = part
  const atMost = recordsAtMost / ledgers.length
  const pages = await Promise.all(ledgers.map((ledger) => readOne(ledger, part, atMost)))
  const order = (one: Place, other: Place): number => (isBehind(one, other, isPending) ? 1 : -1)
  const [readTo] = pages.flatMap((page) => page.readTo ?? []).toSorted(order)
  const found = pages
    .flatMap((page) => page.found)
    .filter(({ place }) => readTo === undefined || !isBehind(place, readTo, isPending))
    .toSorted((one, other) => order(one.place, other.place))
  const last = found.length > limit ? found[limit - 1]?.place : readTo
  return { records: found.slice(0, limit).map(({ record }) => record), readTo: last }
}

async function readOne(ledger: AccountLedger, part: Part, atMost: number): Promise<Page> {
  const { isPending, behind, words, limit } = part
  const found: Page['found'] = []
  let read = 0
  let last: Place | undefined
  const from = { isPending, beforeMs: behind?.sinceMs }
  for await (const { record, sinceMs } of scanRecordsBefore(ledger, from)) {
    const place = { sinceMs, recordId: record.recordId }
    if (behind && !isBehind(place, behind, isPending)) continue
    if (found.length >= limit || read >= atMost) return { found, readTo: last }
    if (holds(record, words)) found.push({ record, place })
    last = place
    read += 1
  }
  return { found, readTo: undefined }
}

/** Titles show domains defanged: both forms are found. */
function holds({ title = '', uid, identifiers, tags }: LedgerRecord, words: string): boolean {
  return [title, uid, ...identifiers, ...tags].some((text) =>
    refang(text).toLowerCase().includes(words),
  )
}
