/** `feeds list`: how each feed is read, and what is wrong with it. */
import type { FeedReport } from '../../daemon/for-commands/feed-report.ts'
import type { Problem } from '../../daemon/for-commands/problems.ts'
import type { FeedConfig } from '../../feed-types/config.ts'
import { datedAheadMs } from '../../store/feed-state.ts'
import type { Column } from '../columns.ts'
import type { Context } from '../context.ts'
import { type ListOptions, printList, readListed } from '../list.ts'
import { formatDuration, formatIsoTime, standstillJson, troubleJson } from '../terminal.ts'

export async function listFeeds(
  context: Context,
  name: string | undefined,
  options: ListOptions,
): Promise<void> {
  const { feeds, problems } = await readListed(context, options)
  printList(context, options, name, {
    thing: 'feed',
    rows: feeds,
    nameOf: ({ feed }) => feed.name,
    columns,
    problems: [...problems, ...feeds.flatMap(({ feed }) => ofAccount(feed, problems))],
  })
}

/** What keeps the whole account from being read, as a problem of the feed. */
function ofAccount({ name, account }: FeedConfig, problems: readonly Problem[]): Problem[] {
  return problems
    .filter(({ check, subject, stops }) => check === 'account' && subject === account && stops)
    .map((one) => ({
      ...one,
      check: 'feed',
      subject: name,
      detail: `account ${account}: ${one.detail}`,
    }))
}

const columns: readonly Column<FeedReport>[] = [
  { key: 'feed', title: 'FEED', json: ({ feed }) => feed.name },
  { key: 'account', title: 'ACCOUNT', json: ({ feed }) => feed.account },
  { key: 'type', json: ({ feed }) => feed.type },
  {
    key: 'query',
    title: 'READS',
    json: ({ feed }) => queryOf(feed),
    text: ({ feed }) => describeFeed(feed),
  },
  {
    key: 'lag_seconds',
    title: 'LAG',
    json: ({ lagMs }) => (lagMs === undefined ? null : lagMs / 1000),
    text: ({ lagMs }) => (lagMs === undefined ? 'not read yet' : formatDuration(lagMs)),
  },
  {
    key: 'lag_objective_seconds',
    title: 'OBJECTIVE',
    json: ({ lagObjectiveMs }) => lagObjectiveMs / 1000,
    text: ({ lagObjectiveMs }) => formatDuration(lagObjectiveMs),
  },
  { key: 'paused', json: ({ state }) => standstillJson(state?.paused) },
  { key: 'refused', json: ({ state }) => standstillJson(state?.refused) },
  { key: 'trouble', json: ({ state }) => troubleJson(state?.trouble) },
  { key: 'rescan_trouble', json: ({ state }) => troubleJson(state?.rescanTrouble) },
  { key: 'last_success', json: ({ state }) => formatIsoTime(state?.lastSuccessMs) },
  { key: 'last_caught_up', json: ({ state }) => formatIsoTime(state?.lastCaughtUpMs) },
  { key: 'newest_event', json: ({ state }) => formatIsoTime(state?.newestMs) },
  { key: 'dated_ahead_until', json: ({ state }) => formatIsoTime(state && datedAheadMs(state)) },
  { key: 'start_bound', json: ({ state }) => formatIsoTime(state?.startBoundMs) },
  { key: 'is_backfilling', json: ({ state }) => state?.isBackfilling ?? false },
  { key: 'is_rewound', json: ({ state }) => state?.isRewound ?? false },
  { key: 'scan', json: scanJson },
  { key: 'rescan', json: rescanJson },
  { key: 'lateness', json: ({ state }) => state?.lateness ?? {} },
  { key: 'unreadable', json: unreadableJson },
  {
    key: 'counts',
    title: 'NEW',
    json: ({ counts }) => counts ?? null,
    text: ({ counts }) => String(counts?.new ?? 0),
  },
  { key: 'quarantined', title: 'QUARANTINED', json: ({ quarantined }) => quarantined },
]

/** What a feed reads, under the keys of the configuration. */
function queryOf(feed: FeedConfig): Record<string, unknown> {
  switch (feed.type) {
    case 'events':
      return { identifier_group: feed.identifierGroup }
    case 'identifier_events':
    case 'credentials':
      return { identifier: feed.identifier }
    case 'cookies':
      return { domain: feed.domain, names: feed.names, paths: feed.paths }
    case 'credential_search':
    case 'event_search':
      return feed.query
    case 'tenant_events':
    case 'tenant_credentials':
      return {}
  }
}

/** `events 1042`, `credential_search domain example.com`. */
function describeFeed(feed: FeedConfig): string {
  const terms = Object.values(queryOf(feed)).filter((term) => typeof term !== 'object')
  return [feed.type, ...terms].join(' ')
}

function scanJson({ state }: FeedReport): object | null {
  if (!state?.scan) return null
  const { reason, startedAtMs, cursor } = state.scan
  return {
    reason,
    started_at: formatIsoTime(startedAtMs),
    has_cursor: cursor !== null,
  }
}

function rescanJson({ feed, state, bounds }: FeedReport): object | null {
  if (feed.rescan === undefined) return null
  const { whole } = state ?? {}
  const running = whole?.isDone ? undefined : whole?.scan
  return {
    every_seconds: feed.rescan.everyMs === undefined ? null : feed.rescan.everyMs / 1000,
    last_completed: formatIsoTime(whole?.lastCompletedMs),
    running_since: formatIsoTime(running?.startedAtMs),
    by_match_time: bounds?.isMatched ?? false,
    found_within_seconds: bounds ? Math.round(bounds.soonMs / 1000) : null,
    whole_within_seconds: bounds ? Math.round(bounds.wholeMs / 1000) : null,
  }
}

function unreadableJson({ state }: FeedReport): object | null {
  if (!state?.unreadable) return null
  const { sinceMs, ...unreadable } = state.unreadable
  return { since: formatIsoTime(sinceMs), ...unreadable }
}
