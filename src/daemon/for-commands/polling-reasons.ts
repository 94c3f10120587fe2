/** Why each feed is read next or not yet, as the daemon would choose now. */
import type { Config } from '../../config/config.ts'
import type { FeedConfig } from '../../feed-types/config.ts'
import { feedId, loadLane } from '../../feeds/lane-store.ts'
import {
  chooseNext,
  currentShare,
  eventRate,
  type FeedPlace,
  minPollInterval,
  newFeedPlace,
} from '../../feeds/next-feed.ts'
import { redisNow } from '../../redis/scripts.ts'
import type { Organizations } from '../../upstream/organizations.ts'
import { type OpenLedgers, readKnownOrganizations } from './feed-report.ts'

/** Why a feed is polled next or not yet, from what the replicas recorded last. */
export interface PollReason {
  /** The daemon would choose this feed now. */
  isNext: boolean
  /** Why it would. */
  why: 'overdue' | 'more' | 'rate' | undefined
  /** No feed of the lane is due. */
  isIdle: boolean
  nowMs: number
  everyMs: number | undefined
  place: FeedPlace
  eventsPerHour: number
  /** Share of the rate limit that feeds may use now. */
  share: number
}

export async function explainPolling(
  store: OpenLedgers,
  { accounts, feeds, limits }: Pick<Config, 'accounts' | 'feeds' | 'limits'>,
): Promise<ReadonlyMap<FeedConfig, PollReason>> {
  const nowMs = await redisNow(store)
  const organizations = await readKnownOrganizations(store, accounts)
  const lanes = new Map<string, FeedConfig[]>()
  for (const feed of feeds) {
    const { organization, tier } = organizations.laneFor(feed.account, feed.tier)
    const id = `${organization}.${tier}`
    lanes.set(id, [...(lanes.get(id) ?? []), feed])
  }
  const whys = new Map<FeedConfig, PollReason>()
  const minIntervalMs = minPollInterval(feeds, limits.pollsPerSecond)
  for (const laneFeeds of lanes.values()) {
    const lookup = { organizations, minIntervalMs, nowMs }
    for (const [feed, why] of await explainLane(store, laneFeeds, lookup)) {
      whys.set(feed, why)
    }
  }
  return whys
}

async function explainLane(
  { redis, keys }: OpenLedgers,
  feeds: readonly FeedConfig[],
  lookup: { organizations: Organizations; minIntervalMs: number; nowMs: number },
): Promise<[FeedConfig, PollReason][]> {
  const { organizations, minIntervalMs, nowMs } = lookup
  const [first] = feeds
  if (!first) return []
  const lane = organizations.laneFor(first.account, first.tier)
  const { state, places } = await loadLane(redis, keys, lane, { generation: undefined, nowMs })
  const share = currentShare(state.share, organizations.shareFor(lane), nowMs)
  const budget = { perSecond: organizations.limitFor(lane) * share, minIntervalMs }
  const candidates = feeds.map((feed) => {
    const { everyMs, longestMs } = feed
    const place = places.get(feedId(feed)) ?? newFeedPlace()
    return { config: feed, feed: { id: feedId(feed), everyMs, longestMs }, place }
  })
  const choice = chooseNext(candidates, state.fleet, budget, nowMs)
  return candidates.map(({ config, place }) => {
    const isNext = 'feed' in choice && choice.feed === feedId(config)
    const why = isNext ? choice.why : undefined
    const eventsPerHour = eventRate(place, state.fleet) * 3_600
    const isIdle = 'atMs' in choice
    const { everyMs } = config
    return [config, { isNext, why, isIdle, nowMs, everyMs, place, eventsPerHour, share }]
  })
}
