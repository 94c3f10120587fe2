/** Records: as the scripts store them (short fields), and as the rest of the code reads them. */
import type { EventDetail, ThreatEvent } from '../event.ts'
import { type AccountLedger, itemId } from './account-ledger.ts'
import { type IndexScan, scanEntries, scanIndex } from './record-index.ts'

/** States of an item; the last five are final. */
export type ItemState =
  | 'queued'
  | 'held'
  | 'group'
  | 'digest'
  | 'batch'
  | 'sending'
  | 'retrying'
  | 'delivered'
  | 'dead'
  | 'suppressed'
  | 'diverted'
  | 'discarded'

export const pendingStates = [
  'queued',
  'held',
  'group',
  'digest',
  'batch',
  'sending',
  'retrying',
] as const

/** Why an item is final without having been sent: its `heldFor`; `rule` names the rule. */
export const suppressions = [
  'silence',
  'inhibition',
  'mute',
  'shadow',
  'ignored',
  'remediated',
  'seen_again',
  'superseded',
] as const

export type Suppression = (typeof suppressions)[number]

/** What is kept of an event besides its record: the content that a message needs. */
export interface Payload {
  event: ThreatEvent
  fetchedAtMs: number
  detail?: EventDetail | 'unavailable'
  /** A leaked secret, encrypted with the account's key; only if a sink reveals secrets. */
  sealedSecret?: string
}

export interface Sighting {
  feed: string
  atMs: number
  /** Since when the API showed it so, ms. */
  visibleMs: number
  severity: string
  labels: Record<string, string>
  /** The routes that took it: name, path from the root, matchers that held. */
  decisions: StoredDecision[]
  /** Fields that could not be read, by the API's names. */
  unread?: string[]
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
  /** Index of the sighting that made it. */
  sighting: number
  state: ItemState
  /** Why it is held, or was suppressed. */
  heldFor: string | undefined
  /**
   * The rule by which it is held, suppressed or was redirected: a silence's id, an interval's name.
   */
  rule: string | undefined
  /** The group in which it waits. */
  groupId: string | undefined
  /** Id of the frozen message that carries or carried it. */
  messageId: string | undefined
  /** What the event's severity was before it was raised to this item's. */
  raisedFrom: string | undefined
  /** Next try, end of the hold, or begin of the running attempt; ms. */
  atMs: number | undefined
  attempts: number
  repeatRisks: number
  replays: number
  /** When it was made, or sent again last. */
  createdAtMs: number
  endedAtMs: number | undefined
  /** How it ended each time before it was sent again: the first, and the last four. */
  past: PastEnd[]
  /** The last five. */
  history: AttemptNote[]
}

/** An end of an item, and who sent it again then. */
export interface PastEnd extends Pick<Item, 'createdAtMs' | 'state' | 'endedAtMs' | 'messageId'> {
  resentBy: string | undefined
  resentAtMs: number
}

export interface LedgerRecord {
  account: string
  recordId: string
  uid: string
  type: string
  /** The title of its messages. */
  title: string | undefined
  createdAtMs: number | undefined
  matchedAtMs: number | undefined
  fetchedAtMs: number
  /** Names of the first twenty of what matched, up to 80 characters of each; of the tags likewise. */
  identifiers: readonly string[]
  tags: readonly string[]
  severity: string
  firstSeenMs: number
  sightings: Sighting[]
  items: Item[]
  /** What people did with the event upstream. */
  closed: 'ignored' | 'remediated' | undefined
  /** The same login and secret from other sources: how many more, and the first of them by id. */
  seenAgain: { times: number; sources: string[] } | undefined
  /** Its logins and hosts that earlier records named. */
  seenBefore: SeenBefore[]
}

export interface SeenBefore {
  kind: 'login' | 'host'
  /** Of the login or host; terms.ts follows it. */
  digest: string
  /** In how many records before. */
  times: number
  /** When the last of them was first seen; s, as ms. */
  lastMs: number
  recordId: string
  /** Learnt when messages may have been sent, or of a later event: no message says it. */
  isLate: boolean
}

export interface StoredItem {
  d: string
  k: string
  q: string[]
  sv: string
  /** From 1. */
  g: number
  st: ItemState
  why?: string
  by?: string
  y?: string
  b?: string
  rf?: string
  at?: number
  n: number
  rr?: number
  rp?: number
  c: number
  e?: number
  past?: (Pick<StoredItem, 'c' | 'st' | 'e' | 'b' | 'by'> & { at: number })[]
  h?: { n: number; at: number; o: string; r?: string; a?: string; by?: string }[]
}

