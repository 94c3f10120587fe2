/** Warns of what is allowed but probably not meant. */
import type { FeedConfig } from '../feed-types/config.ts'
import { expectIntervals, type Outlook, minPollInterval } from '../feeds/next-feed.ts'
import type { Finding } from '../lib/config-fields.ts'
import { suggestion } from '../lib/errors.ts'
import { formatDuration } from '../lib/time-zone.ts'
import { isLoopback } from '../lib/web-address.ts'
import { describedTypes } from '../messages/families.ts'
import type { RouteConfig } from '../routing/config.ts'
import { sinkTypeOf } from '../sinks/sink-types.ts'
import type { AccountConfig, Tier } from '../upstream/config.ts'
import { linksOnlyToBase, redundantLinkHosts } from '../upstream/links.ts'
import { createOrganizations } from '../upstream/organizations.ts'
import type { Config } from './config.ts'
import { deadRuleWarnings } from './dead-rules.ts'

export function findWarnings(config: Config, nowMs: number): Finding[] {
  return [
    ...linkWarnings(config),
    ...feedWarnings(config),
    ...sinkWarnings(config),
    ...messageWarnings(config),
    ...unusedSinks(config),
    ...broadInhibitions(config),
    ...deadRuleWarnings(config, nowMs),
    ...unusedIntervals(config),
  ]
}

