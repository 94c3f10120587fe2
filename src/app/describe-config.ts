import type { RouteConfig } from '../routing/config.ts'
import type { Shared } from './shared.ts'

/** Says in the metrics what is configured; every label set that can be named starts at 0. */
export function describeConfig({ config, metrics, clock }: Shared, version: string): void {
  metrics.startAtZero({
    feeds: config.feeds.map(({ name }) => name),
    sinks: config.sinks.map(({ name }) => name),
    accounts: config.accounts.map(({ name }) => name),
    routes: routeNames(config.route),
  })
  metrics.buildInfo.set({ version }, 1)
  metrics.configLastReloadSuccessful.set(1)
  metrics.configLastReloadSuccessTimestampSeconds.set(clock.now() / 1000)
  for (const { name, everyMs, lagObjectiveMs, sweep, audit } of config.feeds) {
    if (audit) metrics.auditIntervalSeconds.set({ feed: name }, audit.everyMs / 1000)
    if (sweep) metrics.feedSweepIntervalSeconds.set({ feed: name }, sweep.everyMs / 1000)
    metrics.feedPollIntervalSeconds.set({ feed: name }, everyMs / 1000)
    metrics.feedLagObjectiveSeconds.set({ feed: name }, lagObjectiveMs / 1000)
  }
  for (const sink of config.canary?.sinks ?? []) {
    metrics.canaryIntervalSeconds.set({ sink }, (config.canary?.everyMs ?? 0) / 1000)
  }
}

function routeNames(route: RouteConfig): string[] {
  return [route.name, ...route.routes.flatMap(routeNames)]
}
