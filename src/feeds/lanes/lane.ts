/**
 * Reads one lane: the feeds of one organization whose pages count against one rate-limit tier. The
 * process that holds a lane chooses the next feed (next-feed.ts), waits for the API slot, reads a
 * page and chooses again. Rescans run beside the tails: they get one request in ten, and every
 * request that no tail is due for. Together they stay within the lane's share of the limit.
 *
 * A slow answer blocks nothing. When a request has been out for longer than the distance of two
 * slots, the lane continues with another feed. It takes the late answer in when it arrives.
 */
import type { PolledFeed } from '../types/polled-feed.ts'
import type { Clock, Timings } from '../../lib/clock.ts'
import type { Logger } from '../../lib/logger.ts'
import type { Redis } from '../../redis/client.ts'
import type { Keys } from '../../redis/keys.ts'
import { feedId, type LaneName, type LaneState, loadLane, newLane, saveLane } from './lane-store.ts'
import {
  type Candidate,
  chooseNext,
  type FeedPlace,
  clampFutureTimes,
  newFeedPlace,
  notePage,
  minPollInterval,
  retryEvery,
} from './next-feed.ts'
import {
  createWaitingLog,
  nextPollMs,
  type Poller,
  type PollOutcome,
  type PollRequest,
} from '../poll-run.ts'
import { rescanShare } from '../rescan-plan.ts'

/** The rate limit of a lane. */
export interface LaneLimit extends LaneName {
  /** The id of the lane's job. */
  id: string
  /** Requests per second of the tier. */
  perSecond: number
  /** The fraction of `perSecond` that feeds may use, rescans included. */
  share: number
}

