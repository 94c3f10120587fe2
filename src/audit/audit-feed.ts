/**
 * Compares what the service shows of a window with the ledger: every event shown must be taken in, or
 * stand in the quarantine. It changes nothing but what it remembers of its own.
 */
import type { PolledFeed } from '../feed-types/feed-type.ts'
import { type Sorting, sortPage } from '../feeds/page.ts'
import { readsAll } from '../feeds/scan.ts'
import type { Book } from '../store/account-ledger.ts'
import { type FeedState, peekFeed } from '../store/feed-state.ts'
import type { MalformedItem, RoutedEvent } from '../store/intake.ts'
import {
  clocksDifferMs,
  type LedgerRecord,
  readPayloads,
  scanRecords,
  trimmedUntilMs,
} from '../store/records.ts'
import {
  type AuditResult,
  type AuditTurn,
  type AuditWindow,
  type Extra,
  type Finding,
  type PageOptions,
  pagesOf,
} from './pages.ts'

export interface AuditOptions extends PageOptions, Pick<Sorting, 'plan' | 'pairIdOf' | 'seal'> {
  book: Book
  /** Whether findings keep the events, for a repair. */
  keepsEvents?: boolean
}

/** How many findings at most keep their events. */
const mostKept = 1_000

/**
 * Page by page: yields how many events were shown so far, so that the caller may pause in between.
 * Throws ServiceError and AuditError.
 */
export async function* auditFeed(
  options: AuditOptions,
  feed: PolledFeed,
  window: AuditWindow,
  turn: AuditTurn,
): AsyncGenerator<number, AuditResult> {
  const { book, clock } = options
  const begunMs = clock.now()
  const state = await peekFeed(book, feed.name, begunMs)
  if (!state) throw new Error(`feed ${feed.name} has never polled`)
  const before = await readSightings(book, feed.name)
  const audit: Audit = { options, feed, state, window, before, begunMs, ...nothingSeen() }
  for await (const items of pagesOf(options, feed, window, turn)) {
    await note(audit, items)
    yield audit.uids.size
  }
  const found = await withoutTrimmed(
    book,
    await stillUnknown(book, feed.name, [...audit.found.values()]),
  )
  const malformed = await stillMalformed(audit)
  await remember(audit, found, malformed)
  const lost = malformed.filter((bad) => hasPassed(audit, before.get(malformedId(book, bad))))
  const shown = audit.uids.size + audit.malformed.size
  return {
    feed: feed.name,
    ...window,
    shown,
    accounted: audit.uids.size - found.length,
    quarantined: audit.malformed.size - malformed.length,
    missing: found.filter(({ why }) => why !== 'awaited'),
    awaited: found.filter(({ why }) => why === 'awaited'),
    extra: await findExtra(book, { feed: feed.name, ...window, begunMs }, audit.uids),
    malformed: lost,
  }
}

interface Audit extends Seen {
  options: AuditOptions
  feed: PolledFeed
  state: FeedState
  window: AuditWindow
  before: Sightings
  begunMs: number
}

interface Seen {
  uids: Set<string>
  found: Map<string, Finding>
  /** By identity: pages that are read twice show the same. */
  malformed: Map<string, MalformedItem>
}

function nothingSeen(): Seen {
  return { uids: new Set(), found: new Map(), malformed: new Map() }
}

/**
 * Servers that ignore the times, and feeds without any, show more than the window. What has no creation
 * time is not compared: nobody can say whether its record may have gone with its time.
 */
async function note(audit: Audit, items: readonly unknown[]): Promise<void> {
  const { options, feed, state, window, uids, found, malformed } = audit
  const { book, plan, pairIdOf, seal } = options
  const sorted = sortPage(items, {
    feed,
    floorMs: state.floorMs,
    readsBaseline: true,
    plan,
    pairIdOf,
    seal,
  })
  const events = sorted.events.filter(({ event }) => isWithin(event.createdAtMs, window))
  const shown = events.map(({ event }) => event.uid)
  const words = await lookUp(book, feed.name, { uids: shown })
  for (const [at, routed] of events.entries()) {
    uids.add(routed.event.uid)
    const finding = findingOf(audit, routed, words.events[at])
    if (finding) found.set(finding.uid, finding)
  }
  for (const bad of sorted.malformed) malformed.set(bad.identity ?? bad.raw, bad)
}

