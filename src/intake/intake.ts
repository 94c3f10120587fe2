/**
 * Takes a page in exactly once: new events, their items, the cursor and the counters change in one
 * atomic commit, fenced by the feed's sequence. It never fetches and never sends.
 */
import { randomUUID } from 'node:crypto'
import { severityRank } from '../events/severity.ts'
import type { ThreatEvent } from '../events/threat-event.ts'
import type { Book } from '../ledger/book.ts'
import type { MadeWork } from '../ledger/collecting.ts'
import type { Walk } from '../ledger/feed-state.ts'
import type { Payload, StoredDecision } from '../ledger/records.ts'

/** How long an item waits for its full event before the message goes without (ledger rules, Requests). */
export const detailWaitMs = 20_000

/** What is kept of a malformed item, characters; its mark covers the whole. */
const maxRawLength = 16_384

/** An event with its way fixed: which routes took it, and one planned item for each destination. */
export interface RoutedEvent {
  event: ThreatEvent
  decisions: StoredDecision[]
  items: { sink: string; destination: string; routes: string[] }[]
  wantsDetail: boolean
}

/** Something in a page that is not an event. `raw` is canonical JSON with secrets masked. */
export interface MalformedItem {
  uid: string | null
  problem: string
  raw: string
}

export interface Page {
  feed: string
  labels: Record<string, string>
  /** The fence that was read before the fetch. */
  sequence: number
  generation: number
  /** The walk with its cursor after this page. */
  walk: Walk
  /** When the request for this page left, wall clock ms. */
  requestedAtMs: number
  isCaughtUp: boolean
  isBackfilling: boolean
  events: RoutedEvent[]
  malformed: MalformedItem[]
}

export type Accepted =
  | { status: 'stale' }
  | { status: 'superseded' }
  | {
      status: 'committed'
      counts: { fetched: number; new: number; duplicate: number; quarantined: number }
      /** Work to be queued at once; the reconciler would find it too. */
      made: MadeWork[]
      /** Those of the page's events that this feed had not shown before. */
      newEvents: RoutedEvent[]
    }

/** `batchWaitMs`: how long a sink collects a batch; undefined where it sends singly. */
export async function acceptPage(
  book: Book,
  page: Page,
  batchWaitMs: (sink: string) => number | undefined,
): Promise<Accepted> {
  const payloads = page.events.map(({ event }): Payload => ({
    event,
    fetchedAtMs: page.requestedAtMs,
  }))
  const answer = await book.ask<StoredAnswer>(
    'commit-page',
    JSON.stringify(askOf(book, page, batchWaitMs)),
    JSON.stringify(page.walk),
    ...payloads.map((payload) => JSON.stringify(payload)),
    ...page.malformed.map(({ raw }) => raw.slice(0, maxRawLength)),
  )
  if (answer.status !== 'committed') return { status: answer.status }
  return {
    status: 'committed',
    counts: answer.counts,
    made: answer.made ?? [],
    newEvents: page.events.filter((_event, place) => answer.fresh?.includes(place)),
  }
}

interface StoredAnswer {
  status: 'committed' | 'stale' | 'superseded'
  counts: { fetched: number; new: number; duplicate: number; quarantined: number }
  made?: MadeWork[]
  fresh?: number[]
}

function askOf(
  book: Book,
  page: Page,
  batchWaitMs: (sink: string) => number | undefined,
): Record<string, unknown> {
  const newest = Math.max(...page.events.map(({ event }) => event.createdAtMs ?? 0), 0)
  return {
    feed: page.feed,
    seq: page.sequence,
    cid: randomUUID(),
    gen: page.generation,
    fp: page.walk.fingerprint,
    horizon: book.horizonMs,
    retention: book.retention,
    detail_wait: detailWaitMs,
    requested: Math.floor(page.requestedAtMs),
    caught_up: page.isCaughtUp,
    backfill: page.isBackfilling,
    ...(newest > 0 && { newest }),
    events: page.events.map((routed) => storedEvent(book, page, routed, batchWaitMs)),
    bad: page.malformed.map((bad) => storedMalformed(book, page.feed, bad)),
  }
}

function storedEvent(
  { digests }: Book,
  { feed, labels }: Page,
  { event, decisions, items, wantsDetail }: RoutedEvent,
  batchWaitMs: (sink: string) => number | undefined,
): Record<string, unknown> {
  return {
    u: event.uid,
    rid: digests.recordId(event.uid),
    sv: event.severity,
    rk: severityRank(event.severity),
    ty: event.type,
    seen: digests.seenMark(feed, event.uid),
    l: labels,
    w: decisions,
    dt: wantsDetail,
    items: items.map(({ sink, destination, routes }) => ({
      d: destination,
      k: sink,
      q: routes,
      ...digests.claimMark(event.uid, event.severity, destination),
      bw: batchWaitMs(sink),
    })),
  }
}

function storedMalformed(
  { digests }: Book,
  feed: string,
  { uid, problem, raw }: MalformedItem,
): Record<string, unknown> {
  return {
    ...digests.malformedMark(feed, raw),
    rid: digests.recordId(raw),
    ...(uid !== null && { uid }),
    problem,
  }
}
