/** The `check` command: validates the configuration and summarizes what it does. */

import { Command } from 'commander'
import { type Config, ConfigError, formatMistake } from '../../config/config.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { findOutlooks, keptInterval, type LaneOutlook } from '../../config/warnings.ts'
import { systemClock } from '../../lib/clock.ts'
import type { RouteConfig } from '../../routing/config.ts'
import { type SinkConfig, sinkTypeOf } from '../../sinks/sink-types.ts'
import { describeTemplates, listTemplates } from '../../sinks/template-config.ts'
import type { CallOptions } from '../../upstream/call.ts'
import type { LiveFindings } from './check-live.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import { type FeedReport, withBounds } from '../../daemon/for-commands/feed-report.ts'
import { feedQueryJson, formatBounds, describeFeed } from '../feeds/feed-text.ts'
import { pluralize, formatDuration } from '../terminal.ts'

interface CheckOptions extends CommonOptions {
  live?: true
}

export function checkCommand(context: Context): Command {
  return addCommonOptions(new Command('check'))
    .argument('[file]', 'the configuration; as --config')
    .option('--live', 'also ask each service whether it knows the words of filters')
    .action(async (file: string | undefined, options: CheckOptions) => {
      const loaded = load(context, file ?? options.config, options)
      if (loaded) await check(context, loaded, options)
    })
}

/** Returns undefined when its mistakes were printed as JSON. Throws ConfigError for text output. */
function load(
  context: Context,
  file: string | undefined,
  options: CheckOptions,
): LoadedConfig | undefined {
  try {
    return loadConfigFile(context, file)
  } catch (error) {
    if (!(error instanceof ConfigError) || options.output === 'text') throw error
    print(context, options, { json: { ok: false, mistakes: error.mistakes }, lines: () => [] })
    context.exitCode = 2
    return undefined
  }
}

/** Sets exit code 2 when the API would refuse a feed. */
async function check(context: Context, loaded: LoadedConfig, options: CheckOptions): Promise<void> {
  const { config, warnings } = loaded
  const printSummary = (live?: Omit<LiveFindings, 'failures'>): void =>
    print(context, options, {
      json: {
        ok: live === undefined || live.mistakes.length === 0,
        warnings,
        ...summaryJson(config),
        ...(live && { live }),
      },
      lines: () => summaryLines(loaded, context),
    })
  const isForPeople = options.output === 'text'
  if (isForPeople || !options.live) printSummary()
  if (!options.live) return
  const live = await askServices(context, config)
  if (!isForPeople) printSummary(live)
  const { mistakes, remarks } = live
  for (const line of [...mistakes, ...remarks]) context.terminal.printError(line)
  if (mistakes.length > 0) context.exitCode = 2
  else if (isForPeople && remarks.length === 0) {
    context.terminal.print('the services know every word of the filters')
  }
}

async function askServices(
  context: Context,
  config: Config,
): Promise<Omit<LiveFindings, 'failures'>> {
  const { checkLive } = await import('./check-live.ts')
  const { withStore: withLedger } = await import('../open/open-store.ts')
  const { withUpstream: withService } = await import('../open/open-upstream.ts')
  const callOptions = (): CallOptions => ({
    slot: { kind: 'command', name: 'check', dueSinceMs: systemClock.now() },
    signal: context.stop,
  })
  const { mistakes, remarks, failures } = await withLedger(config, (store) =>
    withService(config, store, (upstream) =>
      checkLive(config, { client: (account) => upstream.client(account), callOptions }),
    ),
  )
  return { mistakes, remarks: [...remarks, ...failures] }
}

function summaryJson(config: Config): Record<string, unknown> {
  const { accounts, sinks, route, selfAlerts, canary } = config
  return {
    accounts: accounts.map(({ name, baseUrl, limits }) => ({ name, base_url: baseUrl, limits })),
    feeds: boundedFeeds(config).map(({ feed, bounds, lane }) => ({
      name: feed.name,
      account: feed.account,
      type: feed.type,
      ...feedQueryJson(feed),
      every_seconds: resolveIntervals({ feed, bounds, lane }).intervalMs / 1000,
      longest_seconds: resolveIntervals({ feed, bounds, lane }).longestMs / 1000,
      detail: feed.detail,
      found_within_seconds: bounds ? bounds.soonMs / 1000 : null,
      whole_within_seconds: bounds ? bounds.wholeMs / 1000 : null,
    })),
    sinks: sinks.map((sink) => ({
      name: sink.name,
      type: sink.type,
      digest: readDigest(sink) ?? null,
      fallback: sink.fallback ?? null,
      templates: listTemplates(sink.templates),
    })),
    self_alerts: selfAlerts
      ? { sink: selfAlerts.sink, fallback: selfAlerts.fallback ?? null }
      : null,
    canary: canary ? { every_seconds: canary.everyMs / 1000, sinks: canary.sinks } : null,
    routes: flattenRoutes(route).map(({ depth: _depth, onMute, ...entry }) => ({
      ...entry,
      on_mute: onMute,
    })),
  }
}

