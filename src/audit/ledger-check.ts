/**
 * Proves from the records themselves, while everything runs, that no event is lost in the ledger: counters
 * and records agree, every item that is not final stands where something will move it, and the index has
 * every record where it belongs. It changes
 * nothing, and asks nobody but Redis.
 */
import { messageIdOf } from '../grouping/freeze.ts'
import { type Book, parseRef } from '../store/account-ledger.ts'
import {
  type Accounting,
  type AccountingAt,
  pendingOf,
  readAccountingAt,
} from '../store/accounts.ts'
import { sinksOf } from '../store/pending-items.ts'
import { type IndexEntry, walkPending, walkSettled } from '../store/record-index.ts'
import { type Item, type ItemState, pendingStates, scanRecords } from '../store/records.ts'

/** Named at most, of each kind; one is enough to ring. */
const mostNamed = 1_000

/** Entries of the index that one script looks at: it stops everybody else meanwhile. */
const pageLength = 100

interface ProofOptions {
  /** Of each account, from where on settled records are compared with the index: when they were settled, ms. */
  settledFromMs: (account: string) => number
  /** How many of them at most; what is pending is always compared. */
  mostSettled: number
}

const everything: ProofOptions = { settledFromMs: () => 0, mostSettled: Infinity }

/** Yields how many records it has read, so that the caller may pause in between. */
export async function* proveLedger(
  books: readonly Book[],
  options = everything,
): AsyncGenerator<number, BookProof[]> {
  const proofs: BookProof[] = []
  let before = 0
  for (const book of books) {
    const steps = proveBook(book, books, options)
    let step = await steps.next()
    for (; !step.done; step = await steps.next()) yield before + step.value
    before += step.value.records
    proofs.push(step.value)
  }
  return proofs
}

/** What moves meanwhile is no finding: each is looked at a second time. */
async function* proveBook(
  book: Book,
  books: readonly Book[],
  options: ProofOptions,
): AsyncGenerator<number, BookProof> {
  const suspects: StrandedItem[] = []
  const scan = yield* confirmedScan(book, async (recordIds) => {
    if (suspects.length > mostNamed) return
    suspects.push(...(await lookForStranded(book, books, recordIds)))
  })
  const dangling: DanglingRef[] = []
  for await (const some of findDangling(book)) {
    if (dangling.length <= mostNamed) dangling.push(...some)
    yield 0
  }
  const settledToMs = yield* checkIndex(book, options, (some) => {
    if (dangling.length <= mostNamed) dangling.push(...some)
  })
  const stranded = await stillStranded(book, books, suspects)
  return {
    account: book.account,
    ...scan,
    settledToMs,
    stranded: stranded.slice(0, mostNamed),
    dangling: dangling.slice(0, mostNamed),
    hasMore: stranded.length > mostNamed || dangling.length > mostNamed,
  }
}

async function* confirmedScan(
  book: Book,
  onPending: (recordIds: string[]) => Promise<void>,
): AsyncGenerator<number, BookScan> {
  const first = yield* scanBook(book, onPending)
  if (first.differences.length === 0) return first
  const second = yield* scanBook(book)
  return { ...second, differences: confirmedBy(first.differences, second.differences) }
}

/** Compares entries with records; resolves with where the next look at settled ones goes on, 0: from the first. */
async function* checkIndex(
  book: Book,
  { settledFromMs, mostSettled }: ProofOptions,
  onFound: (found: DanglingRef[]) => void,
): AsyncGenerator<number, number> {
  let read = 0
  for await (const entries of walkPending(book)) {
    yield (read += await check(entries))
  }
  let left = mostSettled
  for await (const entries of walkSettled(book, settledFromMs(book.account))) {
    yield (read += await check(entries))
    left -= entries.length
    if (left <= 0) return entries.at(-1)?.score ?? 0
  }
  return 0

  async function check(entries: readonly IndexEntry[]): Promise<number> {
    for (let at = 0; at < entries.length; at += pageLength) {
      onFound(await findMisfiled(book, entries.slice(at, at + pageLength)))
    }
    return entries.length
  }
}

/** What a look at the ledger itself found; empty lists and no differences: every event is where it should be. */

/** Of one account's book. */
export interface BookProof {
  account: string
  /** When the counters stood so, by Redis' clock; ms. */
  atMs: number
  accounting: Accounting
  /** How many records the index has. */
  records: number
  /** How many records that were made it does not have; below 0: how many it has too many. */
  unfiled: number
  /** Up to where settled records were compared with the index, by when they were settled, ms; 0: to its end. */
  settledToMs: number
  differences: SinkDifference[]
  stranded: StrandedItem[]
  dangling: DanglingRef[]
  /** There are more stranded items or references than are named. */
  hasMore: boolean
}

