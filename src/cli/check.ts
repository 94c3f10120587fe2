import { Command } from 'commander'
import { type Config, ConfigError, formatMistake, type SinkConfig } from '../config/config.ts'
import type { LoadedConfig } from '../config/load.ts'
import { findOutlooks, keptInterval, type LaneOutlook } from '../config/warnings.ts'
import { systemClock } from '../lib/clock.ts'
import type { RouteConfig } from '../routing/config.ts'
import type { Asked } from '../upstream/resources/operation.ts'
import type { LiveFindings } from './check-live.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from './context.ts'
import { type FeedReport, withBounds } from './feed-report.ts'
import { askedJson, boundsInWords, feedInWords } from './feed-words.ts'
import { counted, spanInWords } from './terminal.ts'

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

/** undefined: its mistakes were printed for a machine. Throws ConfigError for people. */
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

/** Exit code 2 where a service would refuse a feed. */
async function check(context: Context, loaded: LoadedConfig, options: CheckOptions): Promise<void> {
  const { config, warnings } = loaded
  const say = (live?: LiveFindings): void =>
    print(context, options, {
      json: {
        ok: live === undefined || live.mistakes.length === 0,
        warnings,
        ...summaryOf(config),
        ...(live && { live }),
      },
      lines: () => linesOf(loaded, context),
    })
  const isForPeople = options.output === 'text'
  if (isForPeople || !options.live) say()
  if (!options.live) return
  const live = await askServices(context, config)
  if (!isForPeople) say(live)
  const { mistakes, remarks } = live
  for (const line of [...mistakes, ...remarks]) context.terminal.complain(line)
  if (mistakes.length > 0) context.exitCode = 2
  else if (isForPeople && remarks.length === 0) {
    context.terminal.print('the services know every word of the filters')
  }
}

async function askServices(context: Context, config: Config): Promise<LiveFindings> {
  const { checkLive } = await import('./check-live.ts')
  const { withLedger } = await import('./open-ledger.ts')
  const { withService } = await import('./open-service.ts')
  const asked = (): Asked => ({
    turn: { kind: 'command', name: 'check', dueSinceMs: systemClock.now() },
    signal: context.stop,
  })
  return withLedger(config, (ledger) =>
    withService(config, ledger, (service) =>
      checkLive(config, { client: (account) => service.client(account), asked }),
    ),
  )
}

function summaryOf(config: Config): Record<string, unknown> {
  const { accounts, sinks, route, notices, canary } = config
  return {
    accounts: accounts.map(({ name, baseUrl, limits }) => ({ name, base_url: baseUrl, limits })),
    feeds: boundedFeeds(config).map(({ feed, bounds, lane }) => ({
      name: feed.name,
      account: feed.account,
      type: feed.type,
      ...askedJson(feed),
      every_seconds: intervalsOf({ feed, bounds, lane }).intervalMs / 1000,
      longest_seconds: intervalsOf({ feed, bounds, lane }).longestMs / 1000,
      detail: feed.detail,
      found_within_seconds: bounds ? bounds.soonMs / 1000 : null,
      whole_within_seconds: bounds ? bounds.wholeMs / 1000 : null,
    })),
    sinks: sinks.map((sink) => ({
      name: sink.name,
      type: sink.type,
      digest: digestOf(sink) ?? null,
      fallback: sink.fallback ?? null,
    })),
    self_alerts: notices ? { sink: notices.sink, or: notices.or ?? null } : null,
    canary: canary ? { every_seconds: canary.everyMs / 1000, sinks: canary.sinks } : null,
    routes: routesOf(route).map(({ depth: _depth, onMute, ...entry }) => ({
      ...entry,
      on_mute: onMute,
    })),
  }
}

function linesOf({ config, warnings }: LoadedConfig, { terminal }: Context): string[] {
  const { accounts, sinks, route } = config
  const heading = (text: string): string => terminal.paint('bold', text)
  return [
    ...warnings.map(
      (warning) => `${terminal.paint('yellow', 'warning')} ${formatMistake(warning)}`,
    ),
    `${terminal.paint('green', 'good')}: ${countsOf(config)}`,
    heading('accounts'),
    ...accounts.map(
      ({ name, baseUrl, limits }) =>
        `  ${name}: ${baseUrl}, search ${limits.search}/s, basic ${limits.basic}/s`,
    ),
    heading('feeds'),
    ...boundedFeeds(config).flatMap(feedLines),
    heading('sinks'),
    ...sinks.map((sink) => `  ${sink.name}: ${describeSink(sink)}${extrasOf(sink)}`),
    heading('routes'),
    ...routesOf(route).map(routeLine),
    heading('of its own'),
    ...ownLines(config),
  ]
}

type BoundedFeed = Pick<FeedReport, 'feed' | 'bounds'> & { lane: LaneOutlook | undefined }

