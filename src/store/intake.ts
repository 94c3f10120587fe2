/**
 * Intake: takes a page in exactly once. New events, their items, the cursor and the counters change
 * in one atomic commit, fenced by the feed's sequence. Intake never fetches and never sends.
 */
import { randomUUID } from 'node:crypto'
import { noSeverity, ownFeed, severityRank, type ThreatEvent, type Victims } from '../event.ts'
import type { AccountLedger } from './account-ledger.ts'
import type { EndedScan, Scan } from './feed-state.ts'
import { type Group, type ItemChange, toStoredGroup } from './pending-items.ts'
import type { Payload, StoredAbout, StoredDecision, StoredShown } from './records.ts'
import { toStoredTerms } from './history/terms.ts'

/** Characters kept of a malformed item; its fingerprint covers all of it. */
const maxRawLength = 4_096

/** A routed event: which routes took it, and one planned item for each destination. */
export interface RoutedEvent {
  event: ThreatEvent
  /** The title of its messages; absent: only remembered, as baseline. */
  title?: string
  decisions: StoredDecision[]
  items: PlannedItem[]
  wantsDetail: boolean
  /** Created before the feed's start bound: a duplicate if it is known as baseline. */
  isBeforeStart?: boolean
  /** Only remember and count it, as baseline. */
  isBaseline?: boolean
  /** Recognises the same leaked credential in other sources. */
  pair?: CredentialPair
  /** The leaked secret, encrypted; only if a sink reveals secrets. */
  sealedSecret?: string
  /** The inhibition keys that it sets, and for how long. */
  inhibits?: { key: string; windowMs: number }[]
  victims?: Victims
}

/** What the configuration says of an event, and what its commit fixes. */
export type EventPlan = Pick<RoutedEvent, 'title' | 'decisions' | 'items' | 'inhibits' | 'victims'>

/** One item to be created. */
export interface PlannedItem {
  sink: string
  destination: string
  /** The first one decides about mutes and grouping. */
  routes: string[]
  /** Only recorded, never sent: its first route is in `mode: shadow`. */
  isShadow?: boolean
  /** The group it joins; undefined: it is sent singly, or in its sink's batch. */
  group?: Group
  /** The digest that counts it as sent already. */
  listedIn?: string
}

export interface CredentialPair {
  /** A keyed digest of the pair. The key is not in Redis, so a guess cannot be tested there. */
  id: string
  /** The source that shows it. */
  source: string
}

/** How long a pair is remembered after it was last shown, ms. */
const pairMemoryMs = 180 * 86_400_000

/** Something in a page that is not an event. */
export interface MalformedItem {
  uid: string | null
  problem: string
  /** Kept for people to look at: canonical JSON with secrets masked. */
  raw: string
  /**
   * Canonical JSON of the whole item, secrets included: its keyed digest recognises the item. Never
   * stored. Without it `raw` is used, and items that differ only in masked values count as the
   * same.
   */
  identity?: string
}

export interface Page {
  feed: string
  labels: Record<string, string>
  /** The fence, as read before the fetch; none for Tocsin's own events, which have no cursor. */
  sequence?: number
  generation: number
  /** The scan with its cursor after this page. */
  scan: Scan
  /**
   * Set if the page belongs to a rescan, which has a fence, a scan and times of its own. A new
   * event created before `lateBeforeMs` (the tail's position when the rescan began) is late.
   */
  rescan?: PageRescan | undefined
  /** When the request for this page left, wall clock ms. */
  requestedAtMs: number
  /** Events with a later date are dated ahead of now, by the service's clock, ms; absent: none. */
  limitMs?: number
  /** A page of a tail beyond now: it says nothing of whether the tail was read to its end. */
  isBeyond?: boolean
  isCaughtUp: boolean
  /** A page whose items are all known counts as the end, too. */
  endsWhenKnown?: boolean
  isBackfilling: boolean
  events: RoutedEvent[]
  malformed: MalformedItem[]
}

