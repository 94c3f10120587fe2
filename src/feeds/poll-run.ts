import { severities, severityRank, type ThreatEvent } from '../event.ts'
import type { PolledFeed, Quota } from './types/polled-feed.ts'
import { type Clock, defaultTimings, type Timings } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics/metrics.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import type { CommitResult, EventPlan, PageCounts } from '../store/intake.ts'
import type { ItemChange } from '../store/pending-items.ts'
import type { Capabilities } from '../upstream/access/capabilities.ts'
import type { UpstreamClient } from '../upstream/client.ts'
import type { UpstreamReason } from '../upstream/error.ts'
import type { RescanBudget } from './rescan-plan.ts'

/** What polls of an account's feeds work with. */
export interface PolledAccount {
  client: UpstreamClient
  ledger: AccountLedger
  /** Tells the sinks of a commit's changes. May fail: a slow pass finds them later. */
  queue(made: ItemChange[]): Promise<void>
  /** The searches that are left; undefined until an answer has stated them. */
  readQuota?(): Promise<Quota | undefined>
  /** Hashes what identifies a leaked credential, with a key that Redis does not have. */
  pairDigest?(parts: readonly string[]): string | undefined
  /** Encrypts a leaked secret for sinks that reveal secrets; undefined when none does. */
  sealSecret?(uid: string, secret: string): string | undefined
  /** What the account's server has refused; absent: nothing is read by match time. */
  capabilities?: Capabilities | undefined
}

export interface PollerOptions {
  /** Throws where the account's ledger is not open. */
  account: (name: string) => PolledAccount
  /**
   * Routes an event; pure. `isBacklog`: it comes from the feed's first scan and goes into a
   * summary; `isFresh`: the tail found it, after its first scan.
   */
  plan: (
    event: ThreatEvent,
    feed: PolledFeed,
    about: { isBacklog: boolean; isFresh: boolean },
  ) => EventPlan
  batchWaitMs: (sink: string) => number | undefined
  generation: () => number
  /** Whether the ledger may grow; if not, events stay at the API. */
  hasRoom: () => Promise<boolean>
  /** Shares the rescan budget between the feeds of a tier; absent: each feed counts as alone. */
  rescanBudget?: RescanBudget | undefined
  clock: Clock
  logger: Logger
  metrics: Metrics
}

/** One poll run: consecutive pages of one feed. */
export interface PollRun extends PollRequest {
  feed: PolledFeed
  /** That of the feed. */
  account: PolledAccount
  dueSinceMs: number
  /** Cursors that the API refused in this run. */
  refusals: { count: number }
}

export interface PollRequest {
  kind: 'feed' | 'rescan'
  signal: AbortSignal
  /** Since when the run has been due, wall clock ms; undefined: since now. */
  dueSinceMs?: number | undefined
  /** Called when the request of a page begins to wait for its slot, and for nothing else. */
  onJoin?: (() => void) | undefined
  /** Called when the request of a page gets its slot. */
  onSlot?: (() => void) | undefined
  /** Called after a page was taken in. */
  onPage?: ((page: AcceptedPage) => void) | undefined
  /**
   * Rescan pages that earlier runs have read, so that the order among the rescans continues;
   * absent: none.
   */
  pagesBefore?: number | undefined
  /** How long the feed is left alone after a failure, ms; absent: not known. */
  waitAfter?: ((failure: PollOutcome) => number) | undefined
  /** Whether the run continues after so many pages; absent: it does. */
  mayContinue?: ((pages: number) => Promise<boolean>) | undefined
}

/** A page that was taken in, as the polling rule counts it. */
interface AcceptedPage {
  newEvents: number
  /** New events that are critical or high, or of unknown severity. */
  urgentEvents: number
  hasMore: boolean
  /** Whether the page belongs to the feed's first scan. */
  isBacklog: boolean
  /**
   * Whether the scan has another request or start, so that a rescan may be due sooner than was
   * known.
   */
  isNewScan?: boolean | undefined
}

export type PollOutcome =
  | { status: 'caught_up' | 'more' | 'stopped' | Obstacle }
  /**
   * No rescan is due before `untilMs`, wall clock ms; undefined until the feed was read to its end
   * once.
   */
  | { status: 'not_due'; untilMs: number | undefined }
  | { status: 'failed'; reason: UpstreamReason; retryAfterMs: number | undefined }

/** Why nothing is requested now. */
export type Obstacle = 'paused' | 'superseded' | 'quota' | 'full'

export interface Poller {
  /** Polls a feed's tail or its rescans once. Throws only on a bug or a Redis failure. */
  pollOnce(feed: PolledFeed, asked: PollRequest): Promise<PollOutcome>
}

/**
 * Until when a feed is left alone after a run, wall clock ms. `failures` counts consecutive
 * failures, this one included. After a successful read, the polling rule alone decides when the
 * feed is read again.
 */
export function nextPollMs(
  outcome: PollOutcome,
  { nowMs, failures }: { nowMs: number; failures: number },
  timings: Timings = defaultTimings,
): number {
  if (outcome.status !== 'failed') return nowMs + waitMs(outcome.status, timings)
  const { reason, retryAfterMs } = outcome
  if (reason !== 'auth' || retryAfterMs === undefined)
    return nowMs + Math.max(retryAfterMs ?? 0, backoffMs(failures, timings))
  // a look at a paused account costs no request, and a test may end the pause at any time
  return nowMs + Math.min(retryAfterMs, timings.notDueLookMs)
}

