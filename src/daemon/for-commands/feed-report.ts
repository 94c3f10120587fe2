/** The state of each feed, read from the ledger without changing it. */
import type { Config } from '../../config/config.ts'
import { expectPolling, type PollingConfig } from '../../config/warnings.ts'
import type { EngineContext } from '../context.ts'
import type { FeedConfig } from '../../feed-types/config.ts'
import { readShare } from '../../feeds/lane-store.ts'
import { currentShare } from '../../feeds/next-feed.ts'
import { readNotes } from '../../feeds/rescan.ts'
import {
  createRescanBudget,
  rescanBounds,
  type RescanPlan,
  wholeEveryMs,
} from '../../feeds/rescan-plan.ts'
import { type FeedCounts, readAccounting } from '../../store/accounts.ts'
import { countQuarantined, feedLagMs, type FeedState, peekFeed } from '../../store/feed-state.ts'
import { readOrganization } from '../../upstream/capabilities.ts'
import { UpstreamError } from '../../upstream/error.ts'
import { createOrganizations, type Lane, type Organizations } from '../../upstream/organizations.ts'
import { redisNow } from '../../redis/scripts.ts'

/** The ledgers that a command has opened. */
export type OpenLedgers = Pick<EngineContext, 'redis' | 'keys' | 'ledgers'>

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
  const shareFor = await readShares(store, config.feeds, { organizations, nowMs })
  return withBounds(reports, config.feeds, organizations, shareFor)
}

/** What failed before rescans were switched off is over. */
function withoutOldRescans(feed: FeedConfig): Partial<FeedState> {
  return feed.rescan ? {} : { rescanTrouble: undefined }
}

/** The share of each lane that is in force: less than the configured one after a 429. */
async function readShares(
  { redis, keys }: OpenLedgers,
  feeds: readonly FeedConfig[],
  { organizations, nowMs }: { organizations: Organizations; nowMs: number },
): Promise<(lane: Lane) => number> {
  const lanes = feeds.map(({ account, tier }) => organizations.laneFor(account, tier))
  const byId = new Map(lanes.map((lane) => [laneId(lane), lane]))
  const entries = [...byId].map(async ([id, lane]) => {
    const share = await readShare(redis, keys, lane)
    return [id, currentShare(share, organizations.shareFor(lane), nowMs)] as const
  })
  const shares = new Map(await Promise.all(entries))
  return (lane) => shares.get(laneId(lane)) ?? organizations.shareFor(lane)
}

function laneId({ organization, tier }: Lane): string {
  return `${organization} ${tier}`
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

/** Adds the bounds by planning rescans as the daemon does, from what all feeds of a tier have shown. */
function withBounds<Report extends Pick<FeedReport, 'feed' | 'state'>>(
  reports: readonly Report[],
  feeds: readonly FeedConfig[],
  organizations: Organizations,
  shareFor: (lane: Lane) => number,
): (Report & Pick<FeedReport, 'bounds'>)[] {
  const laneFor = ({ account, tier }: FeedConfig): Lane => organizations.laneFor(account, tier)
  const budget = createRescanBudget(
    feeds,
    (feed) => laneId(laneFor(feed)),
    (feed) => organizations.limitFor(laneFor(feed)) * shareFor(laneFor(feed)),
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
