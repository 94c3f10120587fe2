/** What feeds ask for that their budget does not carry, or that is probably not meant. */
import type { FeedConfig, PairDedupe } from '../feeds/config.ts'
import { pollFloor } from '../feeds/next-feed.ts'
import {
  describeLoad,
  isFrequent,
  planRescans,
  rescanShare,
  usualPerWeek,
} from '../feeds/rescan-plan.ts'
import type { Finding } from '../runtime/config-section.ts'
import { spanInWords } from '../runtime/span-in-words.ts'
import type { AccountConfig, Tier } from '../service/config.ts'
import type { Config } from './config.ts'
import { findOutlooks } from './lane-outlook.ts'

export function feedWarnings(config: Config): Finding[] {
  return [
    ...budgetWarnings(config),
    ...objectiveWarnings(config),
    ...pairWarnings(config),
    ...legacyWarnings(config),
  ]
}

const tiers: Tier[] = ['search', 'basic']

function budgetWarnings({ accounts, feeds, limits }: Config): Finding[] {
  const floorMs = pollFloor(feeds.length, limits.pollsPerSecond)
  const byAccount = Map.groupBy(feeds, ({ account }) => account)
  return accounts.flatMap((account) =>
    tiers.flatMap((tier) => {
      const polled = (byAccount.get(account.name) ?? []).filter((feed) => feed.tier === tier)
      return tierWarnings({ account, tier, polled, floorMs })
    }),
  )
}

interface PolledTier {
  account: AccountConfig
  tier: Tier
  /** The feeds of the account whose pages count against the tier. */
  polled: FeedConfig[]
  /** No feed is read again sooner. */
  floorMs: number
}

/** Intervals that operators state are kept where all of them fit, and none where they do not. */
function objectiveWarnings(config: Config): Finding[] {
  return findOutlooks(config).flatMap((lane) => {
    if (lane.areStatedKept || lane.feeds.every(({ longestMs }) => longestMs === undefined))
      return []
    const needed = `the stated every and lag_objective of its feeds take ${lane.neededPerSecond.toFixed(2)} requests per second`
    const given = `more than the ${lane.perSecond.toFixed(2)} that feeds may use`
    const instead = `none of them is kept; each feed is read at the latest after ${spanInWords(lane.longestMs)}`
    return [
      {
        path: ['accounts', lane.account, 'limits', lane.tier],
        problem: `${needed}, ${given}: ${instead}`,
        remedy: 'remove every, or raise it, or the limit if the service allows it',
      },
    ]
  })
}

/** Each poll is at least one request; sweeps get what the polls leave of what feeds may use, and a tenth of it. */
function tierWarnings({ account, tier, polled, floorMs }: PolledTier): Finding[] {
  const path = ['accounts', account.name, 'limits', tier]
  const usable = account.limits[tier] * account.feedShare
  const perSecond = polled.reduce((sum, { everyMs = Infinity }) => sum + 1000 / everyMs, 0)
  if (perSecond > usable) {
    const asked = `its feeds ask for ${perSecond.toFixed(2)} requests per second`
    return [
      {
        path,
        problem: `${asked}, more than the ${Number(usable.toPrecision(2))} that feeds may use of the tier ${tier}`,
        remedy: 'raise every on the feeds, or the limit if the service allows it',
      },
    ]
  }
  const ruled = polled.filter(({ everyMs }) => everyMs === undefined)
  const left = usable - perSecond - (1000 * ruled.length) / floorMs
  const problem = sweepProblem(polled, Math.max(left, rescanShare * usable))
  if (problem === undefined) return rareRescans(polled, { path, usable })
  const remedy = 'raise every on the feeds or in their sweep, or the limit if the service allows it'
  return [{ path, problem, remedy }]
}

const dayMs = 86_400_000

/** The whole window of so many feeds takes more than a day, where the rate limit decides how often it is read. */
function rareRescans(
  polled: FeedConfig[],
  { path, usable }: { path: string[]; usable: number },
): Finding[] {
  const shared = polled.filter((feed) => feed.sweep?.everyMs === undefined && isFrequent(feed))
  const loads = shared.filter(({ sweep }) => sweep).map(describeLoad)
  const { wholeEveryMs } = planRescans(loads, usable)
  if (wholeEveryMs <= dayMs) return []
  const volume = `at ${usualPerWeek} events a week and feed`
  const problem = `${volume}, the whole sweep.back of its ${loads.length} feeds is read again only every ${spanInWords(wholeEveryMs)}: what is late by days is found as late as that`
  return [
    { path, problem, remedy: 'shorten sweep.back, or raise the limit if the service allows it' },
  ]
}

/** A hundred events: the least that a sweep's window is expected to hold. */
const leastPages = 10

/** All sweeps of a tier whose interval is fixed have to end within the shortest of their intervals. */
function sweepProblem(polled: FeedConfig[], leftPerSecond: number): string | undefined {
  const everyMs = polled.flatMap(({ sweep }) =>
    sweep?.everyMs === undefined ? [] : [sweep.everyMs],
  )
  if (everyMs.length === 0) return undefined
  const shortestMs = Math.min(...everyMs)
  const needed = leastPages * everyMs.length
  const carried = (leftPerSecond * shortestMs) / 1000
  if (carried >= needed) return undefined
  const anHour = 3_600_000 / shortestMs
  const given = `its sweeps get ${Math.floor(carried * anHour)} requests an hour beside the polls`
  const wanted = `${Math.ceil(needed * anHour)} are needed for ${leastPages} pages each`
  return `${given}, ${wanted} every ${spanInWords(shortestMs)}`
}

function legacyWarnings({ feeds }: Config): Finding[] {
  return feeds.flatMap(({ name, type }) =>
    type === 'legacy_search'
      ? [
          {
            path: ['feeds', name, 'type'],
            problem: 'the service has deprecated the legacy search and may switch it off',
            remedy: 'write type: event_search, unless its query cannot be written there',
          },
        ]
      : [],
  )
}

/** Without the identity, whoever has the same password or domain counts as the same leak. */
function pairWarnings({ feeds }: Config): Finding[] {
  return feeds.flatMap((feed) => {
    const dedupe: PairDedupe | undefined = 'dedupe' in feed ? feed.dedupe : undefined
    if (!dedupe || dedupe.isSentAgain || dedupe.by.includes('identity')) return []
    return [
      {
        path: ['feeds', feed.name, 'dedupe', 'by'],
        problem: `of all people who share the ${dedupe.by.join(' and the ')}, only the first is told`,
        remedy: 'add identity, or write repeat: send',
      },
    ]
  })
}