/** What lists show of an event once its payload is gone. */
export interface StoredAbout {
  title: string | undefined
  created: number | undefined
  matched: number | undefined
  fetched: number
  identifiers?: string[]
  tags?: string[]
}

interface StoredSeen {
  k: 'login' | 'host'
  t: string
  n: number
  at: number
  r: string
  l?: true
}

/** What a record shows; it changes where the event is shown again, or named by its full event. */
export interface StoredShown {
  u: string
  ty: string
  about: StoredAbout
  f: {
    f: string
    /** Left out: when the record was made. */
    at?: number
    sv: string
    l: Record<string, string>
    w: StoredDecision[]
    ur?: string[] | undefined
    v: number
  }[]
}

/** What becomes of it. */
interface StoredRecord {
  sv: string
  t: number
  i: StoredItem[] | Record<string, never>
  cl?: 'ignored' | 'remediated'
  ag?: { n: number; s: string[] | Record<string, never> }
  sb?: StoredSeen[]
}

export async function readRecord(
  ledger: AccountLedger,
  recordId: string,
): Promise<LedgerRecord | undefined> {
  const text = await ledger.redis.get(ledger.key('rec', recordId))
  return text === null ? undefined : parseRecord(ledger.account, recordId, text)
}

export async function readPayload(
  ledger: AccountLedger,
  recordId: string,
): Promise<Payload | undefined> {
  const text = await ledger.redis.get(ledger.key('pay', recordId))
  return text === null ? undefined : (JSON.parse(text) as Payload)
}

/** Payloads in the order of `recordIds`; undefined for those that are gone. */
export async function readPayloads(
  ledger: AccountLedger,
  recordIds: readonly string[],
): Promise<(Payload | undefined)[]> {
  if (recordIds.length === 0) return []
  const texts = await ledger.redis.mget(recordIds.map((id) => ledger.key('pay', id)))
  return texts.map((text) => (text === null ? undefined : (JSON.parse(text) as Payload)))
}

/** An item with its record and payload, as a message about it needs them. */
export interface FoundItem {
  ref: string
  record: LedgerRecord
  item: Item
  payload: Payload | undefined
}

/** The items that item refs name, in their order; those that are gone are left out. */
export async function readItems(
  ledger: AccountLedger,
  refs: readonly string[],
): Promise<FoundItem[]> {
  if (refs.length === 0) return []
  const places = refs.map((ref) => ref.split(':'))
  const names = places.flatMap(([, id = '']) => [ledger.key('rec', id), ledger.key('pay', id)])
  const texts = await ledger.redis.mget(names)
  return places.flatMap(([, recordId = '', index], i) => {
    const text = texts[2 * i]
    const record = text ? parseRecord(ledger.account, recordId, text) : undefined
    const item = record?.items[Number(index)]
    if (!record || !item) return []
    const payload = texts[2 * i + 1]
    return [
      {
        ref: refs[i] ?? '',
        record,
        item,
        payload: payload ? (JSON.parse(payload) as Payload) : undefined,
      },
    ]
  })
}

/** Scans records as `scanEntries` does; one that is sent again meanwhile may come twice. */
export async function* scanRecords(
  ledger: AccountLedger,
  leastMs?: () => number,
): AsyncGenerator<LedgerRecord> {
  for await (const entries of scanEntries(ledger, leastMs)) {
    yield* await readRecords(
      ledger,
      entries.map(({ recordId }) => recordId),
    )
  }
}

export function scanPendingRecords(ledger: AccountLedger): AsyncGenerator<LedgerRecord> {
  return scanRecords(ledger, () => Infinity)
}

/** Scans records that wait, or those that were settled, with since when, ms; newest first, from that time on. */
export async function* scanRecordsBefore(
  ledger: AccountLedger,
  from: IndexScan,
): AsyncGenerator<{ record: LedgerRecord; sinceMs: number }> {
  for await (const entries of scanIndex(ledger, from)) {
    const scores = new Map(entries.map(({ recordId, score }) => [recordId, score]))
    const records = await readRecords(ledger, [...scores.keys()])
    for (const record of records) {
      yield { record, sinceMs: Math.abs(scores.get(record.recordId) ?? 0) }
    }
  }
}

/** Records by their ids; those that are gone are left out. */
export async function readRecords(
  ledger: AccountLedger,
  recordIds: readonly string[],
): Promise<LedgerRecord[]> {
  if (recordIds.length === 0) return []
  const texts = await ledger.redis.mget(recordIds.map((id) => ledger.key('rec', id)))
  return recordIds.flatMap((recordId, i) => {
    const text = texts[i]
    return text ? [parseRecord(ledger.account, recordId, text)] : []
  })
}

