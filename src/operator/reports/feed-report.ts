/** The state of each feed, read from the ledger without changing it. */
import type { Config } from '../../config/config.ts'
import { expectPolling, type PollingConfig } from '../../config/warnings.ts'
import type { FeedConfig } from '../../feeds/types/config.ts'
import { readNotes } from '../../feeds/rescan.ts'
import {
  createRescanBudget,
  rescanBounds,
  type RescanPlan,
  wholeEveryMs,
} from '../../feeds/rescan-plan.ts'
import { type FeedCounts, readAccounting } from '../../store/accounts.ts'
import {
  countQuarantined,
  datedAheadMs,
  feedLagMs,
  type FeedState,
  peekFeed,
} from '../../store/feed-state.ts'
import { formatDuration } from '../../lib/time-zone.ts'
import { type Column, formatIsoTime, standstillJson, troubleJson } from './columns.ts'
import { readOrganization } from '../../upstream/access/organizations.ts'
import { UpstreamError } from '../../upstream/error.ts'
import {
  createOrganizations,
  type Lane,
  type Organizations,
} from '../../upstream/access/organizations.ts'
import { redisNow } from '../../redis/scripts.ts'
import type { OpenLedgers } from '../open-ledgers.ts'

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
  /** How soon late events are found at most, and how often all is rescanned; undefined: nothing is. */
  bounds: RescanBounds | undefined
}

interface RescanBounds {
  soonMs: number
  wholeMs: number
  everyMs: number
  isMatched: boolean
}

export async function reportFeeds(
  store: OpenLedgers,
  config: PollingConfig,
): Promise<FeedReport[]> {
  const organizations = await readKnownOrganizations(store, config.accounts)
  const expected = expectPolling(config, organizations)
  const nowMs = await redisNow(store)
  const accountings = new Map(
    await Promise.all(
      store.ledgers.map(
        async (ledger) =>
          [
            ledger.account,
            {
              ledger,
              ...(await readAccounting(ledger)),
              quarantine: await countQuarantined(ledger),
            },
          ] as const,
      ),
    ),
  )
  const reports = await Promise.all(
    config.feeds.map(async (feed) => {
      const account = accountings.get(feed.account)
      const stored = account && (await peekFeed(account.ledger, feed.name, nowMs))
      const state = stored && { ...stored, ...withoutOldRescans(feed) }
      const lagMs = state && feedLagMs(state)
      const quarantined = account?.quarantine[feed.name]?.open ?? 0
      const { lagObjectiveMs = Infinity } = expected.get(feed.name) ?? {}
      const counts = account?.feeds[feed.name]
      return { feed, state, lagMs, lagObjectiveMs, counts, quarantined }
    }),
  )
  return withBounds(reports, config.feeds, organizations)
}

/** What failed before rescans were switched off is over. */
function withoutOldRescans(feed: FeedConfig): Partial<FeedState> {
  return feed.rescan ? {} : { rescanTrouble: undefined }
}

function laneId({ organization, tier }: Lane): string {
  return `${organization} ${tier}`
}

/** The organizations of the accounts, as far as the replicas have found them out. */
async function readKnownOrganizations(
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

/** Adds the bounds by planning rescans as the daemon does, from what all feeds of a tier have shown. */
function withBounds<Report extends Pick<FeedReport, 'feed' | 'state'>>(
  reports: readonly Report[],
  feeds: readonly FeedConfig[],
  organizations: Organizations,
): (Report & Pick<FeedReport, 'bounds'>)[] {
  const laneFor = ({ account, tier }: FeedConfig): Lane => organizations.laneFor(account, tier)
  const budget = createRescanBudget(
    feeds,
    (feed) => laneId(laneFor(feed)),
    (feed) => organizations.limitFor(laneFor(feed)) * organizations.shareFor(laneFor(feed)),
  )
  const planRescan = ({ feed, state }: Pick<FeedReport, 'feed' | 'state'>): RescanPlan =>
    budget.plan(feed, { perWeek: state?.rescans.perWeek, isMatched: isMatched(state) })
  reports.forEach(planRescan) // each plan knows of all feeds only then
  return reports.map((report) => {
    const matchedNowMs = isMatched(report.state) ? 0 : undefined
    const context = { plan: planRescan(report), matchClockMs: matchedNowMs }
    const everyMs = wholeEveryMs(report.feed, context)
    const bounds = rescanBounds(report.feed, context)
    return {
      ...report,
      bounds: bounds && {
        ...bounds,
        isMatched: isMatched(report.state),
        everyMs,
      },
    }
  })
}

/**
 * Whether the feed is rescanned by match time: what was read so stays noted when the service turns
 * out not to filter, so the last scan of the recent past decides.
 */
function isMatched(state: FeedState | undefined): boolean {
  if (!state?.scan || !state.recent.scan) return false
  const isNoted = state.rescans.matched?.fingerprint === state.scan.fingerprint
  return isNoted && readNotes(state.recent.scan).kind === 'matched'
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
