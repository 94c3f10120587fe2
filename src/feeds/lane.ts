/**
 * One lane: the feeds of one organization whose pages count against one tier. While a process holds it, it
 * chooses which feed is read next (next-feed.ts), waits for the slot, reads a page, and chooses again. Rescans
 * are read beside that: one request in ten is theirs, and those that no tail is due for. All of them together
 * keep the lane's share of the limit.
 *
 * Nothing waits for an answer that does not come: when a request has been out for longer than the distance of
 * two slots, the lane goes on with another feed, and the late answer is taken in when it comes.
 */
import type { PolledFeed } from '../feed-types/feed-type.ts'
import type { Clock, Timings } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import {
  feedId,
  forgetFeeds,
  type LaneName,
  type LaneState,
  loadLane,
  newLane,
  readPauses,
  saveLane,
} from './lane-store.ts'
import {
  type Candidate,
  chooseNext,
  type FeedPlace,
  clampFutureTimes,
  halveShare,
  newFeedPlace,
  nextPollMs,
  notePage,
  minPollInterval,
  currentShare,
} from './next-feed.ts'
import type { PollOutcome, PollRequest } from './poll-run.ts'
import type { Poller } from './poller.ts'
import { rescanShare } from './rescan-plan.ts'

/** What a lane may send. */
export interface LaneLimit extends LaneName {
  /** Names the lane among jobs. */
  id: string
  /** Requests per second of the tier. */
  perSecond: number
  /** The part of it that feeds may use, rescans included. */
  share: number
}

export interface LaneOptions {
  feeds: readonly PolledFeed[]
  /** The lane of a feed, as far as its organization is known by now. */
  laneFor: (feed: PolledFeed) => LaneLimit
  /** All feeds together are read at most so many times a second, whatever their limits. */
  pollsPerSecond: number
  /** Grows whenever an organization becomes known. */
  lanesVersion: () => number
  poller: Poller
  generation: () => number
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  timings: Timings
}

export interface LaneFeeds {
  limit: LaneLimit
  feeds: PolledFeed[]
}

/** The lanes of a process: what it knows of its feeds, whichever of them it holds. */
export interface LaneReader {
  /** By their ids, as organizations are known by now: two accounts may turn out to share one. */
  lanes(): ReadonlyMap<string, LaneFeeds>
  /** What this process knows of a feed whose lane it holds, or gave back less than a turn ago. */
  feedPlace: (feed: { account: string; name: string }) => Readonly<FeedPlace> | undefined
  /** Reads a lane until its turn is over. Never throws. */
  hold(lane: LaneLimit, isOver: () => boolean): Promise<void>
  /** Once all turns are over: gives up what waits for a slot or an answer; resolves when it has ended. */
  abort(): Promise<void>
}

/** No process holds on to what it knows for longer, ms. */
const saveEveryMs = 5_000
/** How long nobody looks at a lane that has nothing to read, ms: a feed may have come to it. */
const maxSleepMs = 5_000
/** An answer that takes less never counts as late, ms. */
const minPatienceMs = 250
/** How long the lane waits for what a request needs before it can wait for its slot, such as a token; ms. */
const preparationMs = 2_000
/** A rescan gives way to others that are due after so many pages. */
const rescanPages = 4

type Kind = PollRequest['kind']

/** A lane that this process holds. */
interface HeldLane {
  lane: LaneLimit
  state: LaneState
  changed: Map<string, FeedPlace>
  savedAtMs: number
  isOver: () => boolean
  /** Its loops that sleep. */
  naps: Set<AbortController>
}

/** A run of pages of one feed. */
interface LaneRun {
  feed: PolledFeed
  kind: Kind
  /** What its request needs is not there yet (`readying`); it waits for a slot (`queued`), or for its answer. */
  phase: 'readying' | 'queued' | 'sent'
  /** Monotonic ms. */
  phaseSinceMs: number
  /** Whether the lane waits for it. */
  isFollowed: boolean
  stopping: AbortController
  ended: AbortController
  end: Promise<void>
}