/** The id of a delivery: `e…` for one event, `b…` for a frozen message. */
export const deliveryIdPattern = /^(?:e[0-9a-f]{32}|b[0-9a-f]{40})$/u

/** The id under which an item went or goes: that of its frozen message, or its own. */
export function deliveryId({ id, messageId }: Pick<Item, 'id' | 'messageId'>): string {
  return messageId === undefined ? id : `b${messageId}`
}

/** Of a record's two lines as they are stored. */
export function parseRecord(account: string, recordId: string, text: string): LedgerRecord {
  const cut = text.indexOf('\n')
  const stored = JSON.parse(text.slice(0, cut)) as StoredRecord
  const { u, ty, about, f } = JSON.parse(text.slice(cut)) as StoredShown
  const items = parseLuaList(stored.i)
  return {
    account,
    recordId,
    uid: u,
    type: ty,
    title: about.title,
    createdAtMs: about.created,
    matchedAtMs: about.matched,
    fetchedAtMs: about.fetched,
    identifiers: about.identifiers ?? [],
    tags: about.tags ?? [],
    severity: stored.sv,
    firstSeenMs: stored.t,
    sightings: f.map((sighting) => ({
      feed: sighting.f,
      atMs: sighting.at ?? stored.t,
      visibleMs: sighting.v,
      severity: sighting.sv,
      labels: sighting.l,
      decisions: parseLuaList(sighting.w).map((decision) => ({
        ...decision,
        why: parseLuaList(decision.why),
      })),
      ...(sighting.ur && { unread: sighting.ur }),
    })),
    items: items.map((item, index) => parseItem(account, u, item, index)),
    closed: stored.cl,
    seenAgain: stored.ag && { times: stored.ag.n, sources: parseLuaList(stored.ag.s) },
    seenBefore: parseSeen(stored.sb),
  }
}

function parseSeen(stored: readonly StoredSeen[] = []): SeenBefore[] {
  return stored.map(({ k, t, n, at, r, l = false }) => {
    return { kind: k, digest: t, times: n, lastMs: at, recordId: r, isLate: l }
  })
}

type Times = Pick<Item, 'createdAtMs' | 'state' | 'endedAtMs'>

interface Place extends Times {
  destination: string
  past: readonly Times[]
}

/**
 * The other destinations for which the event was routed by the time that an item of it was made,
 * each once. It names none that had been suppressed by then, and asks for nothing that came later,
 * nor for what was sent again. So every attempt says the same.
 */
export function otherDestinations(
  items: readonly Place[],
  { destination, createdAtMs }: Pick<Place, 'destination' | 'createdAtMs'>,
): string[] {
  const known = items
    .map(({ past: [first], ...one }) => ({ ...one, ...first }))
    .filter((one) => one.createdAtMs <= createdAtMs)
  const others = known.filter(
    (one) =>
      one.destination !== destination &&
      (one.endedAtMs === undefined || one.endedAtMs > createdAtMs || one.state === 'delivered'),
  )
  return [...new Set(others.map((one) => one.destination))]
}

/** Lua writes an empty list as {}. */
function parseLuaList<T>(stored: T[] | Record<string, never>): T[] {
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
    sighting: item.g - 1,
    state: item.st,
    heldFor: item.why,
    rule: item.by,
    groupId: item.y,
    messageId: item.b,
    raisedFrom: item.rf,
    atMs: item.at,
    attempts: item.n,
    repeatRisks: item.rr ?? 0,
    replays: item.rp ?? 0,
    createdAtMs: item.c,
    endedAtMs: item.e,
    past: (item.past ?? []).map(({ c, st, e, b, by, at }) => ({
      createdAtMs: c,
      state: st,
      endedAtMs: e,
      messageId: b,
      resentBy: by,
      resentAtMs: at,
    })),
    history: parseHistory(item.h),
  }
}

export function parseHistory(notes: NonNullable<StoredItem['h']> = []): AttemptNote[] {
  return notes.map(({ n, at, o, r, a, by }) => ({
    number: n,
    atMs: at,
    outcome: o,
    reason: r,
    answer: a,
    replica: by,
  }))
}

/** How far the API's clock may be ahead of Redis': an event is then created after it was seen. */
const maxServiceClockSkewMs = 300_000

/**
 * Records of events that were created before this time, ms, may have been dropped to make room; 0:
 * none ever was. Events created later were first seen after all that were dropped.
 */
export async function readTrimmedUntilMs(ledger: AccountLedger): Promise<number> {
  const lastSeen = await ledger.redis.get(ledger.key('trimmed'))
  return lastSeen === null ? 0 : Number(lastSeen) + maxServiceClockSkewMs
}