/** As if each feed showed what most do, and no service filtered by match time: only Redis knows better. */
function boundedFeeds(config: Config): BoundedFeed[] {
  const outlooks = findOutlooks(config)
  const lanes = new Map(outlooks.flatMap((lane) => lane.feeds.map((feed) => [feed, lane] as const)))
  return withBounds(
    config.feeds.map((feed) => ({ feed, state: undefined, lane: lanes.get(feed) })),
    config,
  )
}

/** How often a feed is read: as often as it says, or as the limit allows. */
function intervalsOf({ feed, lane }: BoundedFeed): { intervalMs: number; longestMs: number } {
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

function pollsInWords(bounded: BoundedFeed): string {
  const { intervalMs, longestMs } = intervalsOf(bounded)
  if (bounded.feed.everyMs !== undefined) return `every ${spanInWords(intervalMs)}`
  return `read about every ${spanInWords(intervalMs)}, after ${spanInWords(longestMs)} at the latest`
}

function feedLines(bounded: BoundedFeed): string[] {
  const { feed, bounds } = bounded
  const { name, account, detail } = feed
  const requests = 'one or two requests of the basic tier each'
  return [
    `  ${name}: ${feedInWords(feed)}, account ${account}, ${pollsInWords(bounded)}`,
    ...(bounds ? [`    ${boundsInWords(feed, bounds)}`] : []),
    ...(detail.length > 0 ? [`    full events of ${detail.join(', ')}: ${requests}`] : []),
  ]
}

/** What Tocsin says of itself: trouble to its operators, and test events. */
function ownLines({ notices, canary }: Config): string[] {
  const otherwise =
    notices?.or === undefined ? '' : `, or ${notices.or} while that one takes nothing`
  return [
    notices ? `  self-alerts: ${notices.sink}${otherwise}` : '  self-alerts: none',
    canary
      ? `  canary: every ${spanInWords(canary.everyMs)} to ${canary.sinks.join(', ')}${canary.ping ? ', then a ping' : ''}`
      : '  canary: none',
  ]
}

function countsOf({ accounts, feeds, sinks, route }: Config): string {
  return [
    counted(accounts.length, 'account'),
    counted(feeds.length, 'feed'),
    counted(sinks.length, 'sink'),
    counted(routesOf(route).length, 'route'),
  ].join(', ')
}

function describeSink(sink: SinkConfig): string {
  switch (sink.type) {
    case 'slack':
      return 'Slack'
    case 'email':
      return `e-mail to ${sink.to.join(', ')}`
    case 'webhook': {
      const signed = sink.secrets.length > 0 ? 'signed' : 'unsigned'
      return `webhook, ${signed}${sink.batch ? `, batches of up to ${sink.batch.max}` : ''}`
    }
  }
}

function digestOf(sink: SinkConfig): { schedule: string; timezone: string } | undefined {
  const digest = sink.type === 'webhook' ? undefined : sink.digest
  return digest && { schedule: digest.cron, timezone: digest.timeZone }
}

function extrasOf(sink: SinkConfig): string {
  const digest = digestOf(sink)
  const collects = digest ? `, digest at "${digest.schedule}" ${digest.timezone}` : ''
  const { fallback, fallbackAfterMs } = sink
  const after = spanInWords(fallbackAfterMs)
  return `${collects}${fallback === undefined ? '' : `, after ${after} without success to ${fallback}`}`
}

interface RouteEntry {
  name: string
  depth: number
  matchers: string[]
  /** Its own, or what it has from above. */
  sinks: string[]
  continue: boolean
  /** Names of time intervals. */
  mutes: string[]
  onMute: 'hold' | 'drop'
}

function routesOf(route: RouteConfig, depth = 0, above: string[] = []): RouteEntry[] {
  const sinks = route.sinks ?? above
  const matchers = route.matchers.map(({ text }) => text)
  const { name, muteTimeIntervals: mutes, onMute } = route
  const entry = { name, depth, matchers, sinks, continue: route.continue, mutes, onMute }
  return [entry, ...route.routes.flatMap((child) => routesOf(child, depth + 1, sinks))]
}

function routeLine({ name, depth, matchers, sinks, mutes, ...route }: RouteEntry): string {
  const rest = depth === 0 ? 'the rest' : 'every event'
  const when = matchers.length === 0 ? rest : matchers.join(' and ')
  const goesOn = route.continue ? ', and the search goes on' : ''
  const kept = route.onMute === 'drop' ? 'dropped' : 'held'
  const muted = mutes.length === 0 ? '' : `, ${kept} during ${mutes.join(', ')}`
  return `${'  '.repeat(depth + 1)}${name}: ${when} → ${sinks.join(', ')}${muted}${goesOn}`
}
