/** What the limits let expect of polling, by organization and tier, before anything was polled. */
import { leastObjectiveMs } from '../feeds/feed-config-parts.ts'
import type { FeedConfig } from '../feeds/config.ts'
import { expectIntervals, pollFloor, type Outlook } from '../feeds/next-feed.ts'
import type { Tier } from '../service/config.ts'
import { createOrganizations } from '../service/pacing/organizations.ts'
import type { Config } from './config.ts'

export interface LaneOutlook extends Outlook {
  tier: Tier
  /** An account of the organization; of those whose organization nobody knows yet, one of their server. */
  account: string
  feeds: FeedConfig[]
  /** Requests a second that these feeds may send. */
  perSecond: number
}

/** What polling is expected of. */
export type Polling = Pick<Config, 'accounts' | 'feeds' | 'limits'>

export function findOutlooks({ accounts, feeds, limits }: Polling): LaneOutlook[] {
  const organizations = createOrganizations(accounts)
  const lanes = new Map<string, FeedConfig[]>()
  for (const feed of feeds) {
    const { organization, tier } = organizations.laneOf(feed.account, feed.tier)
    const id = `${organization}.${tier}`
    lanes.set(id, [...(lanes.get(id) ?? []), feed])
  }
  const floorMs = pollFloor(feeds.length, limits.pollsPerSecond)
  return [...lanes.values()].flatMap((polled) => {
    const [{ account, tier } = {}] = polled
    if (account === undefined || tier === undefined) return []
    const lane = organizations.laneOf(account, tier)
    const perSecond = organizations.limitOf(lane) * organizations.shareOf(lane)
    const ruled = polled.map(({ name: id, everyMs, longestMs }) => ({ id, everyMs, longestMs }))
    return [
      {
        tier,
        account,
        feeds: polled,
        perSecond,
        ...expectIntervals(ruled, { perSecond, floorMs }),
      },
    ]
  })
}

/** The feeds with the objectives that follow from the limits where the operator states none. */
export function withObjectives(polling: Polling): FeedConfig[] {
  const objectives = new Map<FeedConfig, number>()
  for (const lane of findOutlooks(polling)) {
    const usualMs = Math.ceil(Math.max(leastObjectiveMs, 3 * lane.intervalMs))
    for (const feed of lane.feeds) objectives.set(feed, usualMs)
  }
  return polling.feeds.map((feed) => {
    const lagObjectiveMs = feed.lagObjectiveMs || (objectives.get(feed) ?? leastObjectiveMs)
    return { ...feed, lagObjectiveMs }
  })
}