export interface LaneOptions {
  feeds: readonly PolledFeed[]
  /** Returns the lane of a feed, as far as its organization is known so far. */
  laneFor: (feed: PolledFeed) => LaneLimit
  /** Increases whenever an organization becomes known. */
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

/** Reads the lanes of a process, and keeps what it knows of their feeds. */
export interface LaneReader {
  /** The lanes by id. They change as organizations become known: two accounts may share one. */
  lanes(): ReadonlyMap<string, LaneFeeds>
  /** What this process knows of a feed; undefined unless it holds the lane. */
  feedPlace: (feed: { account: string; name: string }) => Readonly<FeedPlace> | undefined
  /** Reads a lane until `isOver` returns true. Never throws. */
  hold(lane: LaneLimit, isOver: () => boolean): Promise<void>
  /**
   * Called once all holds are over: aborts runs that wait for a slot or an answer, and resolves
   * when they have ended.
   */
  abort(): Promise<void>
}

/** How often a process saves the state of a lane that it holds, ms. */
const saveEveryMs = 5_000
/** The longest sleep of a lane with nothing to read, ms: a feed may have joined it meanwhile. */
const maxSleepMs = 5_000
/** After this many pages a rescan yields to others that are due. */
const rescanPages = 4

type Kind = PollRequest['kind']

/** A lane that this process holds. */
interface HeldLane {
  lane: LaneLimit
  state: LaneState
  changed: Map<string, FeedPlace>
  savedAtMs: number
  isOver: () => boolean
  /** One controller for each sleeping loop; aborting it ends the sleep. */
  naps: Set<AbortController>
  turnsSinceRetry: number
}

/** A run of pages of one feed. */
interface LaneRun {
  feed: PolledFeed
  kind: Kind
  /** Whether it waits for a slot, and not for a token or an answer. */
  isQueued: boolean
  /** Since when, monotonic ms. */
  sinceMs: number
  /** Whether the lane waits for this run. */
  isFollowed: boolean
  stopping: AbortController
  hasEnded: boolean
  end: Promise<void>
}

interface ReaderState extends LaneOptions {
  lanes: () => ReadonlyMap<string, LaneFeeds>
  /** Of the feeds that are held, and of those whose run goes on after a hold. */
  places: Map<string, FeedPlace>
  /** By kind and feed id: at most one run of each. */
  runs: Map<string, LaneRun>
  held: Map<string, HeldLane>
  minIntervalMs: number
  logWaiting: (feed: PolledFeed, status: PollOutcome['status']) => void
}

export function createLaneReader(options: LaneOptions): LaneReader {
  const { feeds, timings, logger } = options
  const reader: ReaderState = {
    ...options,
    lanes: groupFeeds(options),
    places: new Map(),
    runs: new Map(),
    held: new Map(),
    minIntervalMs: minPollInterval(feeds, timings.minPollIntervalMs),
    logWaiting: createWaitingLog(logger),
  }
  return {
    lanes: reader.lanes,
    feedPlace: (feed) => reader.places.get(feedId(feed)),
    hold: (lane, isOver) => hold(reader, lane, isOver),
    async abort() {
      reader.held.forEach(wakeLoops)
      const openRuns = [...reader.runs.values()]
      for (const run of openRuns) run.stopping.abort()
      await Promise.all(openRuns.map(({ end }) => end))
    },
  }
}

async function hold(reader: ReaderState, lane: LaneLimit, isOver: () => boolean): Promise<void> {
  const held: HeldLane = {
    lane,
    state: await loadState(reader, lane),
    changed: new Map(),
    savedAtMs: reader.clock.now(),
    isOver: () => isOver() || feedsInLane(reader, lane).length === 0,
    naps: new Set(),
    turnsSinceRetry: retryEvery,
  }
  reader.held.set(lane.id, held)
  const loops = (['feed', 'rescan'] as const).map((kind) => readUntilOver(reader, held, kind))
  // when one loop ends, the other may be sleeping beyond the end of the hold
  await Promise.all(loops.map((loop) => loop.finally(() => wakeLoops(held))))
  reader.held.delete(lane.id)
  await saveState(reader, held)
  for (const feed of feedsInLane(reader, lane)) forget(reader, feed)
}

/** Leaves what is known of a feed to the next holder of its lane, unless a run goes on here. */
function forget(reader: ReaderState, feed: PolledFeed): void {
  if (!isRunning(reader, feed)) reader.places.delete(feedId(feed))
}

/** Reads tails, or rescans, one after the other until the hold is over. */
async function readUntilOver(reader: ReaderState, held: HeldLane, kind: Kind): Promise<void> {
  const { clock } = reader
  while (!held.isOver()) {
    const next = kind === 'feed' ? nextTail(reader, held) : nextRescan(reader, held)
    if (typeof next === 'object') await waitForRun(reader, held, startRun(reader, held, next, kind))
    else await sleepUntilWoken(reader, held, next - clock.now())
    const isNews = kind === 'feed' && held.changed.size > 0
    if (isNews && clock.now() - held.savedAtMs >= saveEveryMs) await saveState(reader, held)
  }
}

/** Sleeps for at most `maxSleepMs`; ends early when `wakeLoops` is called. */
async function sleepUntilWoken({ clock }: ReaderState, held: HeldLane, ms: number): Promise<void> {
  const waking = new AbortController()
  held.naps.add(waking)
  await clock.sleep(Math.min(ms, maxSleepMs), waking.signal)
  held.naps.delete(waking)
}

/**
 * The feed whose tail is read next, or the time before which none is. `running` is the feed in the
 * middle of a run.
 */
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
  const { turnsSinceRetry } = held
  const { minIntervalMs } = reader
  const budget = { perSecond: 1000 / slotSpacingMs(held), minIntervalMs, turnsSinceRetry }
  const choice = chooseNext(candidates, held.state.fleet, budget, nowMs)
  return 'feed' in choice ? (byId.get(choice.feed) ?? Infinity) : choice.atMs
}

