/** Items on their way to a message: held for the full event, collected for a batch, or orphaned. */
import type { Book } from './book.ts'
import type { Payload, Suppression } from './records.ts'

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

export interface ReturningSink {
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
