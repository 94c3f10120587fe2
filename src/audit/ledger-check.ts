/**
 * Proves from the records themselves, while everything runs, that no event is lost in the ledger: counters
 * and records agree, every item that is not final stands where something will move it, and the index has
 * every record where it belongs. It changes
 * nothing, and asks nobody but Redis.
 */
import { deriveMessageId } from '../grouping/freeze.ts'
import { type AccountLedger, parseRef } from '../store/account-ledger.ts'
import {
  type Accounting,
  type AccountingSnapshot,
  sumPending,
  readAccountingSnapshot,
} from '../store/accounts.ts'
import { readSinkNames } from '../store/pending-items.ts'
import { type IndexEntry, scanPendingEntries, scanSettledEntries } from '../store/record-index.ts'
import { type Item, type ItemState, pendingStates, scanRecords } from '../store/records.ts'

/** Named at most, of each kind; one is enough to ring. */
const maxListed = 1_000

/** Entries of the index that one script looks at: it stops everybody else meanwhile. */
const refsPerScript = 100

interface LedgerCheckOptions {
  /** Of each account, from where on settled records are compared with the index: when they were settled, ms. */
  settledFromMs: (account: string) => number
  /** How many of them at most; what is pending is always compared. */
  maxSettled: number
}

const fullCheck: LedgerCheckOptions = { settledFromMs: () => 0, maxSettled: Infinity }

/** Yields how many records it has read, so that the caller may pause in between. */
export async function* checkLedgers(
  ledgers: readonly AccountLedger[],
  options = fullCheck,
): AsyncGenerator<number, LedgerCheck[]> {
  const checks: LedgerCheck[] = []
  let checkedRecords = 0
  for (const ledger of ledgers) {
    const steps = checkLedger(ledger, ledgers, options)
    let step = await steps.next()
    for (; !step.done; step = await steps.next()) yield checkedRecords + step.value
    checkedRecords += step.value.records
    checks.push(step.value)
  }
  return checks
}

/** What moves meanwhile is no finding: each is looked at a second time. */
async function* checkLedger(
  ledger: AccountLedger,
  ledgers: readonly AccountLedger[],
  options: LedgerCheckOptions,
): AsyncGenerator<number, LedgerCheck> {
  const suspects: StrandedItem[] = []
  const scan = yield* scanWithConfirmation(ledger, async (recordIds) => {
    if (suspects.length > maxListed) return
    suspects.push(...(await findStranded(ledger, ledgers, recordIds)))
  })
  const dangling: DanglingRef[] = []
  for await (const some of findDangling(ledger)) {
    if (dangling.length <= maxListed) dangling.push(...some)
    yield 0
  }
  const settledToMs = yield* checkIndex(ledger, options, (some) => {
    if (dangling.length <= maxListed) dangling.push(...some)
  })
  const stranded = await confirmStranded(ledger, ledgers, suspects)
  return {
    account: ledger.account,
    ...scan,
    settledToMs,
    stranded: stranded.slice(0, maxListed),
    dangling: dangling.slice(0, maxListed),
    hasMore: stranded.length > maxListed || dangling.length > maxListed,
  }
}

async function* scanWithConfirmation(
  ledger: AccountLedger,
  onPending: (recordIds: string[]) => Promise<void>,
): AsyncGenerator<number, LedgerScan> {
  const first = yield* scanLedger(ledger, onPending)
  if (first.differences.length === 0) return first
  const second = yield* scanLedger(ledger)
  return { ...second, differences: confirmDifferences(first.differences, second.differences) }
}

/** Compares entries with records; resolves with where the next look at settled ones goes on, 0: from the first. */
async function* checkIndex(
  ledger: AccountLedger,
  { settledFromMs, maxSettled }: LedgerCheckOptions,
  onFound: (found: DanglingRef[]) => void,
): AsyncGenerator<number, number> {
  let read = 0
  for await (const entries of scanPendingEntries(ledger)) {
    yield (read += await check(entries))
  }
  let remaining = maxSettled
  for await (const entries of scanSettledEntries(ledger, settledFromMs(ledger.account))) {
    yield (read += await check(entries))
    remaining -= entries.length
    if (remaining <= 0) return entries.at(-1)?.score ?? 0
  }
  return 0

  async function check(entries: readonly IndexEntry[]): Promise<number> {
    for (let at = 0; at < entries.length; at += refsPerScript) {
      onFound(await findMisfiled(ledger, entries.slice(at, at + refsPerScript)))
    }
    return entries.length
  }
}

