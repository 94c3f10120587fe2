import type { Walk } from '../ledger/feed-state.ts'
import { loadConfigFile } from './config-file.ts'
import { print, type CommonOptions, type Context } from './context.ts'
import { reportFeeds, type FeedReport } from './feed-report.ts'
import { askedJson, feedInWords } from './feed-words.ts'
import { withLedger } from './open-ledger.ts'
import { harmless, isoTime, spanInWords, timeInWords } from './words.ts'

export async function listFeeds(context: Context, options: CommonOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const reports = await withLedger(config, (ledger) => reportFeeds(ledger, config.feeds))
  print(context, options, {
    json: reports.map(feedJson),
    lines: () => reports.flatMap((report) => feedLines(context, report)),
  })
}

function feedJson({ feed, state, lagMs, counts }: FeedReport): Record<string, unknown> {
  const { walk, paused } = state ?? {}
  return {
    feed: feed.name,
    type: feed.type,
    ...askedJson(feed),
    account: feed.account,
    has_polled: state !== undefined,
    paused: paused ? { reason: paused.reason, since: isoTime(paused.sinceMs) } : null,
    lag_seconds: lagMs === undefined ? null : lagMs / 1000,
    lag_objective_seconds: feed.lagObjectiveMs / 1000,
    last_success: isoTime(state?.lastSuccessMs),
    last_caught_up: isoTime(state?.lastCaughtUpMs),
    newest_event: isoTime(state?.newestMs),
    floor: isoTime(state?.floorMs),
    is_backfilling: state?.isBackfilling ?? false,
    walk: walk
      ? {
          reason: walk.reason,
          started_at: isoTime(walk.startedAtMs),
          has_cursor: walk.cursor !== null,
        }
      : null,
    sweep: sweepJson({ feed, state }),
    counts: counts ?? null,
  }
}

function sweepJson({ feed, state }: Pick<FeedReport, 'feed' | 'state'>): object | null {
  if (feed.sweep === undefined) return null
  return {
    every_seconds: feed.sweep.everyMs / 1000,
    last_completed: isoTime(state?.sweep.lastCompletedMs),
    running_since: isoTime(runningSweep(state)?.startedAtMs),
  }
}

function runningSweep(state: FeedReport['state']): Walk | undefined {
  return state?.sweep.isDone ? undefined : state?.sweep.walk
}

function feedLines(context: Context, report: FeedReport): string[] {
  const { terminal } = context
  const { feed, state, counts } = report
  const head = `${terminal.paint('bold', feed.name)} (${harmless(feedInWords(feed))}, account ${feed.account})`
  if (state === undefined) return [`${head}: has not polled yet`]
  const paused = state.paused && terminal.paint('yellow', pauseInWords(state.paused))
  const { fetched = 0, duplicate = 0, quarantined = 0, baseline = 0 } = counts ?? {}
  return [
    `${head}: ${paused ?? lagInWords(context, report)}`,
    ...(paused ? [`  ${lagInWords(context, report)}`] : []),
    `  last success ${time(state.lastSuccessMs)}, last caught up ${time(state.lastCaughtUpMs)}${state.isBackfilling ? ', working off a backlog' : ''}`,
    `  newest event ${time(state.newestMs)}, floor ${time(state.floorMs)}`,
    `  ${walkInWords(report)}`,
    `  ${sweepInWords(report)}`,
    `  ${fetched} fetched: ${counts?.new ?? 0} new, ${duplicate} known, ${quarantined} quarantined, ${baseline} older than the floor`,
    `  of these ${counts?.late ?? 0} came late, ${counts?.raised ?? 0} were raised in severity`,
  ]
}

function time(ms: number | undefined): string {
  return ms === undefined ? 'never' : timeInWords(ms)
}

function pauseInWords({ reason, sinceMs }: { reason: string; sinceMs: number }): string {
  return `paused since ${timeInWords(sinceMs)}: ${harmless(reason)}`
}

function lagInWords({ terminal }: Context, { feed, lagMs = 0 }: FeedReport): string {
  const isLate = lagMs > feed.lagObjectiveMs
  const lag = `lag ${spanInWords(lagMs)}, objective ${spanInWords(feed.lagObjectiveMs)}`
  return terminal.paint(isLate ? 'red' : 'green', lag)
}

function walkInWords({ state }: FeedReport): string {
  if (state?.isRewound) return 'rewound: a new walk begins with the next poll'
  if (!state?.walk) return 'no walk yet'
  const { reason, startedAtMs, cursor } = state.walk
  const place = cursor === null ? 'at its beginning' : 'with a cursor'
  return `walk since ${timeInWords(startedAtMs)} (${reason.replaceAll('_', ' ')}), ${place}`
}

function sweepInWords({ feed, state }: FeedReport): string {
  if (feed.sweep === undefined) return 'sweeps are switched off'
  const last = `last sweep ended ${time(state?.sweep.lastCompletedMs)}`
  const running = runningSweep(state)
  return running ? `${last}, one runs since ${timeInWords(running.startedAtMs)}` : last
}