export interface PageRescan {
  place: 'recent' | 'long' | 'whole'
  lateBeforeMs: number | undefined
  isSnapshot: boolean
  /** Fields of the feed's state that are set once the scan was read to its end. */
  fieldsAtEnd: [string, string][]
}

/** What became of a page's items. */
export interface PageCounts {
  fetched: number
  new: number
  duplicate: number
  quarantined: number
  baseline: number
  /** Of the new ones: found by a rescan behind the tail. */
  late: number
  /** Of the new ones: dated ahead of now. */
  ahead: number
  /** Of the duplicates: more severe than before and routed again. */
  raised: number
}

export type AcceptResult = { status: 'stale' } | { status: 'superseded' } | CommitResult

export interface CommitResult {
  status: 'committed'
  counts: PageCounts
  /** The scan was read to its end. */
  isEnded: boolean
  /** Items that were made, so that their sinks look at once; a slow pass would find them, too. */
  changes: ItemChange[]
  /** Those of the page's events that this feed had not shown before. */
  newEvents: RoutedEvent[]
  /**
   * Another replica took over the feed before the whole page was taken in: the cursor did not move.
   */
  isBrokenOff?: true
}

/**
 * Most events, items and quarantine entries of one commit: Redis serves nobody else while it runs,
 * some 40 ms.
 */
const maxCommitSize = 500

/**
 * Takes a page in. One that is too large for one commit is taken in in pieces, each atomic and
 * fenced by the one before. The cursor moves with the last. If the intake breaks off, the pieces
 * that were taken in are duplicates when the page is read again. `batchWaitMs`: how long a sink
 * collects a batch; undefined if it sends singly.
 */
export async function acceptPage(
  ledger: AccountLedger,
  page: Page,
  batchWaitMs: (sink: string) => number | undefined,
): Promise<AcceptResult> {
  let sum: CommitResult | undefined
  for (const piece of splitPage(page)) {
    const result = await acceptPiece(ledger, { ...piece, before: sum?.counts }, batchWaitMs)
    if (result.status !== 'committed') return sum ? { ...sum, isBrokenOff: true } : result
    sum = sum ? mergeResults(sum, result) : result
  }
  if (!sum) throw new Error('a page has one piece at least')
  return sum
}

/** A part of a page. Only the last one changes the feed's scan and times. */
interface Piece extends Page {
  isLast: boolean
  /** Items of the whole page (`shown`), and how many of them could not be read. */
  shown: number
  unread: number
  newestMs: number
  /** What became of the pieces before it. */
  before?: PageCounts | undefined
}

function splitPage(page: Page): Piece[] {
  const { events, malformed, limitMs = Infinity } = page
  let piece: Pick<Page, 'events' | 'malformed'> = { events: [], malformed: [] }
  const pieces = [piece]
  let room = maxCommitSize
  const takeRoom = (weight: number): void => {
    if (weight > room && room < maxCommitSize) {
      piece = { events: [], malformed: [] }
      pieces.push(piece)
      room = maxCommitSize
    }
    room -= weight
  }
  for (const event of events) {
    takeRoom(1 + event.items.length)
    piece.events.push(event)
  }
  for (const item of malformed) {
    takeRoom(1)
    piece.malformed.push(item)
  }
  const dates = events.map(({ event }) => event.createdAtMs ?? 0)
  const newestMs = Math.max(0, ...dates.filter((ms) => ms <= limitMs))
  return pieces.map((part, index) => ({
    ...page,
    ...part,
    ...(page.sequence !== undefined && { sequence: page.sequence + index }),
    isLast: index === pieces.length - 1,
    shown: events.length + malformed.length,
    unread: malformed.length,
    newestMs,
  }))
}

function mergeResults(
  sum: CommitResult,
  { counts, isEnded, changes, newEvents }: CommitResult,
): CommitResult {
  const total = { ...sum.counts }
  for (const name of Object.keys(total) as (keyof PageCounts)[]) total[name] += counts[name]
  return {
    status: 'committed',
    counts: total,
    isEnded,
    changes: [...sum.changes, ...changes],
    newEvents: [...sum.newEvents, ...newEvents],
  }
}