/** What a process knows of its feeds and lanes. */
interface ReaderState extends LaneOptions {
  lanes: () => ReadonlyMap<string, LaneFeeds>
  places: Map<string, FeedPlace>
  /** All feeds by their ids: one of an organization that is not known yet is in another lane meanwhile. */
  configured: ReadonlyMap<string, PolledFeed>
  /** By kind and feed: one of each at a time. */
  runs: Map<string, LaneRun>
  held: Map<string, HeldLane>
  /** When a lane was given back, monotonic ms. */
  leftAtMs: Map<string, number>
  minIntervalMs: number
  logWaiting: (feed: PolledFeed, status: PollOutcome['status']) => void
}

export function createLaneReader(options: LaneOptions): LaneReader {
  const { feeds, timings, logger } = options
  const reader: ReaderState = {
    ...options,
    lanes: groupFeeds(options),
    places: new Map(),
    configured: new Map(feeds.map((feed) => [feedId(feed), feed])),
    runs: new Map(),
    held: new Map(),
    leftAtMs: new Map(),
    minIntervalMs: minPollInterval(feeds, options.pollsPerSecond, timings.minPollIntervalMs),
    logWaiting: createWaitingLog(logger),
  }
  return {
    lanes: reader.lanes,
    feedPlace: (feed) => known(reader, feedId(feed)),
    hold: (lane, isOver) => hold(reader, lane, isOver),
    async abort() {
      reader.held.forEach(wakeLoops)
      const openRuns = [...reader.runs.values()]
      for (const run of openRuns) run.stopping.abort()
      await Promise.all(openRuns.map(({ end }) => end))
    },
  }
}

/** What was learned of the lane of another replica is of its last hand-over, which may be long ago. */
function known(reader: ReaderState, id: string): Readonly<FeedPlace> | undefined {
  const { configured, held, leftAtMs, places, laneFor: laneOf, clock, timings } = reader
  const feed = configured.get(id)
  const lane = feed && laneOf(feed).id
  if (lane === undefined) return undefined
  const sinceMs = clock.monotonic() - (leftAtMs.get(lane) ?? -Infinity)
  return held.has(lane) || sinceMs < timings.laneHoldMs ? places.get(id) : undefined
}

async function hold(reader: ReaderState, lane: LaneLimit, isOver: () => boolean): Promise<void> {
  const held: HeldLane = {
    lane,
    state: await loadState(reader, lane),
    changed: new Map(),
    savedAtMs: reader.clock.now(),
    isOver: () => isOver() || feedsInLane(reader, lane).length === 0,
    naps: new Set(),
  }
  reader.held.set(lane.id, held)
  const loops = (['feed', 'sweep'] as const).map((kind) => readUntilOver(reader, held, kind))
  // the other one may sleep beyond the turn
  await Promise.all(loops.map((loop) => loop.finally(() => wakeLoops(held))))
  reader.held.delete(lane.id)
  reader.leftAtMs.set(lane.id, reader.clock.monotonic())
  await saveState(reader, held)
}

/** Reads tails, or rescans, one after the other, until the turn is over. */
async function readUntilOver(reader: ReaderState, held: HeldLane, kind: Kind): Promise<void> {
  const { clock } = reader
  while (!held.isOver()) {
    const next = kind === 'feed' ? nextTail(reader, held) : nextRescan(reader, held)
    if (typeof next === 'object') await waitForRun(reader, held, startRun(reader, held, next, kind))
    else await sleepUntilWoken(reader, held, next - clock.now())
    if (kind === 'feed' && clock.now() - held.savedAtMs >= saveEveryMs)
      await saveState(reader, held)
  }
}

