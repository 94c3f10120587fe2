import { datedAheadMs, type FeedState, type Unreadable, type Scan } from '../../store/feed-state.ts'
import { type CommonOptions, type Context, loadConfigFile, print } from '../context.ts'
import {
  type FeedReport,
  type LeftFeed,
  reportFeeds,
  reportLeftFeeds,
} from '../../daemon/for-commands/feed-report.ts'
import { feedQueryJson, formatBounds, describeFeed } from './feed-text.ts'
import { chooseListed, type NarrowingOptions } from '../narrowing.ts'
import { withStore } from '../open/open-store.ts'
import {
  findNamed,
  pluralize,
  sanitize,
  formatIsoTime,
  formatDuration,
  formatUtcTime,
  troubleJson,
  troubleLines,
} from '../terminal.ts'

export type ListOptions = CommonOptions & NarrowingOptions

/** A feed of the configuration, or one that the ledger alone still knows. */
type ListedFeed = { name: string; account: string } & ({ report: FeedReport } | { left: LeftFeed })

/** Prints of each feed what differs from well; all of it of one that is named, or with --wide. */
export async function listFeeds(
  context: Context,
  name: string | undefined,
  options: ListOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const isWhole = name !== undefined || options.wide === true
  const listed = await withStore(config, async (store) => {
    const reports = (await reportFeeds(store, config)).map((report) => ({ ...report.feed, report }))
    const left = (await reportLeftFeeds(store, config)).map((one) => ({ ...one, left: one }))
    return ofAccount([...reports, ...left], options.account)
  })
  const { shown, left } = chooseListed<ListedFeed>(listed, options, {
    badness,
    thing: 'feed',
    name,
  })
  print(context, options, {
    json: shown.map((one) => ('left' in one ? leftFeedJson(one.left) : feedJson(one.report))),
    lines: () => [
      ...shown.flatMap((one) =>
        'left' in one ? leftFeedLines(context, one.left) : feedLines(context, one.report, isWhole),
      ),
      ...left,
    ],
  })
}

/** Throws CommandError for an account that has no feed. */
function ofAccount(listed: readonly ListedFeed[], wanted: string | undefined): ListedFeed[] {
  if (wanted === undefined) return [...listed]
  const accounts = [...new Set(listed.map(({ account }) => account))]
  findNamed(
    accounts.map((name) => ({ name })),
    wanted,
    'account with feeds',
  )
  return listed.filter(({ account }) => account === wanted)
}

/** 3: it does not get on; 2: something is in its way; 1: somebody may want to know. */
function badness(listed: ListedFeed): number {
  if ('left' in listed) return 0
  const { state, lagMs = 0, lagObjectiveMs, quarantined } = listed.report
  if (state === undefined) return 1
  if (state.unreadable || state.refused || lagMs > lagObjectiveMs) return 3
  if (state.trouble ?? state.rescanTrouble ?? state.paused ?? quarantined > 0) return 2
  return datedAheadMs(state) === undefined && !state.isRewound ? 0 : 1
}

function leftFeedJson({ name, account, state, counts }: LeftFeed): Record<string, unknown> {
  return {
    feed: name,
    account,
    is_configured: false,
    last_success: formatIsoTime(state?.lastSuccessMs),
    last_caught_up: formatIsoTime(state?.lastCaughtUpMs),
    newest_event: formatIsoTime(state?.newestMs),
    counts,
  }
}

function leftFeedLines(
  { terminal }: Context,
  { name, account, state, counts }: LeftFeed,
): string[] {
  const head = terminal.paint('bold', sanitize(name))
  return [
    `${head} (account ${account}): ${terminal.paint('yellow', 'not configured any more, not read')}`,
    `  last success ${formatTimeOrNever(state?.lastSuccessMs)}, last caught up ${formatTimeOrNever(state?.lastCaughtUpMs)}`,
    `  ${counts.fetched} fetched, ${counts.new} of them new; "tocsin accounts list" shows what waits`,
  ]
}

