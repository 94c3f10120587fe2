/** What waits for its time, by sink; claims and the metrics read it. */
import { severityRank } from '../event.ts'
import { redisNow } from '../redis/scripts.ts'
import type { Book } from './account-ledger.ts'
import {
  type Item,
  type LedgerRecord,
  type Payload,
  pendingStates,
  readRecord,
  scanPendingRecords,
  scanRecords,
  type Suppression,
} from './records.ts'

/** Every sink that the book ever had an item for, in the configuration or not. */
export function sinksOf(book: Book): Promise<string[]> {
  return book.redis.smembers(book.key('sinks'))
}

/** Refs of a sink that are due at `nowMs`, longest-waiting first, from `offset` on. */
export function overdueRefs(
  book: Book,
  sink: string,
  nowMs: number,
  { offset, count }: { offset: number; count: number },
): Promise<string[]> {
  return book.redis.zrangebyscore(book.key('due', sink), '-inf', nowMs, 'LIMIT', offset, count)
}

/** Refs of a sink that are due or will be, in that order, from `offset` on. */
export function waitingRefs(
  book: Book,
  sink: string,
  { offset, count }: { offset: number; count: number },
): Promise<string[]> {
  return book.redis.zrange(book.key('due', sink), String(offset), String(offset + count - 1))
}

/** Refs of items that wait for company, oldest first: in a sink's batch (by the sink), or in a collection. */
export function collectedRefs(
  book: Book,
  id: string,
  { offset, count }: { offset: number; count: number },
): Promise<string[]> {
  return book.redis.zrange(book.key('collect', id), String(offset), String(offset + count - 1))
}

/** When the longest-waiting work of a sink became or becomes due, ms; undefined where none waits. */
export async function firstDueMs(book: Book, sink: string): Promise<number | undefined> {
  const [, score] = await book.redis.zrange(book.key('due', sink), '0', '0', 'WITHSCORES')
  return score === undefined ? undefined : Number(score)
}

/** Makes tries due now that wait for a later time because their sink failed; resolves with their refs. */
export async function wakeRetries(book: Book, sink: string, max: number): Promise<string[]> {
  return (await book.run('wake-retries', sink, max)) as string[]
}

/** Looks at a piece of due work again only after `forMs`. */
export async function putOff(book: Book, ref: string, forMs: number): Promise<void> {
  const atMs = (await redisNow(book)) + forMs
  await book.redis.zadd(book.key('due', ref.split(':').at(-1) ?? ''), 'XX', atMs, ref)
}

/** Items on their way to a message: held for the full event, collected for a batch, or orphaned. */

/** Where items wait for company until they leave in one message for people. */
export interface Gathering {
  /** Names the collection: [a-z0-9]+, the same for all that belong together. */
  id: string
  /**
   * `group` flushes `waitMs` after it opened, `backlog` as long after its last member came, `digest`
   * and `held` at `atMs`.
   */
  kind: 'group' | 'digest' | 'backlog' | 'held'
  waitMs: number
  atMs?: number
  /** Does not wait for the group's interval. */
  isUrgent: boolean
  /** What the message will need to know; kept with the collection. */
  about: GatheringAbout
}

export interface GatheringAbout {
  destination: string
  route: string | null
  labels: Record<string, string>
  feed: string | null
  /** The sink that could not be reached, where this one is its fallback. */
  divertedFrom?: string
}

/** Takes people's items that would go singly, those that still wait, to their places; says how many. */
export async function gatherItems(
  book: Book,
  refs: readonly string[],
  places: Readonly<Record<string, Gathering>>,
): Promise<number> {
  const ask = { members: refs, places: storedPlaces(places) }
  return refs.length === 0 ? 0 : Number(await book.run('gather-items', JSON.stringify(ask)))
}

/** Gives up what still waits while more than `keep` of the sink do: dead letters, for `overflow`; says how many. */
export async function overflowItems(
  book: Book,
  refs: readonly string[],
  { sink, keep }: { sink: string; keep: number },
): Promise<number> {
  const ask = { members: refs, sink, keep, retention: book.retention }
  return Number(await book.run('overflow-items', JSON.stringify(ask)))
}