/** Counters and records say different numbers of pending items, and did so a second time. */
interface SinkDifference {
  sink: string
  /** By the counters. */
  counted: number
  /** In the records. */
  found: number
}

/** A pending item that nothing would ever move. */
export interface StrandedItem {
  ref: string
  uid: string
  sink: string
  state: ItemState
  heldFor: string | undefined
  lacks: Lack
}

/**
 * Where it is not, though what moves it looks there: its time, the orphans of its sink, its collection, that
 * collection's timer, its sealed message, that message's time.
 */
export type Lack = 'due' | 'orphans' | 'collection' | 'timer' | 'message' | 'message_due'

/**
 * A reference to something that is gone, or in a state in which it does not belong there, or whose record is
 * not in the index. In the index itself it is a record's id, and of no sink.
 */
export interface DanglingRef {
  ref: string
  sink: string
  place: DanglingPlace
  why: 'gone' | 'other_state' | 'unfiled'
}

type DanglingPlace = 'due' | 'timers' | 'orphans' | 'dead' | 'collect' | 'records'

/** By sink: how many things are wrong with it. Every sink of the books is there; '': wrong with the index. */
export function discrepanciesOf(proofs: readonly BookProof[]): Record<string, number> {
  const sums = new Map<string, number>()
  const add = (sink: string, count: number): void =>
    void sums.set(sink, (sums.get(sink) ?? 0) + Math.abs(count))
  for (const { accounting, unfiled, differences, stranded, dangling } of proofs) {
    if (unfiled !== 0) add('', unfiled)
    for (const [sink, { unaccounted }] of Object.entries(accounting.sinks)) add(sink, unaccounted)
    for (const { sink, counted, found } of differences) add(sink, counted - found)
    for (const { sink } of [...stranded, ...dangling]) add(sink, 1)
  }
  return Object.fromEntries(sums)
}

/** Whether all adds up: feeds, sinks, the records, and what moves them. */
export function isWhole(proof: BookProof): boolean {
  const { accounting, unfiled, differences, stranded, dangling } = proof
  const accounts = [...Object.values(accounting.feeds), ...Object.values(accounting.sinks)]
  const isBalanced = unfiled === 0 && accounts.every(({ unaccounted }) => unaccounted === 0)
  return isBalanced && differences.length + stranded.length + dangling.length === 0
}

/**
 * One walk over what is pending in a book, or was until just now: items counted as of the moment at which its
 * counters were read, and pending ones looked at.
 */

interface BookScan extends AccountingAt {
  differences: SinkDifference[]
}

/** Records between two steps, at which the caller may pause. */
const stepLength = 500

/** Records with pending items that are handed on together. */
const itemsPerPage = 50

/** Yields how many records were read; `onPending` gets ids of records that have pending items. */
async function* scanBook(
  book: Book,
  onPending: (recordIds: string[]) => Promise<void> = () => Promise.resolve(),
): AsyncGenerator<number, BookScan> {
  const counted = await readAccountingAt(book)
  const { atMs, accounting } = counted
  const tallies: PendingTallies = new Map()
  let records = 0
  let pending: string[] = []
  for await (const { recordId, items } of scanRecords(book, atMs)) {
    for (const item of items) addPendingAt(tallies, item, atMs)
    if (items.some(isPending)) pending.push(recordId)
    if (pending.length >= itemsPerPage) await onPending(pending.splice(0))
    records += 1
    if (records % stepLength === 0) yield records
  }
  await onPending(pending)
  addLater(tallies, atMs, (await readAccountingAt(book)).atMs)
  return { ...counted, differences: differencesIn(accounting, tallies) }
}

function differencesIn({ sinks }: Accounting, tallies: PendingTallies): SinkDifference[] {
  return [...new Set([...Object.keys(sinks), ...tallies.keys()])].flatMap((sink) => {
    const account = sinks[sink]
    const counted = account ? pendingOf(account) : 0
    const off = offBy(counted, tallies.get(sink) ?? { least: 0, most: 0 })
    return off === 0 ? [] : [{ sink, counted, found: counted - off }]
  })
}

/**
 * Those that a second scan shows too, by as much: an item that was sent again while the first went on, or a
 * record that it read twice, is none.
 */
