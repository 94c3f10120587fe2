/**
 * Pending items by sink: reads what is due, and moves items into groups, holds, batches and other
 * sinks.
 */
import { type EventDetail, severityRank, type Victims } from '../event.ts'
import { redisNow } from '../redis/scripts.ts'
import type { AccountLedger } from './account-ledger.ts'
import { fallbackRule } from './item-states.ts'
import {
  type Item,
  type ItemState,
  type LedgerRecord,
  parseHistory,
  readRecords,
  type StoredItem,
  type Suppression,
} from './records.ts'
import { toStoredTerms } from './history/terms.ts'

/** Returns every sink that the account ledger ever had an item for, configured or not. */
export function readSinkNames(ledger: AccountLedger): Promise<string[]> {
  return ledger.redis.smembers(ledger.key('sinks'))
}

/** Returns all of a sink's references, those due now or later, by due time from `offset` on. */
export function readPendingRefs(
  ledger: AccountLedger,
  sink: string,
  { offset, count }: { offset: number; count: number },
): Promise<string[]> {
  return ledger.redis.zrange(ledger.key('due', sink), String(offset), String(offset + count - 1))
}

/**
 * Returns item references, oldest first, that wait in a sink's batch (`id` is the sink) or in a
 * group.
 */
export function readMemberRefs(
  ledger: AccountLedger,
  id: string,
  { offset, count }: { offset: number; count: number },
): Promise<string[]> {
  return ledger.redis.zrange(ledger.key('collect', id), String(offset), String(offset + count - 1))
}

/** When the sink's longest-waiting work became or becomes due, ms; undefined if there is none. */
export async function firstDueMs(ledger: AccountLedger, sink: string): Promise<number | undefined> {
  const [, score] = await ledger.redis.zrange(ledger.key('due', sink), '0', '0', 'WITHSCORES')
  return score === undefined ? undefined : Number(score)
}

/** Which retries, and how many at most. */
export interface RetriesWanted {
  max: number
  /**
   * Of these destinations alone: what of theirs is due within half a minute, or being sent, counts
   * as made due. None: of all.
   */
  only?: readonly string[]
  /** Also what the sink refused for what it is, or put off itself. */
  all?: boolean
}

/** Makes due now what waits because its sink or destination failed; returns its references. */
export async function makeRetriesDue(
  ledger: AccountLedger,
  sink: string,
  { max, only = [], all = false }: RetriesWanted,
): Promise<string[]> {
  const woken: string[] = []
  let place = ''
  do {
    const args = [sink, max - woken.length, place, Number(all), ...only]
    const [end = '', ...refs] = (await ledger.run('wake-retries', ...args)) as string[]
    place = end
    woken.push(...refs)
  } while (place !== '' && woken.length < max)
  return woken
}

/** Postpones a piece of due work by `forMs`. */
export async function postponeDue(
  ledger: AccountLedger,
  ref: string,
  forMs: number,
): Promise<void> {
  const atMs = (await redisNow(ledger)) + forMs
  await ledger.redis.zadd(ledger.key('due', ref.split(':').at(-1) ?? ''), 'XX', atMs, ref)
}

/** A group that items wait in until they leave in one message for people. */
export interface Group {
  /** Names the group: [a-z0-9]+, the same for all its items. */
  id: string
  /**
   * `group` flushes `waitMs` after it opened, `backlog` `waitMs` after its last member joined,
   * `digest` and `held` at `atMs`.
   */
  kind: 'group' | 'digest' | 'backlog' | 'held'
  waitMs: number
  atMs?: number
  /** Does not wait for the group's interval. */
  isUrgent: boolean
  /** Facts that the message will need; stored with the group. */
  about: GroupFacts
}

export interface GroupFacts {
  destination: string
  route: string | null
  labels: Record<string, string>
  feed: string | null
  /** The sink that could not be reached, if this one is its fallback. */
  divertedFrom?: string
}

/** Moves single items for people that still wait into their groups; returns how many. */
export async function groupItems(
  ledger: AccountLedger,
  refs: readonly string[],
  groups: Readonly<Record<string, Group>>,
): Promise<number> {
  const args = { members: refs, places: toStoredGroups(groups) }
  return refs.length === 0 ? 0 : Number(await ledger.run('group-items', JSON.stringify(args)))
}

