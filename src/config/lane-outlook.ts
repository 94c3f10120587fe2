/** What the limits let expect of polling, by organization and tier. */
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

/** `organizations`: as far as they are known by now; left out: as the configuration states them. */
export function findOutlooks(
  { accounts, feeds, limits }: Polling,
  organizations = createOrganizations(accounts),
): LaneOutlook[] {
  const lanes = Map.groupBy(feeds, (feed) => {
    const { organization, tier } = organizations.laneOf(feed.account, feed.tier)
    return `${organization}.${tier}`
  })
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

/** How often a feed is probably read, and how far it may fall behind. */
export interface ExpectedPolling {
  intervalMs: number
  lagObjectiveMs: number
}

/** No default of `lag_objective` is shorter. */
const leastObjectiveMs = 5 * 60_000

/**
 * By the names of feeds. Where an operator states no objective it is three times the interval: the one that is
 * stated, as far as it is kept, else what the limit allows.
 */
export function expectPolling(
  polling: Polling,
  organizations = createOrganizations(polling.accounts),
): ReadonlyMap<string, ExpectedPolling> {
  const expected = new Map<string, ExpectedPolling>()
  for (const lane of findOutlooks(polling, organizations)) {
    for (const { name, everyMs, longestMs, lagObjectiveMs: statedMs } of lane.feeds) {
      const keptMs = everyMs ?? (lane.areStatedKept ? longestMs : undefined)
      const intervalMs = everyMs ?? Math.min(lane.intervalMs, keptMs ?? Infinity)
      const usualMs = Math.ceil(Math.max(leastObjectiveMs, 3 * (keptMs ?? lane.intervalMs)))
      expected.set(name, { intervalMs, lagObjectiveMs: statedMs ?? usualMs })
    }
  }
  return expected
}
