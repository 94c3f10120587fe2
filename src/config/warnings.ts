/** Warns of what is allowed, and about which an operator will do something. */
import type { FeedConfig } from '../feeds/types/config.ts'
import { expectIntervals, type Outlook, minPollInterval } from '../feeds/lanes/next-feed.ts'
import type { Finding } from '../lib/config/config-fields.ts'
import { suggestion } from '../lib/errors.ts'
import { isLoopback } from '../lib/config/web-address.ts'
import { describedTypes } from '../messages/types/families.ts'
import type { RouteConfig } from '../routing/config.ts'
import { sinkTypeOf } from '../sinks/sink-types.ts'
import type { Tier } from '../upstream/config.ts'
import { linksOnlyToBase } from '../upstream/links.ts'
import { createOrganizations } from '../upstream/access/organizations.ts'
import type { Config } from './config.ts'
import { deadRuleWarnings } from './dead-rules.ts'

export function findWarnings(config: Config): Finding[] {
  return [
    ...linkWarnings(config),
    ...budgetWarnings(config),
    ...redisWarnings(config),
    ...sinkWarnings(config),
    ...messageWarnings(config),
    ...unusedSinks(config),
    ...deadRuleWarnings(config),
  ]
}

function linkWarnings({ accounts }: Config): Finding[] {
  return accounts.flatMap((account) => {
    const path = ['accounts', account.name, 'link_hosts']
    const host = URL.parse(account.baseUrl)?.hostname ?? ''
    if (!linksOnlyToBase(account) || isLoopback(host)) return []
    const problem = `links of its events are shown as text unless they lead to ${host}`
    const remedy = "write the host of the service's web application, such as [app.example.com]"
    return [{ path, problem, remedy }]
  })
}

function sinkWarnings({ sinks }: Config): Finding[] {
  return sinks.flatMap((sink) => {
    const found = sinkTypeOf(sink).warn?.(sink) ?? []
    return found.map(({ key, ...finding }) => ({
      ...finding,
      path: ['sinks', sink.name, ...(key === undefined ? [] : [key])],
    }))
  })
}

/** A word that upstream does not use yet is allowed: new types appear unannounced. */
function messageWarnings({ messages }: Config): Finding[] {
  const sections = { next_steps: messages.nextSteps, runbook_urls: messages.runbookUrls }
  return Object.entries(sections).flatMap(([section, values]) =>
    Object.keys(values)
      .filter((type) => !describedTypes.includes(type))
      .map((type) => ({
        path: ['messages', section, type],
        problem: 'no event type that is known',
        remedy: suggestion(type, describedTypes, 'known types'),
      })),
  )
}

/** An ended trial is often left: a shadow and the routes below it send nothing. */
function unusedSinks({ sinks, route, selfAlerts, canary }: Config): Finding[] {
  const used = new Set([
    ...listLiveSinks(route),
    ...sinks.map(({ fallback }) => fallback),
    selfAlerts?.sink,
    selfAlerts?.fallback,
    ...(canary?.sinks ?? []),
  ])
  return sinks
    .filter(({ name }) => !used.has(name))
    .map(({ name }) => ({
      path: ['sinks', name],
      problem: 'no live route names it, so nothing goes there',
      remedy: 'name it in the sinks of a route, or remove it',
    }))
}

function listLiveSinks(route: RouteConfig): string[] {
  if (route.mode === 'shadow') return []
  return [...(route.sinks ?? []), ...route.routes.flatMap(listLiveSinks)]
}

/** A name without a dot is that of a neighbouring container, as in docker-compose.yml. */
function redisWarnings({ redis }: Config): Finding[] {
  const url = URL.parse(readUrl(redis) ?? '')
  if (url?.protocol !== 'redis:' || isLoopback(url.hostname) || !/[.:]/.test(url.hostname)) {
    return []
  }
  if (url.password === '' && redis.password === undefined) return []
  const problem = `the password goes to ${url.hostname} in clear, without TLS`
  return [{ path: ['redis', 'url'], problem, remedy: 'write rediss:// instead of redis://' }]
}

/** A file may have disappeared since it was checked. */
function readUrl({ url }: Config['redis']): string | undefined {
  try {
    return url?.reveal()
  } catch {
    return undefined
  }
}