async function acceptPiece(
  ledger: AccountLedger,
  page: Piece,
  batchWaitMs: (sink: string) => number | undefined,
): Promise<AcceptResult> {
  const answer = await ledger.runJson<CommitReply>(
    'commit-page',
    JSON.stringify(toCommitArgs(ledger, page, batchWaitMs)),
    JSON.stringify(page.scan),
    ...page.events.flatMap((routed) => [
      JSON.stringify(toPayload(page, routed)),
      JSON.stringify(toStoredShown(page, routed)),
    ]),
    ...page.malformed.map(({ raw }) => raw.slice(0, maxRawLength)),
  )
  if (answer.status !== 'committed') return { status: answer.status }
  return {
    status: 'committed',
    counts: answer.counts,
    isEnded: answer.ended ?? false,
    changes: answer.made ?? [],
    newEvents: page.events.filter((_event, place) => answer.fresh?.includes(place)),
  }
}

function toPayload({ requestedAtMs }: Page, { event, sealedSecret }: RoutedEvent): Payload {
  return { event, fetchedAtMs: requestedAtMs, ...(sealedSecret !== undefined && { sealedSecret }) }
}

interface CommitReply {
  status: 'committed' | 'stale' | 'superseded'
  counts: PageCounts
  ended?: boolean
  made?: ItemChange[]
  fresh?: number[]
}

function toCommitArgs(
  ledger: AccountLedger,
  page: Piece,
  batchWaitMs: (sink: string) => number | undefined,
): Record<string, unknown> {
  return {
    feed: page.feed,
    of: fieldPrefix(page),
    late_before: page.rescan?.lateBeforeMs,
    seq: page.sequence,
    cid: randomUUID(),
    gen: page.generation,
    fp: page.scan.fingerprint,
    ends: JSON.stringify(toEndedScan(page)),
    at_end: page.rescan?.fieldsAtEnd.flat() ?? [],
    horizon: ledger.horizonMs,
    retention: ledger.retention,
    detail_wait: ledger.detailWaitMs,
    requested: Math.floor(page.requestedAtMs),
    limit: page.limitMs,
    beyond: page.isBeyond ?? false,
    caught_up: page.isCaughtUp,
    known_ends: page.endsWhenKnown ?? false,
    backfill: page.isBackfilling,
    newest: page.newestMs,
    last: page.isLast,
    shown: page.shown,
    unread: page.unread,
    before: page.before,
    events: page.events.map((routed) => toStoredEvent(ledger, page, routed, batchWaitMs)),
    bad: page.malformed.map((bad) => toStoredMalformed(ledger, page.feed, bad)),
  }
}

/** What is kept of a scan that was read to its end. */
function toEndedScan({ scan, rescan }: Page): EndedScan {
  const { fingerprint, startedAtMs, span } = scan
  const isSnapshot = rescan?.isSnapshot === true
  return { fingerprint, begunMs: startedAtMs, ...span, ...(isSnapshot && { isSnapshot }) }
}

/** Prefix of the fields in which the feed keeps the fence and the scan of this page. */
function fieldPrefix({ rescan }: Page): string {
  return rescan ? `${rescan.place}_` : ''
}

function toStoredEvent(
  ledger: AccountLedger,
  page: Page,
  routed: RoutedEvent,
  batchWaitMs: (sink: string) => number | undefined,
): Record<string, unknown> {
  const { feed } = page
  const { event, decisions, items, wantsDetail, pair } = routed
  const { isBaseline = false, isBeforeStart = isBaseline } = routed
  const fingerprints = ledger.fingerprints.ofEvent(event.uid)
  return {
    rid: fingerprints.recordId,
    sv: event.severity,
    rk: severityRank(event.severity),
    seen: fingerprints.seen(feed),
    base: isBeforeStart ? fingerprints.baseline(feed) : undefined,
    bl: isBaseline || undefined,
    ca: event.createdAtMs ?? undefined,
    cl: findClosure(event),
    v: visibleMs(page, event),
    ro: feed === ownFeed ? [] : [...new Set(decisions.flatMap(({ path }) => path))],
    nr: event.severity === noSeverity || undefined,
    dt: wantsDetail || undefined,
    of: feed === ownFeed ? [] : toStoredTerms(ledger, event, routed.victims),
    ih: (routed.inhibits ?? []).map(({ key, windowMs }) => ({ k: key, ms: windowMs })),
    pr: pair && {
      id: pair.id,
      u: event.uid,
      src: pair.source,
      ms: pairMemoryMs,
    },
    items: items.map((item) => ({
      d: item.destination,
      k: item.sink,
      q: item.routes,
      ...fingerprints.claim(event.severity, item.destination),
      bw: batchWaitMs(item.sink),
      sh: item.isShadow || undefined,
      g: item.group && toStoredGroup(item.group),
      li: item.listedIn,
    })),
  }
}