/** When the lane may send again. Clamped to a few slots ahead, in case a clock was set back. */
function laneFreeMs(reader: ReaderState, held: HeldLane): number {
  const { state } = held
  const latestMs = reader.clock.now() + maxSlotsAhead * slotSpacingMs(held)
  state.freeAtMs = Math.min(state.freeAtMs, latestMs)
  return state.freeAtMs
}

/** Tails and rescans may each take slots ahead of the other. */
const maxSlotsAhead = 4

/** The feed that is rescanned next, or the time before which none is. */
function nextRescan(reader: ReaderState, held: HeldLane): PolledFeed | number {
  const nowMs = reader.clock.now()
  const owed = oldestRescan(reader, held)
  if (!owed || owed.atMs > nowMs) return owed?.atMs ?? Infinity
  const slotMs = nextRescanSlotMs(reader, held)
  return slotMs < nowMs + 1 ? owed.feed : slotMs
}

/** The feed whose rescan has been due longest, or is due first, and when. */
function oldestRescan(
  reader: ReaderState,
  held: HeldLane,
): { feed: PolledFeed; atMs: number } | undefined {
  let oldestDue: { feed: PolledFeed; atMs: number } | undefined
  for (const feed of feedsInLane(reader, held.lane)) {
    if (!feed.rescan || reader.runs.has(runKey('rescan', feed))) continue
    const { atMs = 0 } = ensurePlace(reader, feed).rescan ?? {}
    if (!oldestDue || atMs < oldestDue.atMs) oldestDue = { feed, atMs }
  }
  return oldestDue
}

/**
 * The earliest time for the next page of a rescan, ms; not in the future when it may be sent now.
 */
function nextRescanSlotMs(reader: ReaderState, held: HeldLane): number {
  const { state } = held
  const nowMs = reader.clock.now()
  const spacingMs = slotSpacingMs(held)
  state.rescansFreeAtMs = Math.min(state.rescansFreeAtMs, nowMs + spacingMs / rescanShare) // as laneFreeMs
  const spareMs = Math.max(nowMs, state.freeAtMs)
  const isSpare = typeof chooseTail(reader, held, spareMs) === 'number'
  return Math.min(state.rescansFreeAtMs, isSpare ? spareMs : spareMs + spacingMs)
}

async function waitForRescanSlot(reader: ReaderState, held: HeldLane, run: LaneRun): Promise<void> {
  const { clock } = reader
  const { signal } = run.stopping
  for (let waitMs = 1; waitMs >= 1 && !signal.aborted;) {
    waitMs = nextRescanSlotMs(reader, held) - clock.now()
    await clock.sleep(waitMs, signal)
  }
}

/** Records a request that is sent now; returns the time. */
function takeSlot(reader: ReaderState, held: HeldLane, run: LaneRun): number {
  const nowMs = reader.clock.now()
  const { state } = held
  const spacingMs = slotSpacingMs(held)
  noteQueued(reader, run, false)
  state.freeAtMs = Math.max(state.freeAtMs, nowMs) + spacingMs
  if (run.kind === 'rescan') state.rescansFreeAtMs = nowMs + spacingMs / rescanShare
  else held.turnsSinceRetry += 1
  return nowMs
}

function startRun(reader: ReaderState, held: HeldLane, feed: PolledFeed, kind: Kind): LaneRun {
  const run: LaneRun = {
    feed,
    kind,
    isQueued: false,
    sinceMs: reader.clock.monotonic(),
    isFollowed: true,
    stopping: new AbortController(),
    hasEnded: false,
    end: Promise.resolve(),
  }
  const id = runKey(kind, feed)
  reader.runs.set(id, run)
  if (kind === 'feed' && ensurePlace(reader, feed).failures > 0) held.turnsSinceRetry = 0
  const take = kind === 'feed' ? runTail : runRescan
  run.end = take(reader, held, run).finally(() => {
    reader.runs.delete(id)
    const holder = holderOf(reader, feed)
    if (!holder) forget(reader, feed)
    run.hasEnded = true
    wakeLoops(held) // the loop that follows the run
    if (holder !== held) wakeLoops(holder) // a loop may have waited for this feed
  })
  return run
}