function confirmedBy(first: SinkDifference[], second: SinkDifference[]): SinkDifference[] {
  return second.filter(({ sink, counted, found }) =>
    first.some((one) => one.sink === sink && one.counted - one.found === counted - found),
  )
}

/** How many items were pending at one moment, though records are read at many (pure). */

/** By sink. What was created or ended within the very millisecond may count or not: it is in `most` alone. */
export type PendingTallies = Map<string, PendingTally>

interface PendingTally {
  least: number
  most: number
  /** Of what was created or ended later, by what its record says; told apart when the scan has ended. */
  later: Span[]
}

/** ms; of what is pending without end. */
interface Span {
  createdAtMs: number
  endedAtMs: number
}

function isPending({ state }: Pick<Item, 'state'>): boolean {
  return (pendingStates as readonly string[]).includes(state)
}

/** Adds an item as it is now, read after `atMs`. */
export function addPendingAt(tallies: PendingTallies, item: Item, atMs: number): void {
  const { createdAtMs } = item
  const endedAtMs = isPending(item) ? Infinity : (item.endedAtMs ?? 0)
  const tally = tallies.get(item.sink) ?? { least: 0, most: 0, later: [] }
  tallies.set(item.sink, tally)
  const isLater = createdAtMs > atMs || (!isPending(item) && endedAtMs > atMs)
  if (isLater) tally.later.push({ createdAtMs, endedAtMs })
  else addSpan(tally, { createdAtMs, endedAtMs }, atMs)
}

/** What bears a time after the end of the scan was written before Redis' clock went back: it is over long since. */
export function addLater(tallies: PendingTallies, atMs: number, endMs: number): void {
  const believed = (ms: number): number => (ms > endMs && ms !== Infinity ? 0 : ms)
  for (const tally of tallies.values()) {
    for (const { createdAtMs, endedAtMs } of tally.later) {
      const span = { createdAtMs: believed(createdAtMs), endedAtMs: believed(endedAtMs) }
      addSpan(tally, span, atMs)
    }
  }
}

function addSpan(tally: PendingTally, { createdAtMs, endedAtMs }: Span, atMs: number): void {
  if (createdAtMs > atMs || endedAtMs < atMs) return
  tally.least += createdAtMs < atMs && endedAtMs > atMs ? 1 : 0
  tally.most += 1
}

/** By how much the counter is off at least; 0: it may be right. */
export function offBy(
  counted: number,
  { least, most }: Pick<PendingTally, 'least' | 'most'>,
): number {
  if (counted < least) return counted - least
  return counted > most ? counted - most : 0
}

interface Place {
  place: Exclude<DanglingPlace, 'records'>
  /** Of the sink or the collection; empty where there is one for all. */
  name: string
}

/** References that stand where they move nothing. Yields after each page, so that the caller may pause. */
async function* findDangling(book: Book): AsyncGenerator<DanglingRef[]> {
  for (const name of await sinksOf(book)) {
    for (const place of ['due', 'orphans', 'dead', 'collect'] as const) {
      yield* findIn(book, { place, name })
    }
  }
  for await (const timers of pagesOf(book, { place: 'timers', name: '' })) {
    yield lookAt(book, { place: 'timers', name: '' }, timers)
    for (const timer of timers) {
      const ref = parseRef(timer)
      if (ref.kind === 'gathering') yield* findIn(book, { place: 'collect', name: ref.id })
    }
  }
}

async function* findIn(book: Book, place: Place): AsyncGenerator<DanglingRef[]> {
  for await (const refs of pagesOf(book, place)) yield lookAt(book, place, refs)
}

async function* pagesOf(book: Book, { place, name }: Place): AsyncGenerator<string[]> {
  const set = name === '' ? book.key(place) : book.key(place, name)
  let cursor = '0'
  do {
    const [next, listed] =
      place === 'orphans'
        ? await book.redis.sscan(set, cursor, 'COUNT', pageLength)
        : await book.redis.zscan(set, cursor, 'COUNT', pageLength)
    cursor = next
    const refs = place === 'orphans' ? listed : listed.filter((_text, i) => i % 2 === 0)
    for (let at = 0; at < refs.length; at += pageLength) yield refs.slice(at, at + pageLength)
  } while (cursor !== '0')
}

async function lookAt(
  book: Book,
  { place, name }: Place,
  refs: readonly string[],
): Promise<DanglingRef[]> {
  const answer = (await book.run('find-dangling', place, name, ...refs)) as string[]
  return answer.flatMap((ref, i): DanglingRef[] => {
    if (i % 2 === 1) return []
    return [{ ref, sink: parseRef(ref).sink, place, why: answer[i + 1] as DanglingRef['why'] }]
  })
}