/**
 * Since when the API showed the event: since it matched, if that is known. What stood there before
 * the feed began is visible since it was asked for.
 */
function visibleMs({ requestedAtMs, isBackfilling }: Page, { matchedAtMs }: ThreatEvent): number {
  const isKnown = matchedAtMs !== null && matchedAtMs <= requestedAtMs && !isBackfilling
  return Math.floor(isKnown ? matchedAtMs : requestedAtMs)
}

/** Identifiers and tags that a record keeps, each, and characters of one. */
export const keptNames = { count: 20, length: 80 }

function toKeptNames(names: readonly string[]): string[] {
  return names.slice(0, keptNames.count).map((one) => one.slice(0, keptNames.length).toWellFormed())
}

function toStoredShown(page: Page, routed: RoutedEvent): StoredShown {
  const { event, decisions } = routed
  const sight = {
    f: page.feed,
    sv: event.severity,
    l: page.labels,
    w: decisions,
    ur: event.unread,
    v: visibleMs(page, event),
  }
  return { u: event.uid, ty: event.type, about: toStoredAbout(page, routed), f: [sight] }
}

function toStoredAbout({ requestedAtMs }: Page, { event, title }: RoutedEvent): StoredAbout {
  const identifiers = toKeptNames(event.identifiers.map(({ name }) => name))
  const tags = toKeptNames(event.tags)
  return {
    title: title?.toWellFormed(),
    created: event.createdAtMs ?? undefined,
    matched: event.matchedAtMs ?? undefined,
    fetched: Math.floor(requestedAtMs),
    ...(identifiers.length > 0 && { identifiers }),
    ...(tags.length > 0 && { tags }),
  }
}

/** Only its times count: that an event is no longer shown proves nothing. */
function findClosure({ ignoredAtMs, remediatedAtMs }: ThreatEvent): string | undefined {
  if (remediatedAtMs !== null) return 'remediated'
  return ignoredAtMs === null ? undefined : 'ignored'
}

function toStoredMalformed(
  { fingerprints }: AccountLedger,
  feed: string,
  { uid, problem, raw, identity = raw }: MalformedItem,
): Record<string, unknown> {
  return {
    ...fingerprints.malformed(feed, identity),
    rid: fingerprints.recordId(uid ?? identity),
    ...(uid !== null && { uid }),
    problem,
  }
}

/**
 * What the ledger has of an event that a feed shows. `taken`: fingerprint and record; `unrecorded`:
 * a fingerprint without a record of this feed.
 */
export type LedgerStatus = 'taken' | 'unrecorded' | 'unknown'

/** Looks events up in the ledger, in their order and at one instant. */
export async function lookUpInLedger(
  ledger: AccountLedger,
  feed: string,
  uids: readonly string[],
): Promise<LedgerStatus[]> {
  if (uids.length === 0) return []
  const { fingerprints, horizonMs } = ledger
  const events = uids.map((uid) => {
    const event = fingerprints.ofEvent(uid)
    return { rid: event.recordId, seen: event.seen(feed) }
  })
  const query = { feed, horizon: horizonMs, events }
  return (await ledger.run('look-up-events', JSON.stringify(query))) as LedgerStatus[]
}