function isWithin(createdAtMs: number | null, { fromMs, toMs }: AuditWindow): boolean {
  return createdAtMs !== null && createdAtMs >= fromMs && createdAtMs <= toMs
}

function findingOf(
  audit: Audit,
  routed: RoutedEvent,
  word: LedgerWord | undefined,
): Finding | undefined {
  const { uid, createdAtMs } = routed.event
  const { options, found } = audit
  const isKept = options.keepsEvents === true && found.size < mostKept
  const finding = { uid, createdAtMs: createdAtMs ?? 0, ...(isKept && { routed }) }
  if (word === 'unrecorded') return { ...finding, why: 'record_gone' }
  if (word !== 'unknown') return undefined
  return { ...finding, why: isAwaited(audit, routed) ? 'awaited' : 'never_taken_in' }
}

/**
 * Whether it may have become visible after the feed had passed its place for the last time: the tail,
 * and for what arrives late the sweep. Without a match time it became visible when an audit first saw it.
 */
function isAwaited(audit: Audit, { event }: RoutedEvent): boolean {
  const { before } = audit
  const { rescans, walk } = audit.state
  const isRead = rescans.matched?.fingerprint === walk?.fingerprint
  const matchedToMs = isRead ? (rescans.matched?.toMs ?? 0) : 0
  if (event.matchedAtMs !== null && event.matchedAtMs < matchedToMs) return false
  return !hasPassed(audit, event.matchedAtMs ?? before.get(event.uid))
}

/** Whether the feed has passed since then what is perhaps behind its cursor; undefined: since just now. */
function hasPassed({ feed, state }: Audit, visibleMs: number | undefined): boolean {
  const { begunMs, isSnapshot = false } = state.sweep.lastEnded ?? {}
  const sweptMs = isSnapshot ? undefined : begunMs
  const passedMs = feed.sweep && !readsAll(feed, state) ? sweptMs : state.lastCaughtUpMs
  return visibleMs !== undefined && visibleMs <= (passedMs ?? 0)
}

/** What the daemon took in meanwhile is no finding. */
export async function stillUnknown(
  book: Book,
  feed: string,
  findings: readonly Finding[],
): Promise<Finding[]> {
  const still: Finding[] = []
  for (let at = 0; at < findings.length; at += 100) {
    const some = findings.slice(at, at + 100)
    const words = await lookUp(book, feed, { uids: some.map(({ uid }) => uid) })
    still.push(...some.filter((_one, place) => words.events[place] !== 'taken'))
  }
  return still
}

/** What made room while the audit went on is no finding. */
async function withoutTrimmed(book: Book, findings: Finding[]): Promise<Finding[]> {
  const trimmedMs = await trimmedUntilMs(book)
  return findings.filter(
    ({ why, createdAtMs }) => why !== 'record_gone' || createdAtMs >= trimmedMs,
  )
}

async function stillMalformed({ options, feed, malformed }: Audit): Promise<MalformedItem[]> {
  const all = [...malformed.values()]
  const words = await lookUp(options.book, feed.name, { uids: [], malformed: all })
  return all.filter((_one, at) => words.malformed[at] === 'unknown')
}

async function remember(
  { options, feed, before, begunMs, uids, malformed: shown }: Audit,
  found: readonly Finding[],
  malformed: readonly MalformedItem[],
): Promise<void> {
  const { book } = options
  const ids = [
    ...found.filter(({ why }) => why !== 'record_gone').map(({ uid }) => uid),
    ...malformed.map((bad) => malformedId(book, bad)),
  ]
  const looked = new Set([...uids, ...[...shown.values()].map((bad) => malformedId(book, bad))])
  const others = [...before].filter(([id]) => !looked.has(id)) // a narrow look forgets nothing
  const seen = new Map([
    ...others,
    ...ids.map((id): [string, number] => [id, before.get(id) ?? begunMs]),
  ])
  await writeSightings(book, feed.name, seen)
}