/** A piece of work that a script just made ready. */
export interface MadeWork {
  ref: string
  /** Sink. */
  k: string
  /** Severity and its rank. */
  sv: string
  rk: number
  /**
   * `collect`: it waits in its sink's batch; `gather`: with its like, until their timer; `detail`: it is
   * held until the full event is there; `suppressed`: it is final already, `why` says for what reason;
   * `superseded`: so is an older item, whose event came back more severe.
   */
  kind: 'single' | 'collect' | 'gather' | 'detail' | 'suppressed' | 'superseded'
  why?: Suppression
}

/** The sinks of this configuration: how long a batch may collect, or false where it sends singly. */
export type SinkModes = Record<string, number | false>

/** Stores the full event (undefined: leaves the payload) and sends the record's held items on. */
export async function releaseDetail(
  book: Book,
  recordId: string,
  sinks: SinkModes,
  payload?: Payload,
): Promise<MadeWork[]> {
  const ask = JSON.stringify({ rid: recordId, sinks })
  const text = payload === undefined ? '' : JSON.stringify(payload)
  const answer = await book.ask<{ made?: MadeWork[] }>('release-detail', ask, text)
  return answer.made ?? []
}

/** What is kept from being sent: for good, or until a time, at a place where people's items wait for company. */
export type Kept = { ref: string; rule: string } & (
  | { act: 'suppress'; reason: Suppression }
  | { act: 'hold'; untilMs: number; place?: Gathering | undefined }
)

/**
 * Keeps items back that were never tried: out of `collection`, a sink that batches, or such as go
 * singly. Resolves with those that still waited.
 */
export async function keepBack(
  book: Book,
  members: readonly Kept[],
  collection?: string,
): Promise<string[]> {
  const ask = { sink: collection, retention: book.retention, members: members.map(storedKept) }
  return (await book.run('keep-back', JSON.stringify(ask))) as string[]
}

function storedKept(kept: Kept): Record<string, unknown> {
  const { ref: r, rule, act: a } = kept
  if (kept.act === 'suppress') return { r, a, rule, reason: kept.reason }
  const at = Math.floor(kept.untilMs)
  return { r, a, rule, reason: 'mute', at, place: kept.place && storedGathering(kept.place) }
}

/**
 * Holds what a ref stands for, because the configuration has no such sink. A summary whose outcome is
 * known stays as it is: its members are to be settled.
 */
export async function holdOrphan(book: Book, ref: string): Promise<void> {
  while ((await book.run('orphan-item', ref, 'hold', '', '')) === 0);
}

interface ReturningSink {
  sink: string
  mode: number | false
  /** By destination: where its items wait for company, to come as one summary. */
  places: Record<string, Gathering>
}

/** Takes back what was held for a sink that is there again; at most `max` a call. */
export async function returnOrphans(
  book: Book,
  { sink, mode, places }: ReturningSink,
  max: number,
): Promise<number> {
  const refs = await book.redis.srandmember(book.key('orphans', sink), max)
  if (refs.length === 0) return 0
  const text = JSON.stringify(storedPlaces(places))
  for (const ref of refs) {
    await book.run('orphan-item', ref, 'return', mode === false ? '' : mode, text)
  }
  return refs.length
}

/** Places by destination as the scripts take them. */
export function storedPlaces(
  places: Readonly<Record<string, Gathering>>,
): Record<string, Record<string, unknown>> {
  const stored = Object.entries(places).map(([id, place]) => [id, storedGathering(place)])
  return Object.fromEntries(stored) as Record<string, Record<string, unknown>>
}

/** A gathering as the scripts take it. */
export function storedGathering(gathering: Gathering): Record<string, unknown> {
  const { id, kind, waitMs, atMs, isUrgent, about } = gathering
  return { id, kind, wait: waitMs, at: atMs, urgent: isUrgent, about: JSON.stringify(about) }
}

/** Items that take another way: moved to another sink, given up or sent again by hand; diverted to a fallback. */