/** Entries of the index that have no record, or stand where it is not, each at one instant. */
async function findMisfiled(book: Book, entries: readonly IndexEntry[]): Promise<DanglingRef[]> {
  const ids = entries.map(({ recordId }) => recordId)
  const answer = (await book.run('find-misfiled', book.retention.story, ...ids)) as string[]
  return answer.flatMap((ref, i): DanglingRef[] =>
    i % 2 === 1
      ? []
      : [{ ref, sink: '', place: 'records', why: answer[i + 1] as DanglingRef['why'] }],
  )
}

interface StoredFinding {
  r: string
  u: string
  k: string
  st: ItemState
  why?: string
  b?: string
  lacks: Lack | 'lead'
}

/** Records that one script looks at: it stops everybody else meanwhile. */
const keysPerPage = 50

/** Pending items of the records that nothing would move, each record as it is at one instant. */
async function lookForStranded(
  book: Book,
  books: readonly Book[],
  recordIds: readonly string[],
): Promise<StrandedItem[]> {
  const found: StrandedItem[] = []
  for (let at = 0; at < recordIds.length; at += keysPerPage) {
    const page = recordIds.slice(at, at + keysPerPage)
    const stored = await book.ask<StoredFinding[]>('find-stranded', ...page)
    for (const one of await withoutLed(books, stored)) found.push(one)
  }
  return found
}

/** A member of a message is led by what has its head: often in another account's book. */
async function withoutLed(
  books: readonly Book[],
  stored: readonly StoredFinding[],
): Promise<StrandedItem[]> {
  const heads = new Map<string, Lack | undefined>()
  const found: StrandedItem[] = []
  for (const { r: ref, u: uid, k: sink, st: state, why: heldFor, b = '', lacks } of stored) {
    const item = { ref, uid, sink, state, heldFor }
    if (lacks !== 'lead') {
      found.push({ ...item, lacks })
      continue
    }
    if (!heads.has(b)) heads.set(b, await headOf(books, { messageId: b, sink }))
    const lack = heads.get(b)
    if (lack) found.push({ ...item, lacks: lack })
  }
  return found
}

/** Those that are so still, and in the same way: all else moved on between two looks. */
async function stillStranded(
  book: Book,
  books: readonly Book[],
  before: readonly StrandedItem[],
): Promise<StrandedItem[]> {
  const recordIds = [...new Set(before.map(({ ref }) => ref.split(':')[1] ?? ''))]
  const now = await lookForStranded(book, books, recordIds)
  const known = new Set(before.map(nameOf))
  return now.filter((item) => known.has(nameOf(item)))
}

function nameOf({ ref, state, lacks }: StrandedItem): string {
  return [ref, state, lacks].join(' ')
}

export interface Message {
  messageId: string
  sink: string
}

/**
 * What a sealed message lacks; undefined: nothing. Its head is in one of the books: the message itself, or,
 * while it is being made, the timer whose turn makes it. So a digest's is in the book that leads.
 */
async function headOf(
  books: readonly Book[],
  message: Message,
): Promise<'message' | 'message_due' | undefined> {
  for (const book of books) if (await isBeingMade(book, message)) return undefined
  for (const book of books) {
    const { messageId, sink } = message
    if ((await book.redis.exists(book.key('batch', messageId))) === 0) continue
    const due = await book.redis.zscore(book.key('due', sink), `b:${messageId}:${sink}`)
    return due === null ? 'message_due' : undefined
  }
  return 'message'
}

async function isBeingMade(book: Book, { messageId, sink }: Message): Promise<boolean> {
  const made = await messagesBeingMade(book, sink)
  return made.some((message) => message.messageId === messageId)
}

/** Messages that the book's turns make, or would make next: for a sink, or for all. */
export async function messagesBeingMade(book: Book, sink?: string): Promise<Message[]> {
  const timers = await book.redis.zrange(book.key('timers'), '0', '-1')
  const refs = timers
    .map(parseRef)
    .filter((ref) => ref.kind === 'gathering')
    .filter((ref) => sink === undefined || ref.sink === sink)
  return Promise.all(
    refs.map(async ({ id, sink: to }) => {
      const [opened, seq] = await book.redis.hmget(book.key('gather', id), 'opened', 'seq')
      const turn = { book, id, openedAtMs: Number(opened), sequence: Number(seq ?? 0) }
      return { messageId: messageIdOf(turn), sink: to }
    }),
  )
}
