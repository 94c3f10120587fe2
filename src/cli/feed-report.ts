/** How far each feed is, read from the ledger without touching it. */
import type { Config } from '../config/config.ts'
import { expectPolling, type Polling } from '../config/warnings.ts'
import { leftBooks } from '../daemon/context.ts'
import { ownFeed } from '../event.ts'
import type { FeedConfig } from '../feed-types/config.ts'
import { createRescanBudget, rescanBounds, type RescanPlan } from '../feeds/rescan-plan.ts'
import { type FeedAccount, readAccounting } from '../store/accounts.ts'
import { countQuarantined, feedLagMs, type FeedState, peekFeed } from '../store/feed-state.ts'
import { readOrganization } from '../upstream/capabilities.ts'
import { ServiceError } from '../upstream/error.ts'
import { createOrganizations, type Lane, type Organizations } from '../upstream/organizations.ts'
import { redisNow } from '../redis/scripts.ts'
import { type OpenLedger } from './open-ledger.ts'

export interface FeedReport {
  feed: FeedConfig
  /** undefined: nobody has looked at it yet. */
  state: FeedState | undefined
  /** As the metric has it. */
  lagMs: number | undefined
  lagObjectiveMs: number
  counts: FeedAccount | undefined
  /** Items in the quarantine that it showed last. */
  quarantined: number
  /** How late finds are found at most; undefined: nothing is read again. */
  bounds: { soonMs: number; wholeMs: number; isMatched: boolean } | undefined
}

/** A feed of an account that left the configuration: nothing more is read there. */
export interface LeftFeed {
  name: string
  account: string
  state: FeedState | undefined
  counts: FeedAccount
}

export async function reportLeftFeeds(ledger: OpenLedger, config: Config): Promise<LeftFeed[]> {
  const nowMs = await redisNow(ledger)
  const feeds: LeftFeed[] = []
  for (const book of leftBooks({ ...ledger, config })) {
    const accounting = await readAccounting(book)
    for (const [name, counts] of Object.entries(accounting.feeds)) {
      if (name === ownFeed) continue
      feeds.push({ name, account: book.account, state: await peekFeed(book, name, nowMs), counts })
    }
  }
  return feeds
}

export async function reportFeeds(ledger: OpenLedger, config: Polling): Promise<FeedReport[]> {
  const organizations = await knownOrganizations(ledger, config.accounts)
  const expected = expectPolling(config, organizations)
  const nowMs = await redisNow(ledger)
  const accountings = new Map(
    await Promise.all(
      ledger.books.map(
        async (book) =>
          [
            book.account,
            { book, ...(await readAccounting(book)), quarantine: await countQuarantined(book) },
          ] as const,
      ),
    ),
  )
  const reports = await Promise.all(
    config.feeds.map(async (feed) => {
      const account = accountings.get(feed.account)
      const state = account && (await peekFeed(account.book, feed.name, nowMs))
      const lagMs = state && feedLagMs(state, nowMs)
      const quarantined = account?.quarantine[feed.name]?.open ?? 0
      const { lagObjectiveMs = Infinity } = expected.get(feed.name) ?? {}
      const counts = account?.feeds[feed.name]
      return { feed, state, lagMs, lagObjectiveMs, counts, quarantined }
    }),
  )
  return withBounds(reports, config, organizations)
}

/** Accounts and their organizations, as far as the replicas found them out. */
export async function knownOrganizations(
  { redis, keys }: OpenLedger,
  accounts: Config['accounts'],
): Promise<Organizations> {
  const organizations = createOrganizations(accounts)
  for (const account of accounts) {
    try {
      organizations.learn(account.name, await readOrganization(redis, keys, account))
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error // its key cannot be read
    }
  }
  return organizations
}

/** As the daemon plans its rescans, by what all feeds of a tier were seen to show. */
export function withBounds<Report extends Pick<FeedReport, 'feed' | 'state'>>(
  reports: readonly Report[],
  { accounts, feeds }: Pick<Config, 'accounts' | 'feeds'>,
  organizations = createOrganizations(accounts),
): (Report & Pick<FeedReport, 'bounds'>)[] {
  const laneOf = ({ account, tier }: FeedConfig): Lane => organizations.laneOf(account, tier)
  const budget = createRescanBudget(
    feeds,
    (feed) => `${laneOf(feed).organization} ${feed.tier}`,
    (feed) => organizations.limitOf(laneOf(feed)) * organizations.shareOf(laneOf(feed)),
  )
  const planned = ({ feed, state }: Pick<FeedReport, 'feed' | 'state'>): RescanPlan =>
    budget.plan(feed, { perWeek: state?.rescans.perWeek, isMatched: isMatched(state) })
  reports.forEach(planned) // each plan knows of all feeds only then
  return reports.map((report) => {
    const matchedNowMs = isMatched(report.state) ? 0 : undefined
    const bounds = rescanBounds(report.feed, { plan: planned(report), matchedNowMs })
    return { ...report, bounds: bounds && { ...bounds, isMatched: isMatched(report.state) } }
  })
}

function isMatched(state: FeedState | undefined): boolean {
  return state?.walk !== undefined && state.rescans.matched?.fingerprint === state.walk.fingerprint
}