export interface PlacedItem {
  ref: string
  record: LedgerRecord
  item: Item
}

/** `busy`: on its way just now (or, to be resent, not settled yet); `other`: not in such a state any more. */
export type Redirected = 'done' | 'collect' | 'busy' | 'other' | 'no_payload'

/** Every item of a sink, or of all, that is not final. */
export async function* pendingItems(book: Book, sink?: string): AsyncGenerator<PlacedItem> {
  for await (const record of scanPendingRecords(book)) {
    yield* placedIn(record, sink).filter(({ item }) =>
      (pendingStates as readonly string[]).includes(item.state),
    )
  }
}

/** Every item of a sink that ended at `sinceMs` or later and can be sent to it again. */
export async function* endedItems(
  book: Book,
  sink: string,
  sinceMs: number,
): AsyncGenerator<PlacedItem> {
  for await (const record of scanRecords(book, sinceMs)) yield* endedOf(record, sink, sinceMs)
}

/** Those of one record: what the sink accepted, or what its fallback got instead of it. */
export function endedOf(record: LedgerRecord, sink: string, sinceMs: number): PlacedItem[] {
  return placedIn(record, sink).filter(
    ({ item }) =>
      (item.state === 'delivered' || wentToFallback(item)) && (item.endedAtMs ?? 0) >= sinceMs,
  )
}

const fallbackWord = 'fallback to '

/** Diverted by itself; what an operator moved went away for good. */
function wentToFallback({ state, rule = '' }: Pick<Item, 'state' | 'rule'>): boolean {
  return state === 'diverted' && rule.startsWith(fallbackWord)
}

function placedIn(record: LedgerRecord, sink: string | undefined): PlacedItem[] {
  return record.items
    .filter((item) => sink === undefined || item.sink === sink)
    .map((item) => ({ ref: `i:${record.recordId}:${item.index}:${item.sink}`, record, item }))
}

export interface MoveTarget {
  sink: string
  destination: string
  /** How long its batch collects; undefined where it sends singly. */
  batchWaitMs: number | undefined
  /** Where it waits for company; undefined: it goes by itself, or into the batch. */
  place?: Gathering | undefined
}

/** What of an item has to be kept in memory to move it. */
export interface Movable {
  ref: string
  record: Pick<LedgerRecord, 'uid'>
  item: Pick<Item, 'severity'>
}

/** Ends the item as diverted; the targets get it unless they had the event already. */
export function moveItem(
  book: Book,
  { ref, record, item }: Movable,
  targets: readonly MoveTarget[],
  by: string,
): Promise<Redirected> {
  const stored = targets.map((target) => storedTarget(book, { record, item }, target))
  return redirect(book, { ref, verb: 'move', by, targets: stored })
}

interface Diversion {
  /** The fallback, and its destinations. */
  to: string
  targets: readonly MoveTarget[]
  /** An attempt that began so many ms ago has died with its process. */
  staleMs: number
}

interface Diverted {
  status: Redirected
  /** What the fallback got: nothing where it had the event already. */
  made: MadeWork[]
}

/** Ends an item whose sink cannot be reached as diverted; the fallback gets it unless it had the event already. */
export async function divertItem(
  book: Book,
  { ref, record, item }: Movable,
  { to, targets, staleMs }: Diversion,
): Promise<Diverted> {
  const stored = targets.map((target) => storedTarget(book, { record, item }, target))
  const ask = { ref, verb: 'divert', by: `${fallbackWord}${to}`, targets: stored, stale: staleMs }
  const text = await run(book, ask)
  return { made: [], ...(JSON.parse(text) as Omit<Diverted, 'made'>) }
}

function storedTarget(
  book: Book,
  { record, item }: Omit<Movable, 'ref'>,
  { sink, destination, batchWaitMs, place }: MoveTarget,
): Record<string, unknown> {
  return {
    d: destination,
    k: sink,
    ...book.digests.claimMark(record.uid, item.severity, destination),
    bw: batchWaitMs,
    place: place && storedGathering(place),
  }
}