/** Ends early where something of the lane has changed. */
async function sleepUntilWoken(
  { clock }: ReaderState,
  held: HeldLane,
  ms: number,
  signal = new AbortController().signal,
): Promise<void> {
  const waking = new AbortController()
  held.naps.add(waking)
  await clock.sleep(Math.min(ms, maxSleepMs), AbortSignal.any([signal, waking.signal]))
  held.naps.delete(waking)
}

/** The feed whose tail is read next; a time: not before. `running` is in the middle of a run. */
function nextTail(reader: ReaderState, held: HeldLane, running?: PolledFeed): PolledFeed | number {
  const nowMs = reader.clock.now()
  const freeAtMs = laneFreeMs(reader, held)
  if (freeAtMs >= nowMs + 1) return freeAtMs // timers are whole milliseconds
  return chooseTail(reader, held, nowMs, running)
}

function chooseTail(
  reader: ReaderState,
  held: HeldLane,
  nowMs: number,
  running?: PolledFeed,
): PolledFeed | number {
  const byId = new Map<string, PolledFeed>()
  const candidates: Candidate[] = []
  for (const feed of feedsInLane(reader, held.lane)) {
    if (feed !== running && reader.runs.has(runKey('feed', feed))) continue
    const id = feedId(feed)
    byId.set(id, feed)
    const { everyMs, longestMs } = feed
    const place = ensurePlace(reader, feed)
    clampFutureTimes({ place }, nowMs)
    candidates.push({ feed: { id, everyMs, longestMs }, place })
  }
  const budget = { perSecond: allowedPerSecond(reader, held), minIntervalMs: reader.minIntervalMs }
  const choice = chooseNext(candidates, held.state.fleet, budget, nowMs)
  return 'feed' in choice ? (byId.get(choice.feed) ?? Infinity) : choice.atMs
}

/** When the lane may send again: no further ahead than a few slots, unless a clock was set back. */
function laneFreeMs(reader: ReaderState, held: HeldLane): number {
  const { state } = held
  const latestMs = reader.clock.now() + maxSlotsAhead * slotSpacingMs(reader, held)
  state.freeAtMs = Math.min(state.freeAtMs, latestMs)
  return state.freeAtMs
}

/** Tails and rescans take slots of the lane each ahead of the other. */
const maxSlotsAhead = 4

/** The feed that is read again next; a time: not before. */
function nextRescan(reader: ReaderState, held: HeldLane): PolledFeed | number {
  const nowMs = reader.clock.now()
  const owed = oldestRescan(reader, held)
  if (!owed || owed.atMs > nowMs) return owed?.atMs ?? Infinity
  const slotMs = nextRescanSlotMs(reader, held)
  return slotMs < nowMs + 1 ? owed.feed : slotMs
}

/** By when that is due. */
function oldestRescan(
  reader: ReaderState,
  held: HeldLane,
): { feed: PolledFeed; atMs: number } | undefined {
  let oldestDue: { feed: PolledFeed; atMs: number } | undefined
  for (const feed of feedsInLane(reader, held.lane)) {
    if (!feed.sweep || reader.runs.has(runKey('sweep', feed))) continue
    const { atMs = 0 } = ensurePlace(reader, feed).rescan ?? {}
    if (!oldestDue || atMs < oldestDue.atMs) oldestDue = { feed, atMs }
  }
  return oldestDue
}

/** Before when no page of a rescan may be asked for; by now: it may. */
function nextRescanSlotMs(reader: ReaderState, held: HeldLane): number {
  const { freeAtMs, rescansFreeAtMs } = held.state
  const spareMs = Math.max(reader.clock.now(), freeAtMs)
  const isSpare = typeof chooseTail(reader, held, spareMs) === 'number'
  return Math.min(rescansFreeAtMs, isSpare ? spareMs : spareMs + slotSpacingMs(reader, held))
}

