/**
 * Terms: which events concern an identifier, a login or a host. Redis holds keyed digests of them,
 * never the words. Of an identifier, of which there are few, a stream has the ids of all its
 * records. Of logins and hosts, of which there are many, it is known how often they were seen, when
 * last and in which record. A new record keeps that (`seenBefore`), so each leads to the one
 * before. Only new records count; what is older than the history is forgotten.
 */
import type { ThreatEvent, Victims } from '../../event.ts'
import { redisNow } from '../../redis/scripts.ts'
import type { AccountLedger } from '../account-ledger.ts'
import { type LedgerRecord, readRecord, readRecords, type SeenBefore } from '../records.ts'

export type TermKind = 'identifier' | 'login' | 'host'

export interface Term {
  kind: TermKind
  value: string
}

/** Longer than any address of mail; a longer value is no term. */
const longestTerm = 320

/** Identifiers of an event that count. */
const mostIdentifiers = 20

/** A term as the scripts take it: its kind, its digest, the bucket of its digest. */
export interface StoredTerm {
  k: TermKind
  t: string
  b: number
}

/** Terms of one text are one term. */
export function termText(value: string): string {
  return value.trim().toLowerCase().toWellFormed()
}

function toStoredTerm({ fingerprints }: AccountLedger, { kind, value }: Term): StoredTerm[] {
  const text = termText(value)
  if (text === '' || text.length > longestTerm) return []
  const { digest, bucket } = fingerprints.term(kind, text)
  return [{ k: kind, t: digest, b: bucket }]
}

/** The terms of an event, each once. */
export function toStoredTerms(
  ledger: AccountLedger,
  { identifiers = [] }: Partial<Pick<ThreatEvent, 'identifiers'>>,
  { logins, hosts }: Victims = { logins: [], hosts: [] },
): StoredTerm[] {
  const terms: Term[] = [
    ...identifiers.slice(0, mostIdentifiers).map(({ name }) => toTerm('identifier', name)),
    ...logins.map((login) => toTerm('login', login)),
    ...hosts.map((host) => toTerm('host', host)),
  ]
  const stored = terms.flatMap((term) => toStoredTerm(ledger, term))
  return [...new Map(stored.map((term) => [`${term.k} ${term.t}`, term])).values()]
}

function toTerm(kind: TermKind, value: string): Term {
  return { kind, value }
}

export interface TermPage {
  records: LedgerRecord[]
  /** Goes on behind this page; undefined: nothing is behind it, or nobody knows any more. */
  next: string | undefined
}

interface PageOptions {
  limit: number
  /** Where the page before ended. */
  before?: string | undefined
}

/** Lists the records that concern a term, newest first; those that retention dropped are left out. */
export async function listByTerm(
  ledger: AccountLedger,
  term: Term,
  options: PageOptions,
): Promise<TermPage> {
  const [stored] = toStoredTerm(ledger, term)
  if (!stored) return { records: [], next: undefined }
  return term.kind === 'identifier'
    ? listOfIdentifier(ledger, stored, options)
    : followChain(ledger, stored, {
        limit: options.limit,
        before: options.before ?? (await readHead(ledger, stored)),
      })
}

const entryPlace = /^(\d{1,15}-\d{1,15})\.(\d{1,4})$/u

/** An entry of the stream has the ids of the records that one page brought, in their order. */
async function listOfIdentifier(
  ledger: AccountLedger,
  { t }: StoredTerm,
  { limit, before = '' }: PageOptions,
): Promise<TermPage> {
  const [, last = '+', taken = '0'] = entryPlace.exec(before) ?? []
  // all of the first entry may have been listed before, and one more tells whether the list goes on
  const count = limit + 2
  const entries = await ledger.redis.xrevrange(ledger.key('of', t), last, '-', 'COUNT', count)
  const places = entries.flatMap(([id, fields]) =>
    (fields[1] ?? '')
      .split(' ')
      .toReversed()
      .map((recordId, place) => ({ recordId, next: `${id}.${place + 1}` })),
  )
  const from = entries[0]?.[0] === last ? Number(taken) : 0
  const page = places.slice(from, from + limit)
  const records = await readRecords(
    ledger,
    page.map(({ recordId }) => recordId),
  )
  const hasMore = places.length > from + limit
  return { records, next: hasMore ? page.at(-1)?.next : undefined }
}

/** A place in a chain: a record, and how many there are from it on, back to the first. */
function chainPlace({ recordId, times }: Pick<SeenBefore, 'recordId' | 'times'>): string {
  return `${recordId}.${times}`
}

/**
 * The cursor is the place of the next record. A record whose full event named again what the event
 * had named before comes twice in its chain, which then has no end. It is followed as it was noted
 * last, and where it comes again the chain ends.
 */
async function followChain(
  ledger: AccountLedger,
  term: Pick<StoredTerm, 'k' | 't'>,
  { limit, before }: PageOptions,
): Promise<TermPage> {
  const records: LedgerRecord[] = []
  let next = before
  while (next !== undefined && records.length < limit) {
    const [recordId = '', left] = next.split('.')
    const record = await readRecord(ledger, recordId)
    const past = record?.seenBefore.findLast(
      ({ kind, digest }) => kind === term.k && digest === term.t,
    )
    if (!record || (past && past.times >= Number(left))) return { records, next: undefined }
    records.push(record)
    next = past && chainPlace(past)
  }
  return { records, next }
}

/** What is known of a login or host. */
export interface Seen {
  /** In how many records. */
  times: number
  lastMs: number
  recordId: string
}

/** Looks up a login or host; undefined: it was not seen within the history. */
export async function lookUpTerm(
  ledger: AccountLedger,
  term: Term & { kind: 'login' | 'host' },
): Promise<Seen | undefined> {
  const [stored] = toStoredTerm(ledger, term)
  return stored && readSeen(ledger, stored)
}

async function readHead(ledger: AccountLedger, stored: StoredTerm): Promise<string | undefined> {
  const seen = await readSeen(ledger, stored)
  return seen && chainPlace(seen)
}

/** As `recall` of lib/terms.lua, which skips the generation before where it can hold nothing. */
async function readSeen(ledger: AccountLedger, { t, b }: StoredTerm): Promise<Seen | undefined> {
  const nowMs = await redisNow(ledger)
  const { history } = ledger.retention
  const generation = Math.floor(nowMs / history)
  const lookups = [generation, generation - 1].map((number) =>
    ledger.redis.hget(ledger.key('seen', String(number), String(b)), t),
  )
  const [text] = (await Promise.all(lookups)).filter((found) => found !== null)
  const [times, seconds, recordId = ''] = (text ?? '').split(' ')
  const lastMs = Number(seconds) * 1000
  return text === undefined || lastMs < nowMs - history
    ? undefined
    : { times: Number(times), lastMs, recordId }
}
