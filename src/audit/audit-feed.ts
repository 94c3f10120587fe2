/**
 * The audit of a feed: compares what the API shows of a window with the ledger. Every event shown
 * must be in the ledger or in the quarantine. An audit writes nothing but its own notes.
 */
import type { PolledFeed } from '../feed-types/feed-type.ts'
import { type SortOptions, sortPage } from '../feeds/page.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { type FeedState, peekFeed } from '../store/feed-state.ts'
import type { MalformedItem, RoutedEvent } from '../store/intake.ts'
import {
  maxServiceClockSkewMs,
  type LedgerRecord,
  readPayloads,
  scanRecords,
  readTrimmedUntilMs,
} from '../store/records.ts'
import {
  type AuditResult,
  type AuditCaller,
  type AuditWindow,
  type ExtraEvent,
  type Finding,
  type PageOptions,
  auditPages,
} from './pages.ts'

export interface AuditOptions
  extends PageOptions, Pick<SortOptions, 'plan' | 'pairDigest' | 'sealSecret'> {
  ledger: AccountLedger
  /** Whether findings carry their events, for a repair. */
  keepsEvents?: boolean
}

/** Findings that carry their event, at most. */
const maxKeptEvents = 1_000

/**
 * Audits page by page; yields how many events were shown so far, so that the caller can pause in
 * between. Throws UpstreamError and AuditError.
 */
export async function* auditFeed(
  options: AuditOptions,
  feed: PolledFeed,
  window: AuditWindow,
  caller: AuditCaller,
): AsyncGenerator<number, AuditResult> {
  const { ledger, clock } = options
  const begunMs = clock.now()
  const state = await peekFeed(ledger, feed.name, begunMs)
  if (!state) throw new Error(`feed ${feed.name} has never polled`)
  const before = await readSightings(ledger, feed.name)
  const audit: Audit = { options, feed, state, window, before, begunMs, ...noSeenItems() }
  for await (const items of auditPages(options, feed, window, caller)) {
    await compareWithLedger(audit, items)
    yield audit.uids.size
  }
  const missing = await withoutTrimmed(
    ledger,
    await filterUnknown(ledger, feed.name, [...audit.found.values()]),
  )
  const malformed = await filterUnquarantined(audit)
  await updateSightings(audit, missing, malformed)
  const seenBefore = malformed.filter((bad) =>
    hasPassed(audit, before.get(malformedId(ledger, bad))),
  )
  const shown = audit.uids.size + audit.malformed.size
  return {
    feed: feed.name,
    ...window,
    shown,
    accounted: audit.uids.size - missing.length,
    quarantined: audit.malformed.size - malformed.length,
    missing: missing.filter(({ why }) => why !== 'awaited'),
    awaited: missing.filter(({ why }) => why === 'awaited'),
    extra: await findExtraEvents(ledger, { feed: feed.name, ...window, begunMs }, audit.uids),
    malformed: seenBefore,
  }
}

interface Audit extends SeenItems {
  options: AuditOptions
  feed: PolledFeed
  state: FeedState
  window: AuditWindow
  before: Sightings
  begunMs: number
}

interface SeenItems {
  uids: Set<string>
  found: Map<string, Finding>
  /** By identity: an item that is shown twice counts once. */
  malformed: Map<string, MalformedItem>
}

function noSeenItems(): SeenItems {
  return { uids: new Set(), found: new Map(), malformed: new Map() }
}

/**
 * Compares one page. Servers that ignore times, and feeds without any, show more than the window.
 * An event without a creation time is skipped: its record may have expired, and nobody can tell.
 */
async function compareWithLedger(audit: Audit, items: readonly unknown[]): Promise<void> {
  const { options, feed, state, window, uids, found, malformed } = audit
  const { ledger, plan, pairDigest, sealSecret } = options
  const sorted = sortPage(items, {
    feed,
    startBoundMs: state.startBoundMs,
    readsBaseline: true,
    plan,
    pairDigest,
    sealSecret,
  })
  const events = sorted.events.filter(({ event }) => isWithin(event.createdAtMs, window))
  const shown = events.map(({ event }) => event.uid)
  const statuses = await lookUpInLedger(ledger, feed.name, { uids: shown })
  for (const [at, routed] of events.entries()) {
    uids.add(routed.event.uid)
    const finding = toFinding(audit, routed, statuses.events[at])
    if (finding) found.set(finding.uid, finding)
  }
  for (const bad of sorted.malformed) malformed.set(bad.identity ?? bad.raw, bad)
}