async function waitForRescanSlot(reader: ReaderState, held: HeldLane, run: LaneRun): Promise<void> {
  const { clock } = reader
  const { signal } = run.stopping
  for (let waitMs = 1; waitMs >= 1 && !signal.aborted;) {
    waitMs = nextRescanSlotMs(reader, held) - clock.now()
    await clock.sleep(waitMs, signal)
  }
}

/** Notes a request that goes out now; returns when. */
function takeSlot(reader: ReaderState, held: HeldLane, run: LaneRun): number {
  const nowMs = reader.clock.now()
  const { state } = held
  const spacingMs = slotSpacingMs(reader, held)
  enterPhase(reader, run, 'sent')
  state.freeAtMs = Math.max(state.freeAtMs, nowMs) + spacingMs
  if (run.kind === 'sweep') state.rescansFreeAtMs = nowMs + spacingMs / rescanShare
  return nowMs
}

function startRun(reader: ReaderState, held: HeldLane, feed: PolledFeed, kind: Kind): LaneRun {
  const run: LaneRun = {
    feed,
    kind,
    phase: 'readying',
    phaseSinceMs: reader.clock.monotonic(),
    isFollowed: true,
    stopping: new AbortController(),
    ended: new AbortController(),
    end: Promise.resolve(),
  }
  const id = runKey(kind, feed)
  reader.runs.set(id, run)
  const take = kind === 'feed' ? runTail : runRescan
  run.end = take(reader, held, run).finally(() => {
    reader.runs.delete(id)
    run.ended.abort()
    wakeLoops(reader.held.get(held.lane.id)) // it may have waited for this feed
  })
  return run
}

/** Waits for a run, but not for an answer, or a token, that does not come. */
async function waitForRun(reader: ReaderState, held: HeldLane, run: LaneRun): Promise<void> {
  const { clock } = reader
  const patienceMs = Math.max(minPatienceMs, slotSpacingMs(reader, held))
  while (!run.ended.signal.aborted) {
    await sleepUntilWoken(reader, held, patienceMs, run.ended.signal)
    const { phase, phaseSinceMs } = run
    const longestMs = phase === 'sent' ? patienceMs : Math.max(patienceMs, preparationMs)
    if (phase === 'queued') {
      // it has no slot yet: whoever holds the lane next takes one
      if (held.isOver()) run.stopping.abort()
    } else if (held.isOver() || clock.monotonic() - phaseSinceMs >= longestMs) {
      break
    }
  }
  run.isFollowed = false
}

async function runTail(reader: ReaderState, held: HeldLane, run: LaneRun): Promise<void> {
  const { clock } = reader
  const { feed } = run
  const place = ensurePlace(reader, feed)
  let askedAtMs = clock.now()
  const outcome = await poll(reader, run, {
    isForgotten: place.askedAtMs === undefined,
    onJoin: () => enterPhase(reader, run, 'queued'),
    onSlot() {
      askedAtMs = takeSlot(reader, held, run)
    },
    onPage(page) {
      enterPhase(reader, run, 'queued')
      notePage(place, held.state.fleet, { askedAtMs, ...page })
      if (page.isNewWalk && place.rescan) place.rescan.atMs = clock.now()
    },
    async mayContinue() {
      await clock.sleep(laneFreeMs(reader, held) - clock.now(), run.stopping.signal)
      return run.isFollowed && !held.isOver() && nextTail(reader, held, feed) === feed
    },
  })
  notePollOutcome(place, outcome, nextAttemptMs(reader, outcome, place.failures + 1))
  place.notedAtMs = clock.now()
  held.changed.set(feedId(feed), place)
  reader.logWaiting(feed, outcome.status)
}

function enterPhase({ clock }: ReaderState, run: LaneRun, phase: LaneRun['phase']): void {
  run.phase = phase
  run.phaseSinceMs = clock.monotonic()
}