/** Waits for a run, but gives up on an answer or a token that takes too long. */
async function waitForRun(reader: ReaderState, held: HeldLane, run: LaneRun): Promise<void> {
  const { clock } = reader
  const patienceMs = slotSpacingMs(held)
  while (!run.hasEnded) {
    await sleepUntilWoken(reader, held, patienceMs)
    const { isQueued, sinceMs } = run
    if (isQueued) {
      // it has no slot yet: the next holder of the lane takes one
      if (held.isOver()) run.stopping.abort()
    } else if (held.isOver() || clock.monotonic() - sinceMs >= patienceMs) {
      break
    }
  }
  run.isFollowed = false
}

async function runTail(reader: ReaderState, held: HeldLane, run: LaneRun): Promise<void> {
  const { clock } = reader
  const { feed } = run
  const place = ensurePlace(reader, feed)
  let { askedAtMs: before } = place
  let askedAtMs = clock.now()
  const outcome = await poll(reader, run, {
    onJoin: () => noteQueued(reader, run, true),
    onSlot() {
      askedAtMs = takeSlot(reader, held, run)
      if (feed.everyMs === undefined) return
      // whoever holds the lane next does not ask again while the answer is out: it may cost quota
      place.askedAtMs = askedAtMs
      held.changed.set(feedId(feed), place)
    },
    waitAfter: (failure) => nextAttemptMs(reader, failure, place.failures + 1) - clock.now(),
    onPage(page) {
      noteQueued(reader, run, true)
      if (place.failures > 0) held.turnsSinceRetry = retryEvery
      notePage(place, held.state.fleet, { askedAtMs, ...page })
      before = askedAtMs
      if (page.isNewScan && place.rescan) place.rescan.atMs = clock.now()
    },
    async mayContinue() {
      await clock.sleep(laneFreeMs(reader, held) - clock.now(), run.stopping.signal)
      return run.isFollowed && !held.isOver() && nextTail(reader, held, feed) === feed
    },
  })
  place.askedAtMs = before // nothing was taken in of what was asked since
  notePollOutcome(place, outcome, nextAttemptMs(reader, outcome, place.failures + 1))
  await handOver(reader, run)
  reader.logWaiting(feed, outcome.status)
}

function noteQueued({ clock }: ReaderState, run: LaneRun, isQueued: boolean): void {
  run.isQueued = isQueued
  run.sinceMs = clock.monotonic()
}