/** A change that a script made to an item. */
export interface ItemChange {
  ref: string
  /** Sink. */
  k: string
  /** Severity and its rank. */
  sv: string
  rk: number
  /**
   * `single`: it is due at once; `collect`: it waits in its sink's batch; `group`: it waits in a
   * group; `detail`: it is held until the full event is there; `suppressed`: it is final already,
   * for the reason `why`; `superseded`: so is an older item, because its event came back more
   * severe.
   */
  kind: 'single' | 'collect' | 'group' | 'detail' | 'suppressed' | 'superseded'
  why?: Suppression
}

/** By configured sink: how long its batch waits, ms, or false if it sends singly. */
export type SinkBatchWaits = Record<string, number | false>

/** What is known of a record once its full event has come, or did not come in time. */
export interface FullEvent {
  detail: EventDetail | 'unavailable'
  /** By the full event, and by the search item alone, which it replaces; undefined keeps that. */
  title?: { now: string; before: string | undefined }
  /** Whom it names. */
  victims?: Victims
}

/**
 * Stores a record's full event and releases the items that wait for it. Where one is stored
 * already, nothing waits, or an item is being sent, what is stored stays as it is.
 */
export async function releaseDetail(
  ledger: AccountLedger,
  recordId: string,
  sinks: SinkBatchWaits,
  { detail, title, victims }: FullEvent,
): Promise<ItemChange[]> {
  const of = victims && toStoredTerms(ledger, {}, victims)
  const args = JSON.stringify({ rid: recordId, sinks, title, of, retention: ledger.retention })
  const text = JSON.stringify(detail)
  const answer = await ledger.runJson<{ made?: ItemChange[] }>('release-detail', args, text)
  return answer.made ?? []
}

/** An item to suppress, or to hold until a time in a group. */
export type SuppressedItem = { ref: string; rule: string } & (
  | { act: 'suppress'; reason: Suppression }
  | { act: 'hold'; untilMs: number; group: Group }
)

/**
 * Suppresses or holds items: members of the batch of `batchSink`, or, without it, single items that
 * were never tried. Resolves with the refs of those that still waited.
 */
export async function suppressItems(
  ledger: AccountLedger,
  members: readonly SuppressedItem[],
  batchSink?: string,
): Promise<string[]> {
  const args = {
    sink: batchSink,
    retention: ledger.retention,
    members: members.map(toStoredSuppressed),
  }
  return (await ledger.run('suppress-items', JSON.stringify(args))) as string[]
}

/** As the scripts take it. */
export function toStoredSuppressed(item: SuppressedItem): Record<string, unknown> {
  const { ref: r, rule, act: a } = item
  if (item.act === 'suppress') return { r, a, rule, reason: item.reason }
  const at = Math.floor(item.untilMs)
  return { r, a, rule, reason: 'mute', at, place: toStoredGroup(item.group) }
}

/**
 * The attempts at a frozen message, of which its members learn once it is settled, and when the
 * next one is. undefined for one that is settled. A digest of several accounts is in one of their
 * ledgers.
 */
export async function readMessageAttempts(
  ledgers: readonly AccountLedger[],
  messageId: string,
): Promise<Pick<Item, 'attempts' | 'history' | 'atMs'> | undefined> {
  const texts = await Promise.all(
    ledgers.map((ledger) => ledger.redis.get(ledger.key('batch', messageId))),
  )
  const text = texts.find((found) => found !== null)
  if (text === undefined) return undefined
  const { n, h, st, at } = JSON.parse(text) as Pick<StoredItem, 'n' | 'h' | 'st' | 'at'>
  return { attempts: n, history: parseHistory(h), atMs: st === 'retrying' ? at : undefined }
}

/** Groups by destination, as the scripts take them. */
export function toStoredGroups(
  groups: Readonly<Record<string, Group>>,
): Record<string, Record<string, unknown>> {
  const stored = Object.entries(groups).map(([id, group]) => [id, toStoredGroup(group)])
  return Object.fromEntries(stored) as Record<string, Record<string, unknown>>
}

/** A group as the scripts take it. */
export function toStoredGroup(group: Group): Record<string, unknown> {
  const { id, kind, waitMs, atMs, isUrgent, about } = group
  return { id, kind, wait: waitMs, at: atMs, urgent: isUrgent, about: JSON.stringify(about) }
}

/**
 * `busy`: it is being sent or in a frozen message (to reroute: also held until later; to resend: not
 * final yet); `other`: it is in no such state any more; `no_payload`: retention dropped what would be
 * sent.
 */
export type RedirectStatus = 'done' | 'busy' | 'other' | 'no_payload'

export interface MoveTarget {
  sink: string
  destination: string
  /** How long its batch collects; undefined if it sends singly. */
  batchWaitMs: number | undefined
  /** The group it joins; undefined: it is sent singly, or in the batch. */
  group?: Group | undefined
}

