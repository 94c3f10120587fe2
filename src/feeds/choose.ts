/** What a poll requests next: a page of the tail or of a rescan, or nothing, and why. */
import { isReserveReached, reservedSearches, type PolledFeed } from './types/polled-feed.ts'
import type { FeedState, Scan } from '../store/feed-state.ts'
import type { PlacedScan } from './fetch.ts'
import { readMatchClock, upstreamNowMs } from './match-time.ts'
import type { Obstacle, PollerOptions, PollOutcome, PollRun } from './poll-run.ts'
import { unconstrainedPlan, wholeEveryMs } from './rescan-plan.ts'
import { nextRescan } from './rescan.ts'
import { scanFingerprint, tailScan } from './scan.ts'

/** `pages`: rescan pages read before, over all runs. */
export async function chooseScan(
  options: PollerOptions,
  run: PollRun,
  { state, aheadMs }: { state: FeedState; aheadMs: number },
  pages: number,
): Promise<PlacedScan | PollOutcome> {
  const obstacle = await findObstacle(options, run, state)
  if (obstacle) return { status: obstacle }
  const next =
    run.kind === 'feed'
      ? { rescan: { scan: tailScan(run.feed, state), place: undefined } }
      : await chooseRescan(options, run, state, pages)
  if (!('rescan' in next)) return { status: 'not_due', untilMs: next.dueMs && next.dueMs - aheadMs }
  return (await isTooCostly(options, run)) ? { status: 'quota' } : next.rescan
}

async function chooseRescan(
  options: PollerOptions,
  run: PollRun,
  state: FeedState,
  pages: number,
): Promise<ReturnType<typeof nextRescan>> {
  const { feed } = run
  const isBegun = state.lastCaughtUpMs !== undefined && !state.isBackfilling
  const matchedNowMs = isBegun ? await readMatchClock(options, run) : undefined
  const plan = options.rescanBudget?.plan(feed, {
    perWeek: state.rescans.perWeek,
    isMatched: matchedNowMs !== undefined,
  })
  const rememberedMs = run.account.ledger.horizonMs
  const context = {
    plan: plan ?? unconstrainedPlan,
    matchClockMs: matchedNowMs,
    clockMs: upstreamNowMs(options, run),
    rememberedMs,
  }
  options.metrics.feedRescanIntervalSeconds.set(
    { feed: feed.name },
    wholeEveryMs(feed, context) / 1000,
  )
  return nextRescan(feed, state, context, pages)
}

/** Why nothing can be requested now; checked first, because it costs no request. */
async function findObstacle(
  options: PollerOptions,
  run: PollRun,
  state: FeedState,
): Promise<Obstacle | undefined> {
  const { generation, hasRoom } = options
  const { feed, kind } = run
  if (state.paused) return 'paused'
  const ownGeneration = generation()
  if (isSuperseded(feed, state, state, ownGeneration)) return 'superseded'
  const places = kind === 'rescan' ? (['recent', 'long', 'whole'] as const) : []
  if (places.some((place) => isSuperseded(feed, state, state[place], ownGeneration)))
    return 'superseded'
  return (await hasRoom()) ? undefined : 'full'
}

/** Whether the next page would use quota that the feed must leave. */
async function isTooCostly({ clock }: PollerOptions, { feed, account }: PollRun): Promise<boolean> {
  if (reservedSearches(feed) === 0) return false // most feeds reserve none, and ask nobody
  return isReserveReached(feed, await account.readQuota?.(), clock.now())
}

/** Decides as the commit does. */
function isSuperseded(
  feed: PolledFeed,
  { startBoundMs }: FeedState,
  stored: { generation: number; scan: Scan | undefined },
  ownGeneration: number,
): boolean {
  return (
    stored.generation > ownGeneration &&
    stored.scan?.fingerprint !== scanFingerprint(feed, startBoundMs)
  )
}