function isWithin(createdAtMs: number | null, { fromMs, toMs }: AuditWindow): boolean {
  return createdAtMs !== null && createdAtMs >= fromMs && createdAtMs <= toMs
}

function toFinding(
  audit: Audit,
  routed: RoutedEvent,
  status: LedgerStatus | undefined,
): Finding | undefined {
  const { uid, createdAtMs } = routed.event
  const { options, found } = audit
  const isKept = options.keepsEvents === true && found.size < maxKeptEvents
  const finding = { uid, createdAtMs: createdAtMs ?? 0, ...(isKept && { routed }) }
  if (status === 'unrecorded') return { ...finding, why: 'record_gone' }
  if (status !== 'unknown') return undefined
  return { ...finding, why: isAwaited(audit, routed) ? 'awaited' : 'never_taken_in' }
}

/**
 * Whether the event may have become visible after the feed last passed its position: the tail, or,
 * for events that arrive late, the rescan. An event without a match time counts as visible since an
 * audit first saw it.
 */
function isAwaited(audit: Audit, { event }: RoutedEvent): boolean {
  const { before } = audit
  const { rescans, scan } = audit.state
  const isRead = rescans.matched?.fingerprint === scan?.fingerprint
  const matchedToMs = isRead ? (rescans.matched?.toMs ?? 0) : 0
  if (event.matchedAtMs !== null && event.matchedAtMs < matchedToMs) return false
  return !hasPassed(audit, event.matchedAtMs ?? before.get(event.uid))
}

/**
 * Whether the feed has read everything again, also behind its cursor, since `visibleMs`; undefined:
 * since just now.
 */
function hasPassed({ feed, state }: Audit, visibleMs: number | undefined): boolean {
  const { begunMs, isSnapshot = false } = state.whole.lastEnded ?? {}
  const rescannedMs = isSnapshot ? undefined : begunMs
  const passedMs = feed.rescan ? rescannedMs : state.lastCaughtUpMs
  return visibleMs !== undefined && visibleMs <= (passedMs ?? 0)
}

/** Leaves out what the daemon took in meanwhile. */
export async function filterUnknown(
  ledger: AccountLedger,
  feed: string,
  findings: readonly Finding[],
): Promise<Finding[]> {
  const unknown: Finding[] = []
  for (let at = 0; at < findings.length; at += 100) {
    const part = findings.slice(at, at + 100)
    const statuses = await lookUpInLedger(ledger, feed, { uids: part.map(({ uid }) => uid) })
    unknown.push(...part.filter((_one, place) => statuses.events[place] !== 'taken'))
  }
  return unknown
}

/** Leaves out records that retention dropped while the audit ran. */
async function withoutTrimmed(ledger: AccountLedger, findings: Finding[]): Promise<Finding[]> {
  const trimmedMs = await readTrimmedUntilMs(ledger)
  return findings.filter(
    ({ why, createdAtMs }) => why !== 'record_gone' || createdAtMs >= trimmedMs,
  )
}

async function filterUnquarantined({ options, feed, malformed }: Audit): Promise<MalformedItem[]> {
  const all = [...malformed.values()]
  const statuses = await lookUpInLedger(options.ledger, feed.name, { uids: [], malformed: all })
  return all.filter((_one, at) => statuses.malformed[at] === 'unknown')
}

async function updateSightings(
  { options, feed, before, begunMs, uids, malformed: shown }: Audit,
  found: readonly Finding[],
  malformed: readonly MalformedItem[],
): Promise<void> {
  const { ledger } = options
  const ids = [
    ...found.filter(({ why }) => why !== 'record_gone').map(({ uid }) => uid),
    ...malformed.map((bad) => malformedId(ledger, bad)),
  ]
  const lookedAtIds = new Set([
    ...uids,
    ...[...shown.values()].map((bad) => malformedId(ledger, bad)),
  ])
  const untouched = [...before].filter(([id]) => !lookedAtIds.has(id)) // not shown now: they stay
  const sightings = new Map([
    ...untouched,
    ...ids.map((id): [string, number] => [id, before.get(id) ?? begunMs]),
  ])
  await writeSightings(ledger, feed.name, sightings)
}

/** The id under which a malformed item is noted; it contains a space, as no uid does. */
function malformedId(
  { fingerprints }: AccountLedger,
  { raw, identity = raw }: MalformedItem,
): string {
  return `malformed ${fingerprints.recordId(identity)}`
}