/** What a look at the ledger itself found; empty lists and no differences: every event is where it should be. */

/** Of one account's book. */
export interface LedgerCheck {
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
  lacks: MissingPlace
}

/**
 * Where it is not, though what moves it looks there: its time, the orphans of its sink, its collection, that
 * collection's timer, its sealed message, that message's time.
 */
export type MissingPlace = 'due' | 'orphans' | 'collection' | 'timer' | 'message' | 'message_due'

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
export function countDiscrepancies(checks: readonly LedgerCheck[]): Record<string, number> {
  const sums = new Map<string, number>()
  const add = (sink: string, count: number): void =>
    void sums.set(sink, (sums.get(sink) ?? 0) + Math.abs(count))
  for (const { accounting, unfiled, differences, stranded, dangling } of checks) {
    if (unfiled !== 0) add('', unfiled)
    for (const [sink, { unaccounted }] of Object.entries(accounting.sinks)) add(sink, unaccounted)
    for (const { sink, counted, found } of differences) add(sink, counted - found)
    for (const { sink } of [...stranded, ...dangling]) add(sink, 1)
  }
  return Object.fromEntries(sums)
}

/** Whether all adds up: feeds, sinks, the records, and what moves them. */
export function isConsistent(check: LedgerCheck): boolean {
  const { accounting, unfiled, differences, stranded, dangling } = check
  const accounts = [...Object.values(accounting.feeds), ...Object.values(accounting.sinks)]
  const isBalanced = unfiled === 0 && accounts.every(({ unaccounted }) => unaccounted === 0)
  return isBalanced && differences.length + stranded.length + dangling.length === 0
}

/**
 * One walk over what is pending in a book, or was until just now: items counted as of the moment at which its
 * counters were read, and pending ones looked at.
 */

interface LedgerScan extends AccountingSnapshot {
  differences: SinkDifference[]
}

/** Records between two steps, at which the caller may pause. */
const recordsPerStep = 500

/** Records with pending items that are handed on together. */
const recordsPerPage = 50

/** Yields how many records were read; `onPending` gets ids of records that have pending items. */
async function* scanLedger(
  ledger: AccountLedger,
  onPending: (recordIds: string[]) => Promise<void> = () => Promise.resolve(),
): AsyncGenerator<number, LedgerScan> {
  const countersNow = await readAccountingSnapshot(ledger)
  const { atMs, accounting } = countersNow
  const tallies: PendingTallies = new Map()
  let records = 0
  let pending: string[] = []
  for await (const { recordId, items } of scanRecords(ledger, atMs)) {
    for (const item of items) tallyItem(tallies, item, atMs)
    if (items.some(isPending)) pending.push(recordId)
    if (pending.length >= recordsPerPage) await onPending(pending.splice(0))
    records += 1
    if (records % recordsPerStep === 0) yield records
  }
  await onPending(pending)
  tallyLater(tallies, atMs, (await readAccountingSnapshot(ledger)).atMs)
  return { ...countersNow, differences: compareCounts(accounting, tallies) }
}

function compareCounts({ sinks }: Accounting, tallies: PendingTallies): SinkDifference[] {
  return [...new Set([...Object.keys(sinks), ...tallies.keys()])].flatMap((sink) => {
    const account = sinks[sink]
    const counted = account ? sumPending(account) : 0
    const off = counterError(counted, tallies.get(sink) ?? { least: 0, most: 0 })
    return off === 0 ? [] : [{ sink, counted, found: counted - off }]
  })
}

/**
 * Those that a second scan shows too, by as much: an item that was sent again while the first went on, or a
 * record that it read twice, is none.
 */
function confirmDifferences(first: SinkDifference[], second: SinkDifference[]): SinkDifference[] {
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
  later: PendingSpan[]
}

/** ms; of what is pending without end. */
interface PendingSpan {
  createdAtMs: number
  endedAtMs: number
}

function isPending({ state }: Pick<Item, 'state'>): boolean {
  return (pendingStates as readonly string[]).includes(state)
}

