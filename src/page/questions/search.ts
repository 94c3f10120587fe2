/** Searches events: by uid, by identifier, login or host, or by words in what is kept of each. */
import { z } from 'zod'
import { refang } from '../../messages/sanitize.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { type LedgerRecord, readRecord } from '../../store/records.ts'
import { listByTerm, type TermKind, type TermPage } from '../../store/history/terms.ts'
import { type Asker, isHiddenRecord } from '../asker.ts'
import { field, question } from '../question.ts'
import { addressOf, eventUrl } from '../output/urls.ts'
import { toIso } from './event.ts'
import { badCursor } from '../listing.ts'
import {
  byName,
  formatPlace,
  parsePlace,
  type Place,
  recordsAtMost,
  walkRecords,
} from '../record-walk.ts'

const kinds = ['identifier', 'login', 'host'] as const

const searchQuery = z.object({
  account: field.account,
  q: field.text('A uid, an identifier, a login, a host, or words.'),
  by: z
    .enum(['any', ...kinds, 'words'])
    .default('any')
    .describe('What q is; any: whatever is found first, in this order.'),
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
  async ask(asker, query) {
    const { q = '', limit } = query
    const found = await findEvents(asker, { ...query, q: refang(q) })
    const { by, cursor, searchedToMs } = found
    const records = found.records.filter((record) => !isHiddenRecord(asker, record))
    const next = cursor === undefined ? null : addressOf('/search', { ...query, by, cursor, limit })
    return {
      query: q,
      results: records.map(describeResult),
      next,
      searched_back_to: searchedToMs === undefined ? null : toIso(searchedToMs),
    }
  },
})

function describeResult(record: LedgerRecord) {
  const { title, uid, type, severity, account, firstSeenMs } = record
  const at = toIso(firstSeenMs)
  return { url: eventUrl(record), title: title ?? null, uid, type, severity, account, at }
}

type Wanted = SearchQuery & { q: string }

async function findEvents(asker: Asker, query: Wanted): Promise<Found> {
  if (query.q === '') return { records: [], by: 'any' }
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
  const ledgers = byName(all).filter(({ account }) => account >= first)
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

/** Account after account; of each what waits, then what was settled, the newest first. */
async function findByWords(ledgers: Asker['ledgers'], query: Wanted): Promise<Found> {
  const words = query.q.toLowerCase()
  const start = query.cursor === undefined ? undefined : parsePlace(query.cursor)
  const records: LedgerRecord[] = []
  let read = 0
  let last: Place | undefined
  for await (const { record, place } of walkRecords(ledgers, { start })) {
    if (last && (records.length === query.limit || read === recordsAtMost)) {
      const searchedToMs = last.isPending ? undefined : last.sinceMs
      return { records, by: 'words', cursor: formatPlace(last), searchedToMs }
    }
    if (holds(record, words)) records.push(record)
    last = place
    read += 1
  }
  return { records, by: 'words' }
}

/** Titles show domains defanged: both forms are found. */
function holds({ title = '', uid, identifiers, tags }: LedgerRecord, words: string): boolean {
  return [title, uid, ...identifiers, ...tags].some((text) =>
    refang(text).toLowerCase().includes(words),
  )
}
