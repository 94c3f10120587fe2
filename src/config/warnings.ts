/** What is allowed and yet probably not meant. */
import type { RouteConfig } from '../routing/config.ts'
import { unusualSeverity } from '../routing/matcher.ts'
import type { Finding } from '../runtime/config-section.ts'
import { isLoopback } from '../runtime/web-address.ts'
import type { Tier } from '../service/config.ts'
import type { Config } from './config.ts'

export function findWarnings(config: Config): Finding[] {
  return [
    ...budgetWarnings(config),
    ...sinkWarnings(config),
    ...unusedSinks(config),
    ...unreachableRoutes(config.route, ['route']),
    ...unknownSeverities(config.route, ['route']),
  ]
}

const tiers: Tier[] = ['search', 'basic']

/** Each poll is at least one request. */
function budgetWarnings({ accounts, feeds }: Config): Finding[] {
  return accounts.flatMap(({ name, limits }) =>
    tiers.flatMap((tier) => {
      const polled = feeds.filter((feed) => feed.account === name && feed.tier === tier)
      const perSecond = polled.reduce((sum, { everyMs }) => sum + 1000 / everyMs, 0)
      if (perSecond <= limits[tier]) return []
      const asked = `its feeds ask for ${perSecond.toFixed(2)} requests per second`
      return [
        {
          path: ['accounts', name, 'limits', tier],
          problem: `${asked}, more than the ${limits[tier]} of the tier ${tier}`,
          remedy: 'raise every on the feeds, or the limit if the service allows it',
        },
      ]
    }),
  )
}

function sinkWarnings({ sinks }: Config): Finding[] {
  return sinks.flatMap((sink) => {
    const path = ['sinks', sink.name]
    if (sink.type === 'webhook' && sink.secrets.length === 0) {
      const remedy = 'give a secret, so that the receiver can tell who sends'
      return [{ path, problem: 'its requests are not signed', remedy }]
    }
    const host = sink.type === 'email' && sink.tls === 'off' ? hostOf(sink.smtp.reveal()) : ''
    if (host === '' || isLoopback(host)) return []
    const remedy = 'remove the line if the server speaks TLS'
    return [{ path: [...path, 'tls'], problem: 'mail and passwords go in clear', remedy }]
  })
}

function hostOf(url: string): string {
  return URL.parse(url)?.hostname ?? ''
}

function unusedSinks({ sinks, route }: Config): Finding[] {
  const used = new Set(sinksOf(route))
  return sinks
    .filter(({ name }) => !used.has(name))
    .map(({ name }) => ({
      path: ['sinks', name],
      problem: 'no route names it, so nothing goes there',
      remedy: 'name it in the sinks of a route, or remove it',
    }))
}

function sinksOf(route: RouteConfig): string[] {
  return [...(route.sinks ?? []), ...route.routes.flatMap(sinksOf)]
}

function unknownSeverities(route: RouteConfig, path: (string | number)[]): Finding[] {
  const here = route.matchers.flatMap((matcher, index) => {
    const refusal = unusualSeverity(matcher)
    return refusal ? [{ path: [...path, 'matchers', index], ...refusal }] : []
  })
  const below = route.routes.flatMap((child, index) =>
    unknownSeverities(child, [...path, 'routes', index]),
  )
  return [...here, ...below]
}

/** A route that stands after one which takes at least the same events and ends the search. */
function unreachableRoutes(parent: RouteConfig, path: (string | number)[]): Finding[] {
  return parent.routes.flatMap((route, index) => {
    const place = [...path, 'routes', index]
    const taker = parent.routes.slice(0, index).find((earlier) => takesAll(earlier, route))
    const below = unreachableRoutes(route, place)
    if (taker === undefined) return below
    const problem = `never matches: the route ${taker.name} before it takes all of its events`
    return [
      { path: place, problem, remedy: `give ${taker.name} continue: true, or move it` },
      ...below,
    ]
  })
}

function takesAll(earlier: RouteConfig, later: RouteConfig): boolean {
  if (earlier.continue) return false
  const wanted = new Set(later.matchers.map(sameMatcher))
  return earlier.matchers.every((matcher) => wanted.has(sameMatcher(matcher)))
}

function sameMatcher({ name, operator, value }: RouteConfig['matchers'][number]): string {
  return JSON.stringify([name, operator, value])
}