/** Adds an item as it is now, read after `atMs`. */
export function tallyItem(tallies: PendingTallies, item: Item, atMs: number): void {
  const { createdAtMs } = item
  const endedAtMs = isPending(item) ? Infinity : (item.endedAtMs ?? 0)
  const tally = tallies.get(item.sink) ?? { least: 0, most: 0, later: [] }
  tallies.set(item.sink, tally)
  const isLater = createdAtMs > atMs || (!isPending(item) && endedAtMs > atMs)
  if (isLater) tally.later.push({ createdAtMs, endedAtMs })
  else tallySpan(tally, { createdAtMs, endedAtMs }, atMs)
}

/** What bears a time after the end of the scan was written before Redis' clock went back: it is over long since. */
export function tallyLater(tallies: PendingTallies, atMs: number, endMs: number): void {
  const clampToScan = (ms: number): number => (ms > endMs && ms !== Infinity ? 0 : ms)
  for (const tally of tallies.values()) {
    for (const { createdAtMs, endedAtMs } of tally.later) {
      const span = { createdAtMs: clampToScan(createdAtMs), endedAtMs: clampToScan(endedAtMs) }
      tallySpan(tally, span, atMs)
    }
  }
}

function tallySpan(
  tally: PendingTally,
  { createdAtMs, endedAtMs }: PendingSpan,
  atMs: number,
): void {
  if (createdAtMs > atMs || endedAtMs < atMs) return
  tally.least += createdAtMs < atMs && endedAtMs > atMs ? 1 : 0
  tally.most += 1
}

/** By how much the counter is off at least; 0: it may be right. */
export function counterError(
  counted: number,
  { least, most }: Pick<PendingTally, 'least' | 'most'>,
): number {
  if (counted < least) return counted - least
  return counted > most ? counted - most : 0
}

interface RefPlace {
  place: Exclude<DanglingPlace, 'records'>
  /** Of the sink or the collection; empty where there is one for all. */
  name: string
}

/** References that stand where they move nothing. Yields after each page, so that the caller may pause. */
async function* findDangling(ledger: AccountLedger): AsyncGenerator<DanglingRef[]> {
  for (const name of await readSinkNames(ledger)) {
    for (const place of ['due', 'orphans', 'dead', 'collect'] as const) {
      yield* findDanglingIn(ledger, { place, name })
    }
  }
  for await (const timers of scanRefs(ledger, { place: 'timers', name: '' })) {
    yield checkRefs(ledger, { place: 'timers', name: '' }, timers)
    for (const timer of timers) {
      const ref = parseRef(timer)
      if (ref.kind === 'gathering')
        yield* findDanglingIn(ledger, { place: 'collect', name: ref.id })
    }
  }
}

async function* findDanglingIn(
  ledger: AccountLedger,
  place: RefPlace,
): AsyncGenerator<DanglingRef[]> {
  for await (const refs of scanRefs(ledger, place)) yield checkRefs(ledger, place, refs)
}

async function* scanRefs(
  ledger: AccountLedger,
  { place, name }: RefPlace,
): AsyncGenerator<string[]> {
  const set = name === '' ? ledger.key(place) : ledger.key(place, name)
  let cursor = '0'
  do {
    const [next, listed] =
      place === 'orphans'
        ? await ledger.redis.sscan(set, cursor, 'COUNT', refsPerScript)
        : await ledger.redis.zscan(set, cursor, 'COUNT', refsPerScript)
    cursor = next
    const refs = place === 'orphans' ? listed : listed.filter((_text, i) => i % 2 === 0)
    for (let at = 0; at < refs.length; at += refsPerScript) yield refs.slice(at, at + refsPerScript)
  } while (cursor !== '0')
}

async function checkRefs(
  ledger: AccountLedger,
  { place, name }: RefPlace,
  refs: readonly string[],
): Promise<DanglingRef[]> {
  const answer = (await ledger.run('find-dangling', place, name, ...refs)) as string[]
  return answer.flatMap((ref, i): DanglingRef[] => {
    if (i % 2 === 1) return []
    return [{ ref, sink: parseRef(ref).sink, place, why: answer[i + 1] as DanglingRef['why'] }]
  })
}

/** Entries of the index that have no record, or stand where it is not, each at one instant. */
async function findMisfiled(
  ledger: AccountLedger,
  entries: readonly IndexEntry[],
): Promise<DanglingRef[]> {
  const ids = entries.map(({ recordId }) => recordId)
  const answer = (await ledger.run('find-misfiled', ledger.retention.story, ...ids)) as string[]
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
  lacks: MissingPlace | 'lead'
}