interface SearchedWindow extends AuditWindow {
  feed: string
  /** Events taken in since then may lie behind what the audit had read already. */
  begunMs: number
}

const recordsAtOnce = 200

/**
 * Events of the window that the ledger has from the feed and the API did not show, as far back as
 * payloads are kept. Records settled before the window are skipped: an event is settled after it
 * was created. People may have ignored the events, or the API withdrew them.
 */
async function findExtraEvents(
  ledger: AccountLedger,
  searched: SearchedWindow,
  shown: ReadonlySet<string>,
): Promise<ExtraEvent[]> {
  const extra = new Map<string, ExtraEvent>()
  let waiting: LedgerRecord[] = []
  const checkWaiting = async (): Promise<void> => {
    for (const one of await filterByWindow(ledger, searched, waiting)) extra.set(one.uid, one)
    waiting = []
  }
  for await (const record of scanRecords(ledger, searched.fromMs - maxServiceClockSkewMs)) {
    if (shown.has(record.uid) || record.firstSeenMs >= searched.begunMs) continue
    if (!record.sightings.some(({ feed }) => feed === searched.feed)) continue
    waiting.push(record)
    if (waiting.length >= recordsAtOnce) await checkWaiting()
  }
  await checkWaiting()
  return [...extra.values()].toSorted((left, right) => left.firstSeenMs - right.firstSeenMs)
}

async function filterByWindow(
  ledger: AccountLedger,
  { fromMs, toMs }: SearchedWindow,
  records: readonly LedgerRecord[],
): Promise<ExtraEvent[]> {
  const payloads = await readPayloads(
    ledger,
    records.map(({ recordId }) => recordId),
  )
  return records.flatMap(({ uid, firstSeenMs, closed }, at) => {
    const createdAtMs = payloads[at]?.event.createdAtMs ?? Number.NaN
    return createdAtMs >= fromMs && createdAtMs <= toMs ? [{ uid, firstSeenMs, closed }] : []
  })
}

/**
 * What the ledger has of an item that a feed shows. `taken`: fingerprint and record; `unrecorded`:
 * a fingerprint without a record of this feed; `quarantined`: for a malformed item.
 */
type LedgerStatus = 'taken' | 'unrecorded' | 'quarantined' | 'unknown'

/** Looks events and malformed items up in the ledger, in their order and at one instant. */
export async function lookUpInLedger(
  ledger: AccountLedger,
  feed: string,
  { uids, malformed = [] }: { uids: readonly string[]; malformed?: readonly MalformedItem[] },
): Promise<{ events: LedgerStatus[]; malformed: LedgerStatus[] }> {
  if (uids.length + malformed.length === 0) return { events: [], malformed: [] }
  const { fingerprints, horizonMs } = ledger
  const query = {
    feed,
    horizon: horizonMs,
    events: uids.map((uid) => ({
      rid: fingerprints.recordId(uid),
      seen: fingerprints.seen(feed, uid),
    })),
    bad: malformed.map(({ raw, identity = raw }) => fingerprints.malformed(feed, identity)),
  }
  const statuses = (await ledger.run('look-up-events', JSON.stringify(query))) as LedgerStatus[]
  return { events: statuses.slice(0, uids.length), malformed: statuses.slice(uids.length) }
}

/**
 * What audits saw and the ledger did not have: when it was first seen (ms), by uid or by the id of
 * a malformed item. An event without a match time may have become visible a moment ago; it is
 * missing if it stays unknown after a rescan.
 */
type Sightings = ReadonlyMap<string, number>

const maxSightings = 5_000
const sightingsTtlMs = 90 * 24 * 3_600_000

async function readSightings(ledger: AccountLedger, feed: string): Promise<Sightings> {
  const stored = await ledger.redis.hgetall(ledger.key('audit-saw', feed))
  return new Map(Object.entries(stored).map(([id, atMs]) => [id, Number(atMs)]))
}

/** Replaces the stored sightings. */
async function writeSightings(ledger: AccountLedger, feed: string, seen: Sightings): Promise<void> {
  const key = ledger.key('audit-saw', feed)
  const fields = [...seen].slice(0, maxSightings).flat()
  const change = ledger.redis.multi().del(key)
  if (fields.length > 0) change.hset(key, ...fields).pexpire(key, sightingsTtlMs)
  await change.exec()
}
