/** What is allowed and yet probably not meant. */
import type { RouteConfig } from '../routing/config.ts'
import type { Finding } from '../runtime/config-section.ts'
import { isLoopback } from '../runtime/web-address.ts'
import { linksToBaseAlone, uselessLinkHosts } from '../service/service-links.ts'
import type { Config } from './config.ts'
import { deadRuleWarnings } from './dead-rules.ts'
import { feedWarnings } from './feed-warnings.ts'

export function findWarnings(config: Config, nowMs: number): Finding[] {
  return [
    ...linkWarnings(config),
    ...feedWarnings(config),
    ...sinkWarnings(config),
    ...unusedSinks(config),
    ...sweepingInhibitions(config),
    ...deadRuleWarnings(config, nowMs),
    ...unusedIntervals(config),
  ]
}

function linkWarnings({ accounts }: Config): Finding[] {
  return accounts.flatMap((account) => {
    const path = ['accounts', account.name, 'link_hosts']
    const useless = uselessLinkHosts(account).map((host) => ({
      path,
      problem: `${host} adds nothing: base_url or another entry covers it`,
      remedy: 'remove it',
    }))
    const host = hostOf(account.baseUrl)
    if (!linksToBaseAlone(account) || isLoopback(host)) return useless
    const problem = `links of its events are shown as text unless they lead to ${host}`
    const remedy = "write the host of the service's web application, such as [app.example.com]"
    return [...useless, { path, problem, remedy }]
  })
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

function unusedSinks({ sinks, route, notices, canary }: Config): Finding[] {
  const own = [
    ...(notices ? [notices.sink, ...(notices.or ? [notices.or] : [])] : []),
    ...(canary?.sinks ?? []),
  ]
  const routed = new Set([...liveSinksOf(route), ...own])
  const fallbacks = sinks.flatMap(({ name, fallback }) => (routed.has(name) ? [fallback] : []))
  const live = new Set<string | undefined>([...routed, ...fallbacks])
  const named = new Set(nodesOf(route).flatMap((node) => node.sinks ?? []))
  return sinks
    .filter(({ name }) => !live.has(name))
    .map(({ name }) => ({
      path: ['sinks', name],
      problem: `no ${named.has(name) ? 'live ' : ''}route names it, so nothing goes there`,
      remedy: 'name it in the sinks of a route, or remove it',
    }))
}

/** Of a shadow and all below it, none. */
function liveSinksOf(route: RouteConfig): string[] {
  if (route.stage === 'shadow') return []
  return [...(route.sinks ?? []), ...route.routes.flatMap(liveSinksOf)]
}

function nodesOf(route: RouteConfig): RouteConfig[] {
  return [route, ...route.routes.flatMap(nodesOf)]
}

function unusedIntervals({ timeIntervals, route }: Config): Finding[] {
  const used = new Set(nodesOf(route).flatMap((node) => node.muteTimeIntervals))
  return Object.keys(timeIntervals)
    .filter((interval) => !used.has(interval))
    .map((interval) => ({
      path: ['time_intervals', interval],
      problem: 'no route names it, so it mutes nothing',
      remedy: 'name it in the mute_time_intervals of a route, or remove it',
    }))
}

/** Without `equal` one event keeps back everything that a rule's targets match. */
function sweepingInhibitions({ inhibitRules }: Config): Finding[] {
  return inhibitRules.flatMap(({ equal }, index) => {
    if (equal.length > 0) return []
    const problem = 'one source keeps back every target, whatever it is about'
    const remedy = 'name in equal what both must have in common, such as [identifier]'
    return [{ path: ['inhibit_rules', index], problem, remedy }]
  })
}
