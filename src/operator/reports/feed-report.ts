/** The state of each feed, as lists show it. */
import type { Config } from '../../config/config.ts'
import type { FeedConfig } from '../../feeds/types/config.ts'
import { formatDuration } from '../../lib/time-zone.ts'
import type { FeedCounts } from '../../store/accounts.ts'
import { datedAheadMs, feedLagMs, type FeedState } from '../../store/feed-state.ts'
import { readOrganization } from '../../upstream/access/organizations.ts'
import { createOrganizations, type Organizations } from '../../upstream/access/organizations.ts'
import { UpstreamError } from '../../upstream/error.ts'
import type { FleetState } from '../fleet-state.ts'
import type { OpenLedgers } from '../open-ledgers.ts'
import { type Column, formatIsoTime, standstillJson, troubleJson } from './columns.ts'

export interface FeedReport {
  feed: FeedConfig
  /** undefined: no daemon has opened the feed yet. */
  state: FeedState | undefined
  /** As the metric reports it. */
  lagMs: number | undefined
  lagObjectiveMs: number
  counts: FeedCounts | undefined
  /** Quarantined items that this feed showed last. */
  quarantined: number
}

export function reportFeeds(
  feeds: readonly FeedConfig[],
  { accounts }: FleetState,
  lagObjectiveMs: (feed: string) => number,
): FeedReport[] {
  const configured = new Map(accounts.map((account) => [account.name, account]))
  return feeds.map((feed) => {
    const account = configured.get(feed.account)
    const stored = account?.feeds.get(feed.name)
    // what failed before rescans were switched off is over
    const state = stored && (feed.rescan ? stored : { ...stored, rescanTrouble: undefined })
    return {
      feed,
      state,
      lagMs: state && feedLagMs(state),
      lagObjectiveMs: lagObjectiveMs(feed.name),
      counts: account?.accounting.feeds[feed.name],
      quarantined: account?.quarantine[feed.name] ?? 0,
    }
  })
}

/** The organizations of the accounts, as far as the replicas have found them out. */
export async function readKnownOrganizations(
  { redis, keys }: OpenLedgers,
  accounts: Config['accounts'],
): Promise<Organizations> {
  const organizations = createOrganizations(accounts)
  for (const account of accounts) {
    try {
      organizations.learn(account.name, await readOrganization(redis, keys, account))
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error // its key cannot be read
    }
  }
  return organizations
}

export const feedColumns: readonly Column<FeedReport>[] = [
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
      return { identifier_group: feed.identifierGroup, identifier: feed.identifier }
    case 'credentials':
      return { identifier: feed.identifier }
    case 'cookies':
      return { domain: feed.domain, names: feed.names, paths: feed.paths }
    case 'credential_search':
    case 'event_search':
      return feed.query
  }
}

/** `events 1042`, `credential_search domain example.com`. */
function describeFeed(feed: FeedConfig): string {
  const terms = Object.values(queryOf(feed)).filter((term) =>
    ['string', 'number'].includes(typeof term),
  )
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

function rescanJson({ feed, state }: FeedReport): object | null {
  if (feed.rescan === undefined) return null
  const { whole } = state ?? {}
  const running = whole?.isDone ? undefined : whole?.scan
  return {
    every_seconds: feed.rescan.everyMs === undefined ? null : feed.rescan.everyMs / 1000,
    last_completed: formatIsoTime(whole?.lastCompletedMs),
    running_since: formatIsoTime(running?.startedAtMs),
  }
}

function unreadableJson({ state }: FeedReport): object | null {
  if (!state?.unreadable) return null
  const { sinceMs, ...unreadable } = state.unreadable
  return { since: formatIsoTime(sinceMs), ...unreadable }
}
