/** Records as the scripts store them, and as the rest of the house reads them. */
import { itemId } from './digests.ts'
import type { Book } from './book.ts'
import type { ThreatEvent, EventDetail } from '../events/threat-event.ts'

/** States of an item; the last five are final. */
export type ItemState =
  | 'queued'
  | 'held'
  | 'batch'
  | 'sending'
  | 'retrying'
  | 'delivered'
  | 'dead'
  | 'suppressed'
  | 'diverted'
  | 'discarded'

export const pendingStates = ['queued', 'held', 'batch', 'sending', 'retrying'] as const

/** What is kept of one event besides its story: what a message needs. */
export interface Payload {
  event: ThreatEvent
  fetchedAtMs: number
  detail?: EventDetail | 'unavailable'
}

export interface Sighting {
  feed: string
  atMs: number
  severity: string
  labels: Record<string, string>
  /** The routes that took it: name, path from the root, matchers that held. */
  decisions: StoredDecision[]
}

export interface StoredDecision {
  route: string
  path: string[]
  why: string[]
}

export interface AttemptNote {
  number: number
  atMs: number
  outcome: string
  reason: string | undefined
  answer: string | undefined
  replica: string | undefined
}

export interface Item {
  index: number
  id: string
  sink: string
  destination: string
  severity: string
  routes: string[]
  state: ItemState
  /** Why it is held. */
  heldFor: string | undefined
  /** Next try, end of hold, or begin of the running attempt. */
  atMs: number | undefined
  attempts: number
  repeatRisks: number
  replays: number
  createdAtMs: number
  endedAtMs: number | undefined
  /** The last five. */
  history: AttemptNote[]
}

export interface LedgerRecord {
  account: string
  recordId: string
  uid: string
  type: string
  severity: string
  firstSeenMs: number
  sightings: Sighting[]
  items: Item[]
}

interface StoredItem {
  d: string
  k: string
  q: string[]
  sv: string
  st: ItemState
  why?: string
  at?: number
  n: number
  rr?: number
  rp?: number
  c: number
  e?: number
  h?: { n: number; at: number; o: string; r?: string; a?: string; by?: string }[]
}

interface StoredRecord {
  u: string
  ty: string
  sv: string
  t: number
  f: { f: string; at: number; sv: string; l: Record<string, string>; w: StoredDecision[] }[]
  i: StoredItem[] | Record<string, never>
}

export async function readRecord(book: Book, recordId: string): Promise<LedgerRecord | undefined> {
  const text = await book.redis.get(book.key('rec', recordId))
  return text === null ? undefined : parseRecord(book.account, recordId, text)
}

export async function readPayload(book: Book, recordId: string): Promise<Payload | undefined> {
  const text = await book.redis.get(book.key('pay', recordId))
  return text === null ? undefined : (JSON.parse(text) as Payload)
}

/** Every record of the book, in no order; a scan, for audits and listings. */
export async function* scanRecords(book: Book): AsyncGenerator<LedgerRecord> {
  const start = book.key('rec', '')
  let cursor = '0'
  do {
    const [next, names] = await book.redis.scan(
      cursor,
      'MATCH',
      `${escapeGlob(start)}*`,
      'COUNT',
      500,
    )
    cursor = next
    const texts = names.length > 0 ? await book.redis.mget(names) : []
    for (const [i, text] of texts.entries()) {
      if (text) yield parseRecord(book.account, (names[i] ?? '').slice(start.length), text)
    }
  } while (cursor !== '0')
}

function escapeGlob(text: string): string {
  return text.replaceAll(/[[\]*?\\]/g, String.raw`\$&`)
}

function parseRecord(account: string, recordId: string, text: string): LedgerRecord {
  const stored = JSON.parse(text) as StoredRecord
  const items = listOf(stored.i)
  return {
    account,
    recordId,
    uid: stored.u,
    type: stored.ty,
    severity: stored.sv,
    firstSeenMs: stored.t,
    sightings: stored.f.map((sight) => ({
      feed: sight.f,
      atMs: sight.at,
      severity: sight.sv,
      labels: sight.l,
      decisions: listOf(sight.w).map((decision) => ({ ...decision, why: listOf(decision.why) })),
    })),
    items: items.map((item, index) => parseItem(account, stored.u, item, index)),
  }
}

/** Lua writes an empty list as {}. */
function listOf<T>(stored: T[] | Record<string, never>): T[] {
  return Array.isArray(stored) ? stored : []
}

function parseItem(account: string, uid: string, item: StoredItem, index: number): Item {
  return {
    index,
    id: itemId(account, uid, item.sv, item.d),
    sink: item.k,
    destination: item.d,
    severity: item.sv,
    routes: item.q,
    state: item.st,
    heldFor: item.why,
    atMs: item.at,
    attempts: item.n,
    repeatRisks: item.rr ?? 0,
    replays: item.rp ?? 0,
    createdAtMs: item.c,
    endedAtMs: item.e,
    history: (item.h ?? []).map((entry) => ({
      number: entry.n,
      atMs: entry.at,
      outcome: entry.o,
      reason: entry.r,
      answer: entry.a,
      replica: entry.by,
    })),
  }
}