function linkWarnings({ accounts }: Config): Finding[] {
  return accounts.flatMap((account) => {
    const path = ['accounts', account.name, 'link_hosts']
    const useless = redundantLinkHosts(account).map((host) => ({
      path,
      problem: `${host} adds nothing: base_url or another entry covers it`,
      remedy: 'remove it',
    }))
    const host = urlHost(account.baseUrl)
    if (!linksOnlyToBase(account) || isLoopback(host)) return useless
    const problem = `links of its events are shown as text unless they lead to ${host}`
    const remedy = "write the host of the service's web application, such as [app.example.com]"
    return [...useless, { path, problem, remedy }]
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

function urlHost(url: string): string {
  return URL.parse(url)?.hostname ?? ''
}

function unusedSinks({ sinks, route, selfAlerts, canary }: Config): Finding[] {
  const selfAlertSinks = [
    ...(selfAlerts ? [selfAlerts.sink, ...(selfAlerts.fallback ? [selfAlerts.fallback] : [])] : []),
    ...(canary?.sinks ?? []),
  ]
  const routed = new Set([...listLiveSinks(route), ...selfAlertSinks])
  const fallbacks = sinks.flatMap(({ name, fallback }) => (routed.has(name) ? [fallback] : []))
  const live = new Set<string | undefined>([...routed, ...fallbacks])
  const named = new Set(listNodes(route).flatMap((node) => node.sinks ?? []))
  return sinks
    .filter(({ name }) => !live.has(name))
    .map(({ name }) => ({
      path: ['sinks', name],
      problem: `no ${named.has(name) ? 'live ' : ''}route names it, so nothing goes there`,
      remedy: 'name it in the sinks of a route, or remove it',
    }))
}

/** A shadow and the routes below it have none. */
function listLiveSinks(route: RouteConfig): string[] {
  if (route.mode === 'shadow') return []
  return [...(route.sinks ?? []), ...route.routes.flatMap(listLiveSinks)]
}

function listNodes(route: RouteConfig): RouteConfig[] {
  return [route, ...route.routes.flatMap(listNodes)]
}

function unusedIntervals({ timeIntervals, route }: Config): Finding[] {
  const used = new Set(listNodes(route).flatMap((node) => node.muteTimeIntervals))
  return Object.keys(timeIntervals)
    .filter((interval) => !used.has(interval))
    .map((interval) => ({
      path: ['time_intervals', interval],
      problem: 'no route names it, so it mutes nothing',
      remedy: 'name it in the mute_time_intervals of a route, or remove it',
    }))
}

/** Without `equal`, one event suppresses everything that a rule's targets match. */
function broadInhibitions({ inhibitRules }: Config): Finding[] {
  return inhibitRules.flatMap(({ equal }, index) => {
    if (equal.length > 0) return []
    const problem = 'one source suppresses every target, whatever it is about'
    const remedy = 'name in equal what both must have in common, such as [identifier]'
    return [{ path: ['inhibit_rules', index], problem, remedy }]
  })
}

/** Warns of feeds whose demands exceed their budget, and of settings probably not meant. */
function feedWarnings(config: Config): Finding[] {
  return [...budgetWarnings(config), ...objectiveWarnings(config)]
}

const tiers: Tier[] = ['search', 'basic']

/** Warns of feeds with intervals of their own that exceed what feeds may use of a tier. */
function budgetWarnings({ accounts, feeds }: Config): Finding[] {
  const byAccount = Map.groupBy(feeds, ({ account }) => account)
  return [...groupByOrganization(accounts).values()].flatMap((sharing) =>
    tiers.flatMap((tier) => {
      const polled = sharing
        .flatMap(({ name }) => byAccount.get(name) ?? [])
        .filter((feed) => feed.tier === tier)
      return tierWarnings(sharing, tier, polled)
    }),
  )
}

/** The accounts that share their limits. One whose organization is not stated counts alone. */
function groupByOrganization(accounts: readonly AccountConfig[]): Map<string, AccountConfig[]> {
  const organizations = createOrganizations(accounts)
  return Map.groupBy(accounts, ({ name, organizationId }) =>
    organizationId === undefined
      ? `account ${name}`
      : organizations.laneFor(name, 'basic').organization,
  )
}

/** `sharing`: accounts of one organization, of which the lowest limits count. */
function tierWarnings(
  sharing: readonly AccountConfig[],
  tier: Tier,
  polled: readonly FeedConfig[],
): Finding[] {
  const limit = Math.min(...sharing.map(({ limits }) => limits[tier]))
  const usable = limit * Math.min(...sharing.map(({ feedShare }) => feedShare))
  const perSecond = polled.reduce((sum, { everyMs = Infinity }) => sum + 1000 / everyMs, 0)
  if (perSecond <= usable) return []
  const whose = sharing.length > 1 ? 'the feeds of its organization' : 'its feeds'
  const demand = `${whose} ask for ${perSecond.toFixed(2)} requests per second`
  return [
    {
      path: ['accounts', sharing[0]?.name ?? '', 'limits', tier],
      problem: `${demand}, more than the ${Number(usable.toPrecision(2))} that feeds may use of the tier ${tier}`,
      remedy: 'raise every on the feeds, or the limit if the service allows it',
    },
  ]
}

/** The stated intervals of a lane are kept only if all of them fit, else none is. */
function objectiveWarnings(config: Config): Finding[] {
  return findOutlooks(config).flatMap((lane) => {
    if (lane.areStatedKept || lane.feeds.every(({ longestMs }) => longestMs === undefined))
      return []
    const needed = `the stated every and lag_objective of its feeds take ${lane.neededPerSecond.toFixed(2)} requests per second`
    const allowed = `more than the ${lane.perSecond.toFixed(2)} that feeds may use`
    const instead = `none of them is kept; each feed is read at the latest after ${formatDuration(lane.longestMs)}`
    return [
      {
        path: ['accounts', lane.account, 'limits', lane.tier],
        problem: `${needed}, ${allowed}: ${instead}`,
        remedy: 'remove every, or raise it, or the limit if the service allows it',
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
export type PollingConfig = Pick<Config, 'accounts' | 'feeds' | 'limits'>

/** `organizations`: those known by now; default: as the configuration states them. */
export function findOutlooks(
  { accounts, feeds, limits }: PollingConfig,
  organizations = createOrganizations(accounts),
): LaneOutlook[] {
  const lanes = Map.groupBy(feeds, (feed) => {
    const { organization, tier } = organizations.laneFor(feed.account, feed.tier)
    return `${organization}.${tier}`
  })
  const minIntervalMs = minPollInterval(feeds, limits.pollsPerSecond)
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
 * By feed name. If no objective is stated it is three times the interval: the stated one, or the
 * one that the limit allows if that is longer and the stated one is not kept.
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