async function runRescan(reader: ReaderState, held: HeldLane, run: LaneRun): Promise<void> {
  const { clock } = reader
  const { feed } = run
  const previous = ensurePlace(reader, feed).rescan ?? { atMs: clock.now(), failures: 0, pages: 0 }
  let { pages } = previous
  const outcome = await poll(reader, run, {
    dueSinceMs: Math.min(previous.atMs, clock.now()),
    pagesBefore: pages,
    onJoin: () => enterPhase(reader, run, 'queued'),
    onSlot: () => void takeSlot(reader, held, run),
    onPage() {
      enterPhase(reader, run, 'queued')
      pages += 1
    },
    async mayContinue(count) {
      const other = oldestRescan(reader, held)
      if (count >= rescanPages && other && other.atMs <= clock.now()) return false
      await waitForRescanSlot(reader, held, run)
      return run.isFollowed && !held.isOver()
    },
  })
  const failures = outcome.status === 'failed' ? previous.failures + 1 : 0
  const place = ensurePlace(reader, feed)
  place.rescan = { atMs: nextRescanMs(reader, outcome, failures), failures, pages }
  place.notedAtMs = clock.now()
  held.changed.set(feedId(feed), place)
}

/** Nothing is looked for before it is due; only what no page of the tail tells may be found a while later. */
function nextRescanMs(reader: ReaderState, outcome: PollOutcome, failures: number): number {
  if (outcome.status !== 'not_due') return nextAttemptMs(reader, outcome, failures)
  const nowMs = reader.clock.now()
  const latestMs = nowMs + reader.timings.rescanLookMs
  return Math.max(nowMs + 1_000, Math.min(outcome.untilMs ?? Infinity, latestMs))
}

function nextAttemptMs(
  { clock, timings }: ReaderState,
  outcome: PollOutcome,
  failures: number,
): number {
  return nextPollMs(outcome, { nowMs: clock.now(), failures }, timings)
}

/** Takes over what the replica before knew, where that is newer than what this process knows. */
async function loadState(reader: ReaderState, lane: LaneLimit): Promise<LaneState> {
  const { redis, keys, clock, logger, places, configured } = reader
  const options = { generation: reader.generation(), nowMs: clock.now() }
  const stored = await loadLane(redis, keys, lane, options).catch((error: unknown) => {
    logger.debug({ err: error }, 'the lane begins without what others know of it')
    return newLane(options.nowMs)
  })
  const goneIds = stored.older.filter((id) => !configured.has(id))
  await forgetFeeds(redis, keys, lane, goneIds).catch((error: unknown) =>
    logger.debug({ err: error }, 'what was known of removed feeds stays for now'),
  )
  const { fleet, share } = stored.state
  clampFutureTimes({ fleet, share }, options.nowMs)
  for (const feed of feedsInLane(reader, lane)) {
    const place = stored.places.get(feedId(feed))
    const isNewer = (place?.notedAtMs ?? 0) > ensurePlace(reader, feed).notedAtMs
    if (place && isNewer && !reader.runs.has(runKey('feed', feed))) places.set(feedId(feed), place)
  }
  return stored.state
}

async function saveState(reader: ReaderState, held: HeldLane): Promise<void> {
  const { redis, keys, clock, logger } = reader
  const { lane, state, changed } = held
  held.savedAtMs = clock.now()
  const changes = { state, places: new Map(changed), generation: reader.generation() }
  changed.clear()
  try {
    const pauses = await readPauses(redis, keys, lane)
    if (pauses > state.pauses) state.share = halveShare(state.share, lane.share, clock.now())
    state.pauses = pauses
    await saveLane(redis, keys, lane, changes)
  } catch (error) {
    logger.debug({ err: error }, 'what is known of the lane was not kept')
  }
}

function feedsInLane({ lanes }: ReaderState, { id }: LaneLimit): readonly PolledFeed[] {
  return lanes().get(id)?.feeds ?? []
}