/** Gives the item up: counted as dead, its letter closed at once. */
export function discardItem(book: Book, ref: string, by: string): Promise<Redirected> {
  return redirect(book, { ref, verb: 'discard', by })
}

/** Sends a final item again under its id; counted as replayed, its first outcome stays counted. */
export function resendItem(
  book: Book,
  ref: string,
  { batchWaitMs, by }: { batchWaitMs: number | undefined; by: string },
): Promise<Redirected> {
  return redirect(book, { ref, verb: 'resend', by, bw: batchWaitMs })
}

async function redirect(book: Book, ask: Record<string, unknown>): Promise<Redirected> {
  return (await run(book, ask)) as Redirected
}

async function run(book: Book, ask: Record<string, unknown>): Promise<string> {
  const whole = { ...ask, horizon: book.horizonMs, retention: book.retention }
  return String(await book.run('redirect-item', JSON.stringify(whole)))
}

/** The worst first: what is moved arrives in this order. */
export function bySeverity(a: Movable, b: Movable): number {
  return severityRank(b.item.severity) - severityRank(a.item.severity)
}

/** Dead letters: items that were given up, kept, and can be replayed while their payload is kept. */

export interface DeadLetter {
  /** `<account>.<record>.<index>`: what the commands take. */
  id: string
  ref: string
  diedAtMs: number
  record: LedgerRecord
  item: Item
}

interface DeadLetterPage {
  total: number
  letters: DeadLetter[]
}

/** Newest first. */
export async function listDeadLetters(
  book: Book,
  sink: string,
  { offset, count }: { offset: number; count: number },
): Promise<DeadLetterPage> {
  const total = await countDeadLetters(book, sink)
  const name = book.key('dead', sink)
  const refs = await book.redis.zrevrange(name, offset, offset + count - 1)
  const letters = await Promise.all(
    refs.map((ref) => {
      const [, recordId = '', index = ''] = ref.split(':')
      return readLetter(book, recordId, index)
    }),
  )
  return { total, letters: letters.filter((letter) => letter !== undefined) }
}

/** A letter ends with its record's story; those that did are forgotten here. */
export async function countDeadLetters(book: Book, sink: string): Promise<number> {
  const name = book.key('dead', sink)
  const oldestMs = (await redisNow(book)) - book.retention.story
  await book.redis.zremrangebyscore(name, '-inf', oldestMs)
  return book.redis.zcard(name)
}

/** undefined: no such letter in this book. `id` without the account. */
export async function findDeadLetter(book: Book, id: string): Promise<DeadLetter | undefined> {
  const [recordId = '', index = ''] = id.split('.')
  return readLetter(book, recordId, index)
}

/** undefined where it is dead no more: its event may have come again since its record ended. */
async function readLetter(
  book: Book,
  recordId: string,
  index: string,
): Promise<DeadLetter | undefined> {
  const record = await readRecord(book, recordId)
  const item = record?.items[Number(index)]
  if (!record || item?.state !== 'dead') return undefined
  const ref = `i:${recordId}:${index}:${item.sink}`
  const id = `${book.account}.${recordId}.${index}`
  return { id, ref, diedAtMs: item.endedAtMs ?? 0, record, item }
}

/** `no_payload`: the retention has dropped what would be sent. `collect`: it waits for a batch. */
export type LetterOutcome = 'done' | 'collect' | 'not_dead' | 'no_payload'

export async function replayDeadLetter(
  book: Book,
  ref: string,
  batchWaitMs: number | undefined,
): Promise<LetterOutcome> {
  return changeLetter(book, ref, 'replay', batchWaitMs)
}

/** Closes the letter; the item stays counted as dead. */
export async function discardDeadLetter(book: Book, ref: string): Promise<LetterOutcome> {
  return changeLetter(book, ref, 'discard', undefined)
}

async function changeLetter(
  book: Book,
  ref: string,
  verb: 'replay' | 'discard',
  batchWaitMs: number | undefined,
): Promise<LetterOutcome> {
  const { story, payload } = book.retention
  const answer = await book.run('dead-letter', ref, verb, batchWaitMs ?? '', story, payload)
  return answer as LetterOutcome
}
