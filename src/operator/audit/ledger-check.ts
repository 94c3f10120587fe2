/**
 * The consistency check of the ledger, while everything runs. Counters and records agree. Every
 * pending item is in the set from which something will move it. The index has every record with the
 * right score. It reads Redis only and changes nothing.
 */
import { deriveMessageId } from '../../grouping/freeze.ts'
import { type AccountLedger, parseRef } from '../../store/account-ledger.ts'
import {
  type Accounting,
  type AccountingSnapshot,
  sumPending,
  readAccountingSnapshot,
} from '../../store/accounts.ts'
import { pairsOf } from '../../redis/scripts.ts'
import { scanEntries } from '../../store/record-index.ts'
import { type Item, type ItemState, pendingStates, scanRecords } from '../../store/records.ts'

/** Entries of the index that one script checks: Redis serves nobody else while it runs. */
const recordsPerLook = 100

/** Checks ledgers; yields how many records it has read, so that the caller can pause in between. */
export async function* checkLedgers(
  ledgers: readonly AccountLedger[],
): AsyncGenerator<number, LedgerCheck[]> {
  const checks: LedgerCheck[] = []
  let checkedRecords = 0
  for (const ledger of ledgers) {
    const steps = checkLedger(ledger, ledgers)
    let step = await steps.next()
    for (; !step.done; step = await steps.next()) yield checkedRecords + step.value
    checkedRecords += step.value.records
    checks.push(step.value)
    yield checkedRecords // a thousand accounts without work are a step each, too
  }
  return checks
}

/**
 * Checks one ledger. Stranded items are checked a second time, since they may have moved meanwhile.
 */