function ensurePlace({ places }: ReaderState, feed: PolledFeed): FeedPlace {
  const place = places.get(feedId(feed)) ?? newFeedPlace()
  places.set(feedId(feed), place)
  return place
}

function allowedPerSecond({ clock }: ReaderState, { lane, state }: HeldLane): number {
  return lane.perSecond * currentShare(state.share, lane.share, clock.now())
}

/** From one request to the next, ms. */
function slotSpacingMs(reader: ReaderState, held: HeldLane): number {
  return 1000 / allowedPerSecond(reader, held)
}

function runKey(kind: Kind, feed: PolledFeed): string {
  return `${kind} ${feedId(feed)}`
}

function wakeLoops(held: HeldLane | undefined): void {
  for (const waking of held?.naps ?? []) waking.abort()
}

/** The lanes and their feeds, found anew only when an organization became known. */
function groupFeeds({
  feeds,
  laneFor: laneOf,
  lanesVersion,
}: LaneOptions): () => ReadonlyMap<string, LaneFeeds> {
  let known: { version: number; lanes: Map<string, LaneFeeds> } | undefined
  return () => {
    const version = lanesVersion()
    if (known?.version === version) return known.lanes
    const lanes = new Map<string, LaneFeeds>()
    for (const feed of feeds) {
      const limit = laneOf(feed)
      const lane = lanes.get(limit.id) ?? { limit, feeds: [] }
      lane.feeds.push(feed)
      lanes.set(limit.id, lane)
    }
    known = { version, lanes }
    return lanes
  }
}

function notePollOutcome(place: FeedPlace, outcome: PollOutcome, untilMs: number): void {
  const { status } = outcome
  if (status === 'caught_up' || status === 'stopped') return
  if (status === 'more') {
    place.hasMore = true
    return
  }
  if (status === 'not_due' && outcome.readAtMs !== undefined) {
    place.askedAtMs = outcome.readAtMs
    place.readAtMs = outcome.readAtMs
  }
  place.failures = status === 'failed' ? place.failures + 1 : 0
  place.wait = { untilMs, why: status === 'failed' ? outcome.reason : status }
}

async function poll(
  { poller, logger }: LaneOptions,
  { feed, kind, stopping }: LaneRun,
  request: Omit<PollRequest, 'kind' | 'signal'>,
): Promise<PollOutcome> {
  try {
    return await poller.pollOnce(feed, { kind, signal: stopping.signal, ...request })
  } catch (error) {
    if (stopping.signal.aborted) return { status: 'stopped' }
    const message = `${kind === 'sweep' ? 'sweep' : 'poll'} broke off; it starts again from the ledger`
    const cause = error instanceof Error ? error.name : 'unknown'
    const fields = { feed: feed.name, err: error }
    logger.repeated.error(fields, message, { cause, list: 'feeds', name: feed.name })
    return { status: 'failed', reason: 'unavailable', retryAfterMs: undefined }
  }
}

/** Why a feed is not polled although nothing failed. */
const waitingReasons: Partial<Record<PollOutcome['status'], string>> = {
  superseded: 'a newer configuration polls this feed; this replica does not',
  full: 'Redis has used 70 % of its memory: nothing more is taken in until there is room',
  paused: 'the feed is paused by an operator; "feeds resume" lets it go on',
  refused: 'the service refuses what the feed asks for: it asks again once a day',
  quota: 'the searches left have reached quota_reserve: the feed asks again once a day',
}

/** Once when it begins: the feed comes back every few seconds. */
function createWaitingLog(
  logger: Logger,
): (feed: PolledFeed, status: PollOutcome['status']) => void {
  const reasonByFeed = new Map<string, string | undefined>()
  return ({ name: feed }, status) => {
    const why = waitingReasons[status]
    if (why !== undefined && reasonByFeed.get(feed) !== why)
      logger.repeated.warn({ feed }, why, { cause: status, list: 'feeds', name: feed })
    reasonByFeed.set(feed, why)
  }
}