/** Records that one script looks at: it stops everybody else meanwhile. */
const recordsPerScript = 50

/** Pending items of the records that nothing would move, each record as it is at one instant. */
async function findStranded(
  ledger: AccountLedger,
  ledgers: readonly AccountLedger[],
  recordIds: readonly string[],
): Promise<StrandedItem[]> {
  const stranded: StrandedItem[] = []
  for (let at = 0; at < recordIds.length; at += recordsPerScript) {
    const page = recordIds.slice(at, at + recordsPerScript)
    const stored = await ledger.runJson<StoredFinding[]>('find-stranded', ...page)
    for (const one of await resolveLedMembers(ledgers, stored)) stranded.push(one)
  }
  return stranded
}

/** A member of a message is led by what has its head: often in another account's book. */
async function resolveLedMembers(
  ledgers: readonly AccountLedger[],
  stored: readonly StoredFinding[],
): Promise<StrandedItem[]> {
  const heads = new Map<string, MissingPlace | undefined>()
  const stranded: StrandedItem[] = []
  for (const { r: ref, u: uid, k: sink, st: state, why: heldFor, b = '', lacks } of stored) {
    const item = { ref, uid, sink, state, heldFor }
    if (lacks !== 'lead') {
      stranded.push({ ...item, lacks })
      continue
    }
    if (!heads.has(b)) heads.set(b, await findMissingHead(ledgers, { messageId: b, sink }))
    const lack = heads.get(b)
    if (lack) stranded.push({ ...item, lacks: lack })
  }
  return stranded
}

/** Those that are so still, and in the same way: all else moved on between two looks. */
async function confirmStranded(
  ledger: AccountLedger,
  ledgers: readonly AccountLedger[],
  before: readonly StrandedItem[],
): Promise<StrandedItem[]> {
  const recordIds = [...new Set(before.map(({ ref }) => ref.split(':')[1] ?? ''))]
  const now = await findStranded(ledger, ledgers, recordIds)
  const suspectKeys = new Set(before.map(strandedKey))
  return now.filter((item) => suspectKeys.has(strandedKey(item)))
}

function strandedKey({ ref, state, lacks }: StrandedItem): string {
  return [ref, state, lacks].join(' ')
}

export interface MessageRef {
  messageId: string
  sink: string
}

/**
 * What a sealed message lacks; undefined: nothing. Its head is in one of the books: the message itself, or,
 * while it is being made, the timer whose turn makes it. So a digest's is in the book that leads.
 */
async function findMissingHead(
  ledgers: readonly AccountLedger[],
  message: MessageRef,
): Promise<'message' | 'message_due' | undefined> {
  for (const ledger of ledgers) if (await isUpcoming(ledger, message)) return undefined
  for (const ledger of ledgers) {
    const { messageId, sink } = message
    if ((await ledger.redis.exists(ledger.key('batch', messageId))) === 0) continue
    const due = await ledger.redis.zscore(ledger.key('due', sink), `b:${messageId}:${sink}`)
    return due === null ? 'message_due' : undefined
  }
  return 'message'
}

async function isUpcoming(
  ledger: AccountLedger,
  { messageId, sink }: MessageRef,
): Promise<boolean> {
  const upcoming = await listUpcomingMessages(ledger, sink)
  return upcoming.some((message) => message.messageId === messageId)
}

/** Messages that the book's turns make, or would make next: for a sink, or for all. */
export async function listUpcomingMessages(
  ledger: AccountLedger,
  sink?: string,
): Promise<MessageRef[]> {
  const timers = await ledger.redis.zrange(ledger.key('timers'), '0', '-1')
  const refs = timers
    .map(parseRef)
    .filter((ref) => ref.kind === 'gathering')
    .filter((ref) => sink === undefined || ref.sink === sink)
  return Promise.all(
    refs.map(async ({ id, sink: to }) => {
      const [opened, seq] = await ledger.redis.hmget(ledger.key('gather', id), 'opened', 'seq')
      const turn = { ledger, id, openedAtMs: Number(opened), sequence: Number(seq ?? 0) }
      return { messageId: deriveMessageId(turn), sink: to }
    }),
  )
}
