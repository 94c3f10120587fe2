/** Which feed of each organization and tier is read next, and why, by what the replicas handed over last. */
import type { Config } from '../config/config.ts'
import type { FeedConfig } from '../feeds/config.ts'
import { feedId, loadLane } from '../feeds/lane-store.ts'
import {
  chooseNext,
  newPlace,
  pollFloor,
  rateOf,
  shareAt,
  type FeedPlace,
} from '../feeds/next-feed.ts'
import type { Organizations } from '../service/pacing/organizations.ts'
import { knownOrganizations } from './feed-report.ts'
import { redisNow, type OpenLedger } from './open-ledger.ts'
import { harmless, spanInWords } from './words.ts'

/** Why a feed is read next, or not yet. */
export interface FeedWhy {
  /** As the daemon would choose now. */
  isNext: boolean
  words: string
  place: FeedPlace
  eventsPerHour: number
  /** The part of the limit that feeds may use now. */
  share: number
}

export async function explainFeeds(
  ledger: OpenLedger,
  { accounts, feeds, limits }: Pick<Config, 'accounts' | 'feeds' | 'limits'>,
): Promise<ReadonlyMap<FeedConfig, FeedWhy>> {
  const nowMs = await redisNow(ledger)
  const organizations = await knownOrganizations(ledger, accounts)
  const lanes = new Map<string, FeedConfig[]>()
  for (const feed of feeds) {
    const { organization, tier } = organizations.laneOf(feed.account, feed.tier)
    const id = `${organization}.${tier}`
    lanes.set(id, [...(lanes.get(id) ?? []), feed])
  }
  const whys = new Map<FeedConfig, FeedWhy>()
  const floorMs = pollFloor(feeds.length, limits.pollsPerSecond)
  for (const polled of lanes.values()) {
    const about = { organizations, floorMs, nowMs }
    for (const [feed, why] of await explainLane(ledger, polled, about)) {
      whys.set(feed, why)
    }
  }
  return whys
}

async function explainLane(
  { redis, keys }: OpenLedger,
  feeds: readonly FeedConfig[],
  about: { organizations: Organizations; floorMs: number; nowMs: number },
): Promise<[FeedConfig, FeedWhy][]> {
  const { organizations, floorMs, nowMs } = about
  const [first] = feeds
  if (!first) return []
  const lane = organizations.laneOf(first.account, first.tier)
  const { state, places } = await loadLane(redis, keys, lane, { generation: undefined, nowMs })
  const share = shareAt(state.share, organizations.shareOf(lane), nowMs)
  const budget = { perSecond: organizations.limitOf(lane) * share, floorMs }
  const candidates = feeds.map((feed) => {
    const { everyMs, longestMs } = feed
    const place = places.get(feedId(feed)) ?? newPlace()
    return { config: feed, feed: { id: feedId(feed), everyMs, longestMs }, place }
  })
  const choice = chooseNext(candidates, state.fleet, budget, nowMs)
  return candidates.map(({ config, place }) => {
    const isNext = 'feed' in choice && choice.feed === feedId(config)
    const why = isNext ? choice.why : undefined
    const eventsPerHour = rateOf(place, state.fleet) * 3_600
    const words = whyInWords(place, { why, eventsPerHour, nowMs, everyMs: config.everyMs })
    return [config, { isNext, words, place, eventsPerHour, share }]
  })
}

const reasons = {
  overdue: 'it has waited longest, and for long enough',
  more: 'more pages wait',
  rate: 'most waits there, by its rate and its age',
} as const

function whyInWords(
  place: FeedPlace,
  about: {
    why: keyof typeof reasons | undefined
    eventsPerHour: number
    nowMs: number
    everyMs: number | undefined
  },
): string {
  const { why, eventsPerHour, nowMs, everyMs } = about
  const { readAtMs, wait, intervalMs } = place
  if (wait && wait.untilMs > nowMs) {
    const left = spanInWords(wait.untilMs - nowMs)
    return `left alone for ${left}: ${harmless(wait.why)}`
  }
  const next = why === undefined ? 'others come first' : `read next: ${reasons[why]}`
  if (readAtMs === undefined) return `${next}; not read to its end yet`
  const ago = `read ${spanInWords(Math.max(0, nowMs - readAtMs))} ago`
  if (everyMs !== undefined) return `${next}; ${ago}, every ${spanInWords(everyMs)}`
  const interval = intervalMs === undefined ? '' : `, lately every ${spanInWords(intervalMs)}`
  return `${next}; ${ago}${interval}, about ${eventsPerHour.toFixed(1)} new events an hour`
}