async function* checkLedger(
  ledger: AccountLedger,
  ledgers: readonly AccountLedger[],
): AsyncGenerator<number, LedgerCheck> {
  const suspects: StrandedItem[] = []
  const scan = yield* scanWithConfirmation(ledger, async (recordIds) => {
    suspects.push(...(await findStranded(ledger, ledgers, recordIds)))
  })
  const misfiled: MisfiledRecord[] = []
  for await (const some of findMisfiled(ledger)) {
    misfiled.push(...some)
    yield 0
  }
  const stranded = await confirmStranded(ledger, ledgers, suspects)
  return { account: ledger.account, ...scan, stranded, misfiled }
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

/** What the check of one account's ledger found. */
export interface LedgerCheck {
  account: string
  /** When the counters were read, by Redis' clock; ms. */
  atMs: number
  accounting: Accounting
  /** How many records the index has. */
  records: number
  /** How many existing records the index lacks; below 0: how many it has too many. */
  unfiled: number
  differences: SinkDifference[]
  stranded: StrandedItem[]
  misfiled: MisfiledRecord[]
}

/** Counters and records differ in the number of pending items, and did so in two scans. */
interface SinkDifference {
  sink: string
  /** According to the counters. */
  counted: number
  /** According to the records. */
  found: number
}

/** A pending item that nothing will ever move. */
export interface StrandedItem {
  ref: string
  uid: string
  sink: string
  state: ItemState
  heldFor: string | undefined
  lacks: MissingPlace
}

/**
 * The place from which a stranded item would be moved and where it is missing: its due time, its
 * group, that group's timer, its frozen message, that message's due time.
 */
export type MissingPlace = 'due' | 'collection' | 'timer' | 'message' | 'message_due'

/** An entry of the index: its record waits and is gone, or belongs elsewhere in it. */
export interface MisfiledRecord {
  recordId: string
  why: 'gone' | 'other_state'
}

/** Whether nothing is wrong: the sums of feeds and sinks, the index, and what moves items. */
export function isConsistent(check: LedgerCheck): boolean {
  const { accounting, unfiled, differences, stranded, misfiled } = check
  const accounts = [...Object.values(accounting.feeds), ...Object.values(accounting.sinks)]
  const isBalanced = unfiled === 0 && accounts.every(({ unaccounted }) => unaccounted === 0)
  return isBalanced && [...differences, ...stranded, ...misfiled].length === 0
}

/** One scan of pending and just settled records, counted as of the moment of the snapshot. */
interface LedgerScan extends AccountingSnapshot {
  differences: SinkDifference[]
}

/** Records between two yields. */
const recordsPerStep = 500

/** Pending records per call of `onPending`. */
const recordsPerPage = 50

/** Scans a ledger; yields how many records were read. `onPending` gets ids of pending records. */
async function* scanLedger(
  ledger: AccountLedger,
  onPending: (recordIds: string[]) => Promise<void> = () => Promise.resolve(),
): AsyncGenerator<number, LedgerScan> {
  const countersNow = await readAccountingSnapshot(ledger)
  const { atMs, accounting } = countersNow
  const tallies: PendingTallies = new Map()
  let records = 0
  let pending: string[] = []
  for await (const { recordId, items } of scanRecords(ledger, () => atMs)) {
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
 * Keeps differences that a second scan shows by the same amount. An item that was resent during the
 * first scan, or a record that it read twice, makes a difference in one scan only.
 */
function confirmDifferences(first: SinkDifference[], second: SinkDifference[]): SinkDifference[] {
  return second.filter(({ sink, counted, found }) =>
    first.some((one) => one.sink === sink && one.counted - one.found === counted - found),
  )
}

/**
 * How many items of each sink were pending at one moment, though records are read one after the
 * other. An item that was created or ended within that very millisecond counts in `most` only.
 */
export type PendingTallies = Map<string, PendingTally>

interface PendingTally {
  least: number
  most: number
  /**
   * Items created or ended after that moment, according to their records; counted by `tallyLater`.
   */
  later: PendingSpan[]
}

/** Times of an item; a pending one ends at Infinity. */
interface PendingSpan {
  createdAtMs: number
  endedAtMs: number
}

function isPending({ state }: Pick<Item, 'state'>): boolean {
  return (pendingStates as readonly string[]).includes(state)
}

/** Adds an item as it is now, read after `atMs`. */
function tallyItem(tallies: PendingTallies, item: Item, atMs: number): void {
  const { createdAtMs } = item
  const endedAtMs = isPending(item) ? Infinity : (item.endedAtMs ?? 0)
  const tally = tallies.get(item.sink) ?? { least: 0, most: 0, later: [] }
  tallies.set(item.sink, tally)
  const isLater = createdAtMs > atMs || (!isPending(item) && endedAtMs > atMs)
  if (isLater) tally.later.push({ createdAtMs, endedAtMs })
  else tallySpan(tally, { createdAtMs, endedAtMs }, atMs)
}

/**
 * Counts the `later` items once the scan has ended at `endMs`. A time after that was written before
 * Redis' clock was set back, so it counts as long past.
 */
function tallyLater(tallies: PendingTallies, atMs: number, endMs: number): void {
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

/** By how much at least the counter is wrong; 0: it may be right. */
function counterError(
  counted: number,
  { least, most }: Pick<PendingTally, 'least' | 'most'>,
): number {
  if (counted < least) return counted - least
  return counted > most ? counted - most : 0
}

/** Finds entries of the index without a record or with a score that is not the record's. */
async function* findMisfiled(ledger: AccountLedger): AsyncGenerator<MisfiledRecord[]> {
  for await (const entries of scanEntries(ledger)) {
    for (let at = 0; at < entries.length; at += recordsPerLook) {
      const ids = entries.slice(at, at + recordsPerLook).map(({ recordId }) => recordId)
      const answer = (await ledger.run('find-misfiled', ...ids)) as string[]
      yield pairsOf(answer).map(([recordId, why]) => ({
        recordId,
        why: why as MisfiledRecord['why'],
      }))
    }
  }
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

/** Records that one script reads: Redis serves nobody else while it runs. */
const recordsPerScript = 50

/**
 * Finds pending items of the given records that nothing will move; reads each record at one
 * instant.
 */
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

/**
 * Checks findings that lack a `lead`: the head of their message is often in another account's
 * ledger.
 */
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

/** Keeps items that are stranded in the same way at a second look; the others have moved on. */
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

interface MessageRef {
  messageId: string
  sink: string
}

/**
 * What the head of a frozen message lacks; undefined: nothing. The head is in one of the ledgers:
 * the message itself, or, until that is written, the timer of the flush that makes it. For a digest
 * that is the lead ledger.
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

/** The messages that the account's flushes are making or will make next, for a sink or for all. */
async function listUpcomingMessages(ledger: AccountLedger, sink?: string): Promise<MessageRef[]> {
  const timers = await ledger.redis.zrange(ledger.key('timers'), '0', '-1')
  const refs = timers
    .map(parseRef)
    .filter((ref) => ref.kind === 'group')
    .filter((ref) => sink === undefined || ref.sink === sink)
  return Promise.all(
    refs.map(async ({ id, sink: to }) => {
      const [opened, seq] = await ledger.redis.hmget(ledger.key('group', id), 'opened', 'seq')
      const flush = { ledger, id, openedAtMs: Number(opened), sequence: Number(seq ?? 0) }
      return { messageId: deriveMessageId(flush), sink: to }
    }),
  )
}