async function runRescan(reader: ReaderState, held: HeldLane, run: LaneRun): Promise<void> {
  const { clock } = reader
  const { feed } = run
  const previous = ensurePlace(reader, feed).rescan ?? { atMs: clock.now(), failures: 0, pages: 0 }
  let { pages } = previous
  const outcome = await poll(reader, run, {
    dueSinceMs: Math.min(previous.atMs, clock.now()),
    pagesBefore: pages,
    onJoin: () => noteQueued(reader, run, true),
    onSlot: () => void takeSlot(reader, held, run),
    waitAfter: (failure) => nextAttemptMs(reader, failure, previous.failures + 1) - clock.now(),
    onPage() {
      noteQueued(reader, run, true)
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
  await handOver(reader, run)
}

/**
 * When the feed's rescans are looked at again. That is when the next one is due, within
 * `rescanLookMs` at the latest, because some changes show on no page of the tail.
 */
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

/** Loads what the previous holder knew, but for feeds whose tail is read here just now. */
async function loadState(reader: ReaderState, lane: LaneLimit): Promise<LaneState> {
  const { redis, keys, clock, logger, places } = reader
  const options = { generation: reader.generation(), nowMs: clock.now() }
  const stored = await loadLane(redis, keys, lane, options).catch((error: unknown) => {
    logger.debug({ err: error }, 'the lane begins without what others know of it')
    return newLane(options.nowMs)
  })
  clampFutureTimes(stored.state, options.nowMs)
  for (const feed of feedsInLane(reader, lane)) {
    const place = stored.places.get(feedId(feed))
    if (place && !reader.runs.has(runKey('feed', feed))) places.set(feedId(feed), place)
  }
  return stored.state
}

/**
 * Keeps what a run has learned: with the lane in which its feed is now, or at once where that is not
 * held here. A rescan leaves nothing then: its holder knows more of the tail.
 */
async function handOver(reader: ReaderState, { feed, kind }: LaneRun): Promise<void> {
  const place = ensurePlace(reader, feed)
  const holder = holderOf(reader, feed)
  if (holder) holder.changed.set(feedId(feed), place)
  else if (kind === 'feed')
    await save(reader, reader.laneFor(feed), new Map([[feedId(feed), place]]))
}

async function saveState(reader: ReaderState, held: HeldLane): Promise<void> {
  const { lane, state } = held
  held.savedAtMs = reader.clock.now()
  const places = new Map(held.changed)
  held.changed.clear()
  if (await save(reader, lane, places, state)) return
  for (const [id, place] of places) held.changed.set(id, place)
}

/** Returns false where Redis did not take it. */
async function save(
  { redis, keys, logger, generation }: ReaderState,
  lane: LaneLimit,
  places: ReadonlyMap<string, FeedPlace>,
  state?: LaneState,
): Promise<boolean> {
  try {
    await saveLane(redis, keys, lane, { state, places, generation: generation() })
    return true
  } catch (error) {
    logger.debug({ err: error }, 'what is known of the lane was not kept')
    return false
  }
}

function holderOf({ held, laneFor }: ReaderState, feed: PolledFeed): HeldLane | undefined {
  return held.get(laneFor(feed).id)
}

function feedsInLane({ lanes }: ReaderState, { id }: LaneLimit): readonly PolledFeed[] {
  return lanes().get(id)?.feeds ?? []
}

function ensurePlace({ places }: ReaderState, feed: PolledFeed): FeedPlace {
  const place = places.get(feedId(feed)) ?? newFeedPlace()
  places.set(feedId(feed), place)
  return place
}

/** Time between two requests, ms. */
function slotSpacingMs({ lane: { perSecond, share } }: HeldLane): number {
  return 1000 / (perSecond * share)
}

function isRunning({ runs }: ReaderState, feed: PolledFeed): boolean {
  return runs.has(runKey('feed', feed)) || runs.has(runKey('rescan', feed))
}

function runKey(kind: Kind, feed: PolledFeed): string {
  return `${kind} ${feedId(feed)}`
}

function wakeLoops(held: HeldLane | undefined): void {
  for (const waking of held?.naps ?? []) waking.abort('woken') // without a reason, each would be an error with a stack
}

/** Groups feeds by lane; recomputed only when an organization has become known. */
function groupFeeds({
  feeds,
  laneFor,
  lanesVersion,
}: LaneOptions): () => ReadonlyMap<string, LaneFeeds> {
  let known: { version: number; lanes: Map<string, LaneFeeds> } | undefined
  return () => {
    const version = lanesVersion()
    if (known?.version === version) return known.lanes
    const lanes = new Map<string, LaneFeeds>()
    for (const feed of feeds) {
      const limit = laneFor(feed)
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
    const message = `${kind === 'rescan' ? 'rescan' : 'poll'} broke off; it starts again from the ledger`
    const cause = error instanceof Error ? error.name : 'unknown'
    const fields = { feed: feed.name, err: error }
    logger.repeated.error(fields, message, { cause, list: 'feeds', name: feed.name })
    return { status: 'failed', reason: 'unavailable', retryAfterMs: undefined }
  }
}
