/** `routes explain`: which way one event would take through the configured tree now, and why. */
import { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import { readSilences } from '../../delivery/silences.ts'
import { formatSeverity } from '../../messages/summary.ts'
import { type InhibitRule, sourceKeys, targetKeys } from '../../routing/inhibition.ts'
import {
  createRouter,
  groupLabels,
  planItems,
  type RoutableEvent,
  type RouteDecision,
  type RouteNode,
  type RouteVisit,
} from '../../routing/router.ts'
import { findSilence, type Silence } from '../../routing/silences.ts'
import { StoreError } from '../../redis/health.ts'
import { createKeys } from '../../redis/keys.ts'
import { mutedUntil } from '../../routing/time-intervals.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import { givenEventSays, readGivenEvents } from '../open/given-event.ts'
import { withRedis } from '../open/open-store.ts'
import { formatDuration, formatIsoTime, formatUtcTime, sanitize } from '../terminal.ts'
import { formatGrouping } from './tree-text.ts'
import { destinationsBySink } from '../../operator/recipients.ts'
import { silenceJson } from '../../operator/silences.ts'

export function routesCommand(context: Context): Command {
  const explain = addCommonOptions(new Command('explain'))
    .description('which way an event would take now, and why')
    .argument('<event>', givenEventSays)
    .option('--feed <name>', 'as if this feed had brought it')
    .option('--account <name>', 'only what this account knows, or a feed of it')
    .action((given: string, options: ExplainRoutesOptions) =>
      explainRoutes(context, given, options),
    )
  return new Command('routes').addCommand(explain)
}

interface ExplainRoutesOptions extends CommonOptions {
  feed?: string
  account?: string
}

async function explainRoutes(
  context: Context,
  given: string,
  options: ExplainRoutesOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { events, nowMs } = await readGivenEvents(context, config, given, options)
  const silences = await readSilencesOf(context, config)
  const traces = events.map((event) => traceRoute(config, { event, nowMs, silences }))
  print(context, options, {
    json: traces.map(traceJson),
    lines: () => traces.flatMap(traceLines),
  })
}

/** Those of the file and, while Redis answers, those made by command. */
async function readSilencesOf({ terminal }: Context, config: Config): Promise<Silence[]> {
  try {
    const { silences } = await withRedis(config.redis, (redis) =>
      readSilences(redis, createKeys(config.redis.prefix)),
    )
    return [...config.silences, ...silences]
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    terminal.printError(`silences made by command are not known: ${error.message}`)
    return [...config.silences]
  }
}

interface Traced {
  event: RoutableEvent
  nowMs: number
  silences: readonly Silence[]
}

/** The route of one event, as one feed brought it, and what would suppress or hold it. */
interface Trace extends Pick<Traced, 'event' | 'nowMs'> {
  visits: readonly RouteVisit[]
  decisions: readonly (RouteDecision & { node: RouteNode; mutedUntilMs: number | undefined })[]
  destinations: readonly Destined[]
  silence: Silence | undefined
  /** Rules of which it is the source. */
  inhibits: readonly InhibitRule[]
  /** Rules of which it is the target. */
  inhibitedBy: readonly InhibitRule[]
}

interface Destined {
  sink: string
  destination: string
  routes: readonly string[]
  is_shadow: boolean
}

function traceRoute(config: Config, { event, nowMs, silences }: Traced): Trace {
  const { inhibitRules, timeIntervals } = config
  const router = createRouter(config.route)
  const { visits, decisions } = router.explain(event)
  const findRules = (keys: readonly { rule: string }[]): InhibitRule[] =>
    inhibitRules.filter(({ name }) => keys.some(({ rule }) => rule === name))
  return {
    event,
    nowMs,
    visits,
    decisions: decisions.map((decision) => {
      const node = router.node(decision.route)
      if (!node) throw new Error(`the tree decided for ${decision.route}, which it does not have`)
      const mutedUntilMs = mutedUntil(timeIntervals, node.muteTimeIntervals, nowMs)
      return { ...decision, node, mutedUntilMs }
    }),
    destinations: findDestinations(config, decisions),
    silence: findSilence(silences, event, nowMs),
    inhibits: findRules(sourceKeys(inhibitRules, event)),
    inhibitedBy: findRules(targetKeys(inhibitRules, event)),
  }
}

function findDestinations(config: Config, decisions: readonly RouteDecision[]): Destined[] {
  const destinations = destinationsBySink(config)
  const labels = new Map([...destinations.values()].flat().map(({ id, label }) => [id, label]))
  const items = planItems(decisions, (sink) => (destinations.get(sink) ?? []).map(({ id }) => id))
  return items.map(({ sink, destination, routes, isShadow = false }) => {
    const label = labels.get(destination) ?? destination
    return { sink, destination: label, routes, is_shadow: isShadow }
  })
}

function traceJson(trace: Trace): Record<string, unknown> {
  const { event: routed, nowMs, visits, decisions, silence } = trace
  const { account, feed, event } = routed
  return {
    uid: event.uid,
    type: event.type,
    severity: event.severity,
    account,
    feed,
    judged_at: formatIsoTime(nowMs),
    visits: visits.map(({ route, taken, failed }) => ({ route, taken, failed })),
    decisions: decisions.map(({ route, mode, why, sinks, node, mutedUntilMs }) => ({
      route,
      mode,
      why,
      sinks,
      group: node.groupWaitMs === 0 ? null : groupLabels(node.groupBy, routed),
      muted_until: formatIsoTime(mutedUntilMs),
      on_mute: mutedUntilMs === undefined ? null : node.onMute,
    })),
    destinations: trace.destinations,
    silence: silence ? silenceJson(silence, nowMs) : null,
    inhibits: trace.inhibits.map(({ name }) => name),
    may_be_inhibited_by: trace.inhibitedBy.map(({ name }) => name),
  }
}

function traceLines(trace: Trace): string[] {
  const { account, feed, event } = trace.event
  const what = `${sanitize(event.type, 60)}, ${formatSeverity(event.severity)}`
  return [
    `${sanitize(event.uid, 600)} (${what}), by the feed ${feed} of ${account}, as of ${formatUtcTime(trace.nowMs)}`,
    ...trace.visits.flatMap((visit) => visitLines(trace, visit)),
    'goes to',
    ...trace.destinations.map(destinationLine),
    'suppressed',
    ...suppressionLines(trace),
  ]
}

/** A route that was asked, and below it what it decided. */
function visitLines(
  { event, decisions }: Trace,
  { route, path, failed, taken, stopsSiblings }: RouteVisit,
): string[] {
  const indent = '  '.repeat(path.length)
  if (failed) {
    const has = failed.actual.map((value) => JSON.stringify(sanitize(value, 80))).join(', ')
    return [`${indent}${route}: no, not ${failed.matcher}: it has ${has === '' ? 'nothing' : has}`]
  }
  const decision = decisions.find((one) => one.route === route)
  const effect = taken || decision ? 'takes it' : 'matches, and a route below takes it'
  const last = stopsSiblings && path.length > 1 ? '; those behind are not asked' : ''
  return [
    `${indent}${route}: ${effect}${last}`,
    ...(decision ? decisionLines(event, decision).map((line) => `${indent}    ${line}`) : []),
  ]
}

function decisionLines(
  event: RoutableEvent,
  { mode, why, sinks, node, mutedUntilMs }: Trace['decisions'][number],
): string[] {
  const shared = Object.entries(groupLabels(node.groupBy, event)).map(
    ([name, value]) => `${name}=${JSON.stringify(sanitize(value, 120))}`,
  )
  const isAlone = node.groupWaitMs === 0 || shared.length === 0
  const because = why.length === 0 ? 'the rest' : why.join(' and ')
  const shadow = mode === 'shadow' ? ' (shadow)' : ''
  const muted = `muted until ${formatUtcTime(mutedUntilMs ?? 0)}: ${node.onMute === 'drop' ? 'dropped' : 'held'}`
  return [
    `${because} → ${sinks.join(', ')}${shadow}`,
    `${formatGrouping(node)}${isAlone ? '' : `; its group: ${shared.join(' ')}`}`,
    ...(mutedUntilMs === undefined ? [] : [muted]),
  ]
}

function destinationLine({ sink, destination, routes, is_shadow: isShadow }: Destined): string {
  const place = destination === sink ? sink : `${sink}, ${destination}`
  return `  ${sanitize(place)}, by ${routes.join(', ')}${isShadow ? ': recorded, never sent' : ''}`
}

function suppressionLines({ silence, inhibits, inhibitedBy }: Trace): string[] {
  const lines = [
    ...(silence ? [`  by the silence ${silence.id} until ${formatUtcTime(silence.endsAtMs)}`] : []),
    ...inhibitedBy.map(
      ({ name, windowMs }) =>
        `  by ${name}, where its source came within ${formatDuration(windowMs)} before`,
    ),
    ...inhibits.map(
      ({ name, windowMs }) =>
        `  as the source of ${name} it suppresses others for ${formatDuration(windowMs)}`,
    ),
  ]
  return lines.length === 0 ? ['  by no silence and no inhibit rule'] : lines
}