function waitMs(status: PollOutcome['status'], timings: Timings): number {
  if (status === 'superseded') return timings.supersededLookMs
  if (status === 'full') return timings.fullLookMs
  if (status === 'paused') return timings.pausedLookMs
  return status === 'quota' ? timings.notDueLookMs : 0
}

/** A failing feed keeps asking, without using up the budget of its account. */
function backoffMs(failures: number, { pollBackoffMs }: Timings): number {
  return pollBackoffMs * Math.min(2 ** Math.max(0, failures - 1), 60)
}

/** Why a feed is not polled although nothing failed. */
const waitingReasons: Partial<Record<PollOutcome['status'], string>> = {
  superseded: 'a newer configuration polls this feed; this replica does not',
  full: 'Redis has used 70 % of its memory: nothing more is taken in until there is room',
  paused: 'the feed is paused by an operator; "feeds resume" lets it go on',
  quota: 'the searches left have reached quota_reserve: the feed asks again once a day',
}

/** Logs a reason once when it begins: the feed is looked at every few seconds. */
export function createWaitingLog(
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

/** The stages of a page, in their order: `slot` waits for the API, `fetch` for its answer. */
export type PollStage = 'open' | 'choose' | 'slot' | 'fetch' | 'parse' | 'commit' | 'announce'

/** What was taken in of a feed since its last line. */
interface Tally {
  /** How long each stage took, ms. */
  stages: Partial<Record<PollStage, number>>
  /** Monotonic ms. */
  beganMs: number
  pages: number
  counts: PageCounts
  /** `severityRank` of the worst new event; 0: there is none. */
  worstRank: number
}

type LoggedFeed = Pick<PollRun, 'kind'> & { feed: { account: string; name: string } }

/**
 * Logs one line for each time that a feed was polled to its end, or rescanned. It is at `info` if
 * it brought something that somebody may be told of, at `debug` otherwise. Feeds take turns page by
 * page, so a scan may take many runs: it has a line each `linePages` or `lineMs`.
 */
export interface PollLog {
  begin(run: LoggedFeed): void
  add(run: LoggedFeed, page: Pick<CommitResult, 'counts' | 'newEvents'>): void
  addStage(run: LoggedFeed, stage: PollStage, ms: number): void
  /** How long each stage took since the feed's last line, ms. */
  stages(run: LoggedFeed): Tally['stages']
  /** `hasMore`: the scan goes on in another run. */
  end(run: LoggedFeed, hasMore: boolean): void
}

/** A run whose stages and pages the log has. */
export type LoggedRun = PollRun & { log: PollLog }

const linePages = 50
const lineMs = 60_000

export function createPollLog(logger: Logger, clock: Pick<Clock, 'monotonic'>): PollLog {
  const tallies = new Map<string, Tally>()

  function ensure({ kind, feed }: LoggedFeed): { key: string; tally: Tally } {
    const key = `${kind} ${feed.account}/${feed.name}`
    const tally = tallies.get(key) ?? newTally(clock.monotonic())
    tallies.set(key, tally)
    return { key, tally }
  }

  return {
    begin: (run) => void ensure(run),
    add(run, { counts, newEvents }) {
      const { tally } = ensure(run)
      tally.pages += 1
      for (const name of Object.keys(tally.counts) as (keyof PageCounts)[])
        tally.counts[name] += counts[name]
      for (const { event } of newEvents)
        tally.worstRank = Math.max(tally.worstRank, severityRank(event.severity))
    },
    addStage(run, stage, ms) {
      const { stages } = ensure(run).tally
      stages[stage] = (stages[stage] ?? 0) + ms
    },
    stages: (run) => rounded(ensure(run).tally.stages),
    end(run, hasMore) {
      const { key, tally } = ensure(run)
      const ms = clock.monotonic() - tally.beganMs
      if (hasMore && tally.pages < linePages && ms < lineMs) return
      tallies.delete(key)
      writeTally(logger, run, tally, { ms: Math.round(ms), ...(hasMore && { more: true }) })
    },
  }
}

function newTally(beganMs: number): Tally {
  const found = { fetched: 0, new: 0, late: 0, ahead: 0, raised: 0 }
  const counts = { ...found, duplicate: 0, baseline: 0, quarantined: 0 }
  return { stages: {}, beganMs, pages: 0, counts, worstRank: 0 }
}

function rounded(stages: Tally['stages']): Tally['stages'] {
  return Object.fromEntries(Object.entries(stages).map(([stage, ms]) => [stage, Math.round(ms)]))
}

function writeTally(
  logger: Logger,
  { kind, feed: { name: feed, account } }: LoggedFeed,
  { stages, pages, counts, worstRank }: Tally,
  about: { ms: number; more?: boolean },
): void {
  if (pages === 0) return
  const { fetched, new: fresh, ...others } = counts
  const found = Object.fromEntries(Object.entries(others).filter(([, count]) => count > 0))
  const worst = severities[worstRank - 1]
  const took = rounded(stages)
  const waited = about.ms - Object.values(took).reduce((sum, ms) => sum + ms, 0) // others had their turns
  const ofPages = { ...about, stages: { wait: Math.max(0, waited), ...took } }
  const fields = { feed, account, pages, fetched, new: fresh, ...found, worst, ...ofPages }
  const isNews = fresh + counts.quarantined + counts.raised > 0
  logger[isNews ? 'info' : 'debug'](fields, kind === 'rescan' ? 'rescanned' : 'polled')
}