/**
 * The stated intervals of a lane are kept only if all of them fit, else none is. Accounts whose
 * organizations are not known yet share a lane only until they are.
 */
function budgetWarnings(config: Config): Finding[] {
  const known = new Set(
    config.accounts.flatMap(({ name, organizationId }) => (organizationId ? [name] : [])),
  )
  return findOutlooks(config).flatMap(({ account, tier, feeds, ...lane }) => {
    const isOne = known.has(account) || new Set(feeds.map((feed) => feed.account)).size === 1
    const areStated = feeds.some(({ everyMs, longestMs }) => (everyMs ?? longestMs) !== undefined)
    if (lane.areStatedKept || !areStated || !isOne) return []
    const needed = `the feeds of the tier ${tier} ask for ${lane.neededPerSecond.toFixed(2)} requests per second`
    const allowed = `more than the ${lane.perSecond.toFixed(2)} that they may use`
    return [
      {
        path: ['accounts', account, 'limits', tier],
        problem: `${needed}, ${allowed}: no stated interval is kept`,
        remedy: 'raise every on the feeds, or the limit if the service allows it',
      },
    ]
  })
}

/** The polling that the limits allow, by organization and tier. */
export interface LaneOutlook extends Outlook {
  tier: Tier
  /** An account of the organization; if that is unknown, one of the accounts of that server. */
  account: string
  feeds: FeedConfig[]
  /** Requests per second that these feeds may send. */
  perSecond: number
}

/** The parts of the configuration that polling depends on. */
export type PollingConfig = Pick<Config, 'accounts' | 'feeds'>

/** `organizations`: those known by now; default: as the configuration states them. */
export function findOutlooks(
  { accounts, feeds }: PollingConfig,
  organizations = createOrganizations(accounts),
): LaneOutlook[] {
  const lanes = Map.groupBy(feeds, (feed) => {
    const { organization, tier } = organizations.laneFor(feed.account, feed.tier)
    return `${organization}.${tier}`
  })
  const minIntervalMs = minPollInterval(feeds)
  return [...lanes.values()].flatMap((polled) => {
    const [{ account, tier } = {}] = polled
    if (account === undefined || tier === undefined) return []
    const lane = organizations.laneFor(account, tier)
    const perSecond = organizations.limitFor(lane) * organizations.shareFor(lane)
    const ruled = polled.map(({ name: id, everyMs, longestMs }) => ({ id, everyMs, longestMs }))
    return [
      {
        tier,
        account,
        feeds: polled,
        perSecond,
        ...expectIntervals(ruled, { perSecond, minIntervalMs }),
      },
    ]
  })
}

/** The interval that an operator stated, as far as it is kept; ms. */
function keptInterval(
  { areStatedKept, minIntervalMs }: Pick<LaneOutlook, 'areStatedKept' | 'minIntervalMs'>,
  longestMs: number | undefined,
): number | undefined {
  if (longestMs === undefined || !areStatedKept) return undefined
  return Math.max(minIntervalMs, longestMs)
}

/** How often a feed is expected to be read, and how far it may fall behind. */
export interface ExpectedPolling {
  intervalMs: number
  lagObjectiveMs: number
}

/** No default of `lag_objective` is shorter. */
const minObjectiveMs = 5 * 60_000

/**
 * By feed name. If no objective is stated it is three times the interval. That is the stated one,
 * or the one that the limit allows, if that is longer and the stated one is not kept.
 */
export function expectPolling(
  polling: PollingConfig,
  organizations = createOrganizations(polling.accounts),
): ReadonlyMap<string, ExpectedPolling> {
  const expected = new Map<string, ExpectedPolling>()
  for (const lane of findOutlooks(polling, organizations)) {
    for (const { name, everyMs, longestMs, lagObjectiveMs: statedMs } of lane.feeds) {
      const keptMs = everyMs ?? keptInterval(lane, longestMs)
      const intervalMs = everyMs ?? Math.min(lane.intervalMs, keptMs ?? Infinity)
      const promisedMs = keptMs ?? Math.max(longestMs ?? 0, lane.intervalMs)
      const usualMs = Math.ceil(Math.max(minObjectiveMs, 3 * promisedMs))
      expected.set(name, { intervalMs, lagObjectiveMs: statedMs ?? usualMs })
    }
  }
  return expected
}