function feedJson({
  feed,
  state,
  lagMs,
  lagObjectiveMs,
  counts,
  quarantined,
  bounds,
}: FeedReport): Record<string, unknown> {
  const { scan, paused, refused, trouble, rescanTrouble, unreadable } = state ?? {}
  return {
    feed: feed.name,
    type: feed.type,
    ...feedQueryJson(feed),
    account: feed.account,
    is_configured: true,
    has_polled: state !== undefined,
    paused: paused ? { reason: paused.reason, since: formatIsoTime(paused.sinceMs) } : null,
    refused: refused ? { reason: refused.reason, since: formatIsoTime(refused.sinceMs) } : null,
    trouble: troubleJson(trouble),
    rescan_trouble: troubleJson(rescanTrouble),
    lag_seconds: lagMs === undefined ? null : lagMs / 1000,
    lag_objective_seconds: lagObjectiveMs / 1000,
    last_success: formatIsoTime(state?.lastSuccessMs),
    last_caught_up: formatIsoTime(state?.lastCaughtUpMs),
    newest_event: formatIsoTime(state?.newestMs),
    dated_ahead_until: formatIsoTime(state && datedAheadMs(state)),
    start_bound: formatIsoTime(state?.startBoundMs),
    is_backfilling: state?.isBackfilling ?? false,
    scan: scan
      ? {
          reason: scan.reason,
          started_at: formatIsoTime(scan.startedAtMs),
          has_cursor: scan.cursor !== null,
        }
      : null,
    rescan: rescanJson({ feed, state, bounds }),
    lateness: state?.lateness ?? {},
    quarantined,
    unreadable: unreadable
      ? {
          since: formatIsoTime(unreadable.sinceMs),
          shown: unreadable.shown,
          unread: unreadable.unread,
          problem: unreadable.problem,
        }
      : null,
    counts: counts ?? null,
  }
}

function rescanJson({
  feed,
  state,
  bounds,
}: Pick<FeedReport, 'feed' | 'state' | 'bounds'>): object | null {
  if (feed.rescan === undefined) return null
  return {
    every_seconds: feed.rescan.everyMs === undefined ? null : feed.rescan.everyMs / 1000,
    last_completed: formatIsoTime(state?.whole.lastCompletedMs),
    running_since: formatIsoTime(findRunningRescan(state)?.startedAtMs),
    by_match_time: bounds?.isMatched ?? false,
    found_within_seconds: bounds && bounds.soonMs / 1000,
    whole_within_seconds: bounds && bounds.wholeMs / 1000,
  }
}

function findRunningRescan(state: FeedReport['state']): Scan | undefined {
  return state?.whole.isDone ? undefined : state?.whole.scan
}

function feedLines(context: Context, report: FeedReport, isWhole: boolean): string[] {
  const { terminal } = context
  const { feed, state } = report
  const head = `${terminal.paint('bold', feed.name)} (${sanitize(describeFeed(feed))}, account ${feed.account})`
  if (state === undefined) return [`${head}: has not polled yet`]
  const paused = state.paused && terminal.paint('yellow', formatPause(state.paused))
  const unreadable = state.unreadable && terminal.paint('red', formatUnreadable(state.unreadable))
  const { lastSuccessMs, lastCaughtUpMs, newestMs, startBoundMs, isBackfilling } = state
  return [
    `${head}: ${[paused, unreadable, formatLag(context, report)].find(Boolean)}`,
    ...(paused && unreadable ? [`  ${unreadable}`] : []),
    ...(paused || unreadable ? [`  ${formatLag(context, report)}`] : []),
    ...quarantineLines(context, report),
    ...refusalLines(context, state),
    ...troubleLines(terminal, state.trouble, state.nowMs),
    ...(isWhole
      ? [
          `  last success ${formatTimeOrNever(lastSuccessMs)}, last caught up ${formatTimeOrNever(lastCaughtUpMs)}`,
          `  newest event ${formatTimeOrNever(newestMs)}, start bound ${formatTimeOrNever(startBoundMs)}`,
        ]
      : []),
    ...(isBackfilling ? ['  working off a backlog'] : []),
    ...datedAheadLines(context, report),
    ...(isWhole || state.isRewound ? [`  ${formatScan(report)}`] : []),
    ...(isWhole ? [`  ${formatRescan(report)}`] : []),
    ...troubleLines(terminal, state.rescanTrouble, state.nowMs, 'rescans '),
    ...(isWhole ? [`  ${formatCounts(report)}`] : []),
  ]
}

/** `22 fetched: 19 new, 1 known, 2 quarantined`; counts of zero are left out. */
function formatCounts({ state, counts }: FeedReport): string {
  const { fetched = 0, duplicate = 0, quarantined = 0, baseline = 0, late = 0 } = counts ?? {}
  const parts = [
    [counts?.new ?? 0, 'new'],
    [duplicate, 'known'],
    [quarantined, 'quarantined'],
    [baseline, 'older than the start bound'],
    [late, `late${formatLateness(state?.lateness)}`],
    [counts?.raised ?? 0, 'raised in severity'],
  ] as const
  const named = parts.filter(([count]) => count > 0).map((part) => part.join(' '))
  return `${fetched} fetched${named.length > 0 ? `: ${named.join(', ')}` : ''}`
}

function datedAheadLines({ terminal }: Context, report: FeedReport): string[] {
  const { state, counts } = report
  const untilMs = state && datedAheadMs(state)
  if (untilMs === undefined) return []
  const events = `events are dated ahead of now, up to ${formatUtcTime(untilMs)}`
  const ever = `${counts?.ahead ?? 0} came so since the feed began`
  return [`  ${terminal.paint('yellow', events)} (${ever}); ${formatAheadBound(report)}`]
}