function summaryLines({ config, warnings }: LoadedConfig, { terminal }: Context): string[] {
  const { accounts, sinks, route } = config
  const heading = (text: string): string => terminal.paint('bold', text)
  return [
    ...warnings.map(
      (warning) => `${terminal.paint('yellow', 'warning')} ${formatMistake(warning)}`,
    ),
    `${terminal.paint('green', 'good')}: ${formatCounts(config)}`,
    heading('accounts'),
    ...accounts.map(
      ({ name, baseUrl, limits }) =>
        `  ${name}: ${baseUrl}, search ${limits.search}/s, basic ${limits.basic}/s`,
    ),
    heading('feeds'),
    ...boundedFeeds(config).flatMap(feedLines),
    heading('sinks'),
    ...sinks.map(
      (sink) =>
        `  ${sink.name}: ${sinkTypeOf(sink).describe(sink)}${describeTemplates(sink.templates)}${formatExtras(sink)}`,
    ),
    heading('routes'),
    ...flattenRoutes(route).map(routeLine),
    heading('of its own'),
    ...selfAlertLines(config),
  ]
}

type BoundedFeed = Pick<FeedReport, 'feed' | 'bounds'> & { lane: LaneOutlook | undefined }

/**
 * Computes the feeds' bounds without Redis: assumes typical traffic and no API that filters by
 * match time.
 */
function boundedFeeds(config: Config): BoundedFeed[] {
  const outlooks = findOutlooks(config)
  const lanes = new Map(outlooks.flatMap((lane) => lane.feeds.map((feed) => [feed, lane] as const)))
  return withBounds(
    config.feeds.map((feed) => ({ feed, state: undefined, lane: lanes.get(feed) })),
    config,
  )
}

/** How often a feed is polled: as configured, or as the rate limit allows. */
function resolveIntervals({ feed, lane }: BoundedFeed): { intervalMs: number; longestMs: number } {
  const { everyMs, longestMs } = feed
  if (everyMs !== undefined || !lane) {
    return { intervalMs: everyMs ?? 0, longestMs: everyMs ?? 0 }
  }
  const statedMs = keptInterval(lane, longestMs) ?? Infinity
  return {
    intervalMs: Math.min(lane.intervalMs, statedMs),
    longestMs: Math.min(lane.longestMs, statedMs),
  }
}

function formatPolling(bounded: BoundedFeed): string {
  const { intervalMs, longestMs } = resolveIntervals(bounded)
  if (bounded.feed.everyMs !== undefined) return `every ${formatDuration(intervalMs)}`
  return `read about every ${formatDuration(intervalMs)}, after ${formatDuration(longestMs)} at the latest`
}

function feedLines(bounded: BoundedFeed): string[] {
  const { feed, bounds } = bounded
  const { name, account, detail } = feed
  const requests = 'one or two requests of the basic tier each'
  return [
    `  ${name}: ${describeFeed(feed)}, account ${account}, ${formatPolling(bounded)}`,
    ...(bounds ? [`    ${formatBounds(feed, bounds)}`] : []),
    ...(detail.length > 0 ? [`    full events of ${detail.join(', ')}: ${requests}`] : []),
  ]
}

/** Lines about the self-alerts and the canary. */
function selfAlertLines({ selfAlerts, canary }: Config): string[] {
  const otherwise =
    selfAlerts?.fallback === undefined
      ? ''
      : `, or ${selfAlerts.fallback} while that one takes nothing`
  return [
    selfAlerts ? `  self-alerts: ${selfAlerts.sink}${otherwise}` : '  self-alerts: none',
    canary
      ? `  canary: every ${formatDuration(canary.everyMs)} to ${canary.sinks.join(', ')}${canary.ping ? ', then a ping' : ''}`
      : '  canary: none',
  ]
}

function formatCounts({ accounts, feeds, sinks, route }: Config): string {
  return [
    pluralize(accounts.length, 'account'),
    pluralize(feeds.length, 'feed'),
    pluralize(sinks.length, 'sink'),
    pluralize(flattenRoutes(route).length, 'route'),
  ].join(', ')
}

function readDigest(sink: SinkConfig): { schedule: string; timezone: string } | undefined {
  const { digest } = sink
  return digest && { schedule: digest.cron, timezone: digest.timeZone }
}

function formatExtras(sink: SinkConfig): string {
  const digest = readDigest(sink)
  const digestText = digest ? `, digest at "${digest.schedule}" ${digest.timezone}` : ''
  const { fallback, fallbackAfterMs } = sink
  const after = formatDuration(fallbackAfterMs)
  return `${digestText}${fallback === undefined ? '' : `, after ${after} without success to ${fallback}`}`
}

interface RouteEntry {
  name: string
  depth: number
  matchers: string[]
  /** Its own sinks, or those that it inherits. */
  sinks: string[]
  continue: boolean
  /** Names of time intervals. */
  mutes: string[]
  onMute: 'hold' | 'drop'
}

function flattenRoutes(route: RouteConfig, depth = 0, above: string[] = []): RouteEntry[] {
  const sinks = route.sinks ?? above
  const matchers = route.matchers.map(({ text }) => text)
  const { name, muteTimeIntervals: mutes, onMute } = route
  const entry = { name, depth, matchers, sinks, continue: route.continue, mutes, onMute }
  return [entry, ...route.routes.flatMap((child) => flattenRoutes(child, depth + 1, sinks))]
}

function routeLine({ name, depth, matchers, sinks, mutes, ...route }: RouteEntry): string {
  const unmatched = depth === 0 ? 'the rest' : 'every event'
  const when = matchers.length === 0 ? unmatched : matchers.join(' and ')
  const goesOn = route.continue ? ', and the search goes on' : ''
  const muteEffect = route.onMute === 'drop' ? 'dropped' : 'held'
  const muted = mutes.length === 0 ? '' : `, ${muteEffect} during ${mutes.join(', ')}`
  return `${'  '.repeat(depth + 1)}${name}: ${when} → ${sinks.join(', ')}${muted}${goesOn}`
}