/** The part of an item that has to be kept in memory to move it. */
export interface MovableItem {
  ref: string
  record: Pick<LedgerRecord, 'uid'>
  item: Pick<Item, 'severity'>
}

/** Ends a pending item as diverted; each target gets it unless it had the event already. */
export function moveItem(
  ledger: AccountLedger,
  { ref, record, item }: MovableItem,
  targets: readonly MoveTarget[],
  by: string,
): Promise<RedirectStatus> {
  const stored = targets.map((target) => toStoredTarget(ledger, { record, item }, target))
  return redirect(ledger, { ref, verb: 'move', by, targets: stored })
}

interface RerouteOptions {
  /** Name of the fallback sink. */
  to: string
  targets: readonly MoveTarget[]
  /** An attempt that began so many ms ago has died with its process. */
  staleMs: number
}

interface RerouteResult {
  status: RedirectStatus
  /** What the fallback got; empty if it had the event already. */
  made: ItemChange[]
}

/**
 * Reroutes an item whose sink cannot be reached to the fallback, unless that had the event already.
 */
export async function rerouteItem(
  ledger: AccountLedger,
  { ref, record, item }: MovableItem,
  { to, targets, staleMs }: RerouteOptions,
): Promise<RerouteResult> {
  const stored = targets.map((target) => toStoredTarget(ledger, { record, item }, target))
  const by = fallbackRule(to)
  const answer = await runRedirect(ledger, {
    ref,
    verb: 'divert',
    by,
    targets: stored,
    stale: staleMs,
  })
  return { made: [], ...answer }
}

function toStoredTarget(
  ledger: AccountLedger,
  { record, item }: Omit<MovableItem, 'ref'>,
  { sink, destination, batchWaitMs, group }: MoveTarget,
): Record<string, unknown> {
  return {
    d: destination,
    k: sink,
    ...ledger.fingerprints.ofEvent(record.uid).claim(item.severity, destination),
    bw: batchWaitMs,
    place: group && toStoredGroup(group),
  }
}

/** Gives a pending item up, which then counts as dead, or closes a dead letter. */
export function discardItem(
  ledger: AccountLedger,
  ref: string,
  by: string,
): Promise<RedirectStatus> {
  return redirect(ledger, { ref, verb: 'discard', by })
}

interface ResendOptions {
  batchWaitMs: number | undefined
  by: string
  /** The state in which it was found: one that is in another by now stays as it is. */
  was?: ItemState | undefined
}

/**
 * Queues a final item again under its id. It counts as replayed; its first outcome stays counted.
 */
export function resendItem(
  ledger: AccountLedger,
  ref: string,
  { batchWaitMs, by, was }: ResendOptions,
): Promise<RedirectStatus> {
  return redirect(ledger, { ref, verb: 'resend', by, bw: batchWaitMs, was })
}

/** An attempt that began longer ago died with its process. */
export const staleAttemptMs = 60_000

async function redirect(
  ledger: AccountLedger,
  ask: Record<string, unknown>,
): Promise<RedirectStatus> {
  return (await runRedirect(ledger, ask)).status
}

function runRedirect(
  ledger: AccountLedger,
  ask: Record<string, unknown>,
): Promise<Pick<RerouteResult, 'status'> & Partial<RerouteResult>> {
  const bounds = { horizon: ledger.horizonMs, retention: ledger.retention }
  const args = { stale: staleAttemptMs, ...bounds, ...ask }
  return ledger.runJson('redirect-item', JSON.stringify(args))
}

/** Sorts the most severe first: items arrive in the order in which they are moved. */
export function worstFirst(a: Pick<MovableItem, 'item'>, b: Pick<MovableItem, 'item'>): number {
  return severityRank(b.item.severity) - severityRank(a.item.severity)
}

const lettersPerPage = 200

/** Scans the records of a sink's dead letters, newest first; one of two letters may come twice. */
export async function* scanDeadRecords(
  ledger: AccountLedger,
  sink: string,
): AsyncGenerator<LedgerRecord> {
  const name = ledger.key('dead', sink)
  for (let from = 0, isEnd = false; !isEnd; from += lettersPerPage) {
    const refs = await ledger.redis.zrevrange(name, from, from + lettersPerPage - 1)
    yield* await readRecords(ledger, [...new Set(refs.map((ref) => ref.split(':')[1] ?? ''))])
    isEnd = refs.length < lettersPerPage
  }
}