/** How soon a new event is found that is dated ahead of now. */
function formatAheadBound(report: FeedReport): string {
  const { beyond, held, ignoresDates } = report.state?.scan ?? {}
  if (ignoresDates) return 'pages do not follow dates, so none is held'
  if (!beyond) return 'a new one is read with the next poll'
  const places = [...beyond.places, ...(held ? [held] : [])]
  const behind = places.some(({ limitMs }) => limitMs === undefined)
    ? 'new ones behind the last are read within two polls, a page at a time'
    : 'the last of them is not reached'
  return `${behind}; ${formatPass(beyond, report)}`
}

function formatPass(
  { retry, passMs = Infinity }: NonNullable<Scan['beyond']>,
  { state, bounds }: FeedReport,
): string {
  const wholeMs = retry ? Infinity : passMs
  const withinMs = bounds?.isMatched ? Math.min(wholeMs, bounds.soonMs) : wholeMs
  if (withinMs < Infinity) return `one between them within about ${formatDuration(withinMs)}`
  if (!retry) return 'all are being read for the first time'
  const isWaiting = retry.atMs > (state?.nowMs ?? 0)
  const from = isWaiting ? `at ${formatUtcTime(retry.atMs)}` : 'now'
  return `a page of them failed, and all are read again from the first ${from}`
}

function formatTimeOrNever(ms: number | undefined): string {
  return ms === undefined ? 'never' : formatUtcTime(ms)
}

function formatPause({ reason, sinceMs }: { reason: string; sinceMs: number }): string {
  return `paused since ${formatUtcTime(sinceMs)}: ${sanitize(reason)}`
}

function refusalLines({ terminal }: Context, { refused }: FeedState): string[] {
  if (!refused) return []
  const since = `stopped since ${formatUtcTime(refused.sinceMs)}`
  return [`  ${terminal.paint('red', `${since}: ${sanitize(refused.reason)}`)}`]
}

function formatUnreadable({ sinceMs, shown, unread, problem }: Unreadable): string {
  const page = `${unread} of ${shown} items of its last page`
  return `unreadable since ${formatUtcTime(sinceMs)}: ${page}, ${sanitize(problem, 200)}`
}

function quarantineLines({ terminal }: Context, { feed, quarantined }: FeedReport): string[] {
  if (quarantined === 0) return []
  const text = `${pluralize(quarantined, 'item')} in the quarantine, which nobody was told of`
  return [
    `  ${terminal.paint('yellow', text)}: tocsin items list --feed ${feed.name} --state quarantined`,
  ]
}

function formatLag(
  { terminal }: Context,
  { lagMs = 0, lagObjectiveMs, state }: FeedReport,
): string {
  const isBad = lagMs > lagObjectiveMs || state?.unreadable !== undefined
  const lag = `lag ${formatDuration(lagMs)}, objective ${formatDuration(lagObjectiveMs)}`
  return terminal.paint(isBad ? 'red' : 'green', lag)
}

function formatScan({ state }: FeedReport): string {
  if (state?.isRewound) return 'rewound: a new scan begins with the next poll'
  if (!state?.scan) return 'no scan yet'
  const { reason, startedAtMs, cursor } = state.scan
  const place = cursor === null ? 'at its beginning' : 'with a cursor'
  return `scan since ${formatUtcTime(startedAtMs)} (${reason.replaceAll('_', ' ')}), ${place}`
}

const latenessAges = {
  '1m': 'a minute',
  '10m': '10 min',
  '1h': 'an hour',
  '1d': 'a day',
  '7d': '7 days',
}

/** How late events were when they were found; shows whether the vendor publishes late. */
function formatLateness(lateness: FeedState['lateness'] = {}): string {
  const known = Object.entries(latenessAges).flatMap(([age, words]) => {
    const count = lateness[age] ?? 0
    return count > 0 ? [`${count} by up to ${words}`] : []
  })
  const longer = lateness['more'] ? [`${lateness['more']} by more`] : []
  const parts = [...known, ...longer]
  return parts.length > 0 ? ` (${parts.join(', ')})` : ''
}

function formatRescan(report: FeedReport): string {
  const { feed, state } = report
  if (feed.rescan === undefined) return 'rescans are switched off'
  const endedMs = state?.whole.lastCompletedMs
  const last =
    endedMs === undefined ? 'no rescan yet' : `last rescan ended ${formatUtcTime(endedMs)}`
  const running = findRunningRescan(state)
  const status = running ? `${last}, one runs since ${formatUtcTime(running.startedAtMs)}` : last
  return report.bounds ? `${status}; ${formatBounds(feed, report.bounds)}` : status
}