/** No uid: it has a space. */
function malformedId({ digests }: Book, { raw, identity = raw }: MalformedItem): string {
  return `malformed ${digests.recordId(identity)}`
}

interface Searched extends AuditWindow {
  feed: string
  /** What was taken in since then may stand behind the place that the audit had read. */
  begunMs: number
}

const atOnce = 200

/**
 * Events of the window that the ledger has from the feed and the service did not show, as far back as payloads
 * are kept: nothing is settled before it was created. People may have ignored them, or the service took them back.
 */
async function findExtra(
  book: Book,
  searched: Searched,
  shown: ReadonlySet<string>,
): Promise<Extra[]> {
  const extra = new Map<string, Extra>()
  let waiting: LedgerRecord[] = []
  const sift = async (): Promise<void> => {
    for (const one of await withinWindow(book, searched, waiting)) extra.set(one.uid, one)
    waiting = []
  }
  for await (const record of scanRecords(book, searched.fromMs - clocksDifferMs)) {
    if (shown.has(record.uid) || record.firstSeenMs >= searched.begunMs) continue
    if (!record.sightings.some(({ feed }) => feed === searched.feed)) continue
    waiting.push(record)
    if (waiting.length >= atOnce) await sift()
  }
  await sift()
  return [...extra.values()].toSorted((left, right) => left.firstSeenMs - right.firstSeenMs)
}

async function withinWindow(
  book: Book,
  { fromMs, toMs }: Searched,
  records: readonly LedgerRecord[],
): Promise<Extra[]> {
  const payloads = await readPayloads(
    book,
    records.map(({ recordId }) => recordId),
  )
  return records.flatMap(({ uid, firstSeenMs, closed }, at) => {
    const createdAtMs = payloads[at]?.event.createdAtMs ?? Number.NaN
    return createdAtMs >= fromMs && createdAtMs <= toMs ? [{ uid, firstSeenMs, closed }] : []
  })
}

/**
 * What the ledger knows of something that a feed shows. taken: mark and record; unrecorded: a mark without
 * its record; quarantined: of a malformed item.
 */
type LedgerWord = 'taken' | 'unrecorded' | 'quarantined' | 'unknown'

/** One word for each event, and one for each malformed item; read at one instant. */
export async function lookUp(
  book: Book,
  feed: string,
  { uids, malformed = [] }: { uids: readonly string[]; malformed?: readonly MalformedItem[] },
): Promise<{ events: LedgerWord[]; malformed: LedgerWord[] }> {
  if (uids.length + malformed.length === 0) return { events: [], malformed: [] }
  const { digests, horizonMs } = book
  const asked = {
    feed,
    horizon: horizonMs,
    events: uids.map((uid) => ({
      rid: digests.recordId(uid),
      seen: digests.seenMark(feed, uid),
    })),
    bad: malformed.map(({ raw, identity = raw }) => digests.malformedMark(feed, identity)),
  }
  const words = (await book.run('look-up-events', JSON.stringify(asked))) as LedgerWord[]
  return { events: words.slice(0, uids.length), malformed: words.slice(uids.length) }
}

/**
 * What audits saw and the ledger did not have, and since when. An event without a match time may have
 * become visible a moment ago; that it stays unknown although a sweep has passed proves that it is missing.
 */

/** By uid, or by the digest of what is malformed; ms. */
type Sightings = ReadonlyMap<string, number>

const mostSightings = 5_000
const keptMs = 90 * 24 * 3_600_000

async function readSightings(book: Book, feed: string): Promise<Sightings> {
  const stored = await book.redis.hgetall(book.key('audit-saw', feed))
  return new Map(Object.entries(stored).map(([id, atMs]) => [id, Number(atMs)]))
}

/** In the place of those before. */
async function writeSightings(book: Book, feed: string, seen: Sightings): Promise<void> {
  const key = book.key('audit-saw', feed)
  const kept = [...seen].slice(0, mostSightings).flat()
  const change = book.redis.multi().del(key)
  if (kept.length > 0) change.hset(key, ...kept).pexpire(key, keptMs)
  await change.exec()
}
