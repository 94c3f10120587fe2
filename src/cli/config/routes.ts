/**
 * The `routes` commands: the tree with all inherited settings, and the route of one event through
 * it.
 */
import { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import { systemClock } from '../../lib/clock.ts'
import { refang } from '../../messages/sanitize.ts'
import { formatSeverity } from '../../messages/summary.ts'
import { type InhibitRule, sourceKeys, targetKeys } from '../../routing/inhibition.ts'
import {
  createRouter,
  groupLabels,
  planItems,
  type PlannedItem,
  type RoutableEvent,
  type RouteDecision,
  type RouteNode,
  type Router,
  type RouteVisit,
} from '../../routing/router.ts'
import { findSilence, type Silence } from '../../routing/silences.ts'
import { mutedUntil } from '../../routing/time-intervals.ts'
import type { Destination } from '../../sinks/sink.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import { readEventFile, readStoredEvents } from '../open/given-event.ts'
import {
  destinationsBySink,
  readKnownSilences,
  type KnownSilences,
  unavailableSilenceLines,
} from '../open/open-store.ts'
import {
  CommandError,
  findNamed,
  sanitize,
  formatIsoTime,
  formatDuration,
  formatUtcTime,
} from '../terminal.ts'
import { formatGrouping, nodeLines } from './tree-text.ts'

export function routesCommand(context: Context): Command {
  const show = addCommonOptions(new Command('show'))
    .description('the routing tree with what each route inherits; silences and inhibit rules')
    .action((options: CommonOptions) => showRoutes(context, options))
  const explain = addCommonOptions(new Command('explain'))
    .description('which way an event would take now, and why')
    .option('--uid <uid>', 'of an event that was taken in; as it stands in a message will do')
    .option('--event <file>', 'an event as the search gives it, in JSON; - for standard input')
    .option('--feed <name>', 'as if this feed had brought it')
    .option('--account <name>', 'with --uid: only what this account knows')
    .action((options: ExplainRoutesOptions) => explainRoutes(context, options))
  return new Command('routes').addCommand(show).addCommand(explain)
}

async function showRoutes(context: Context, options: CommonOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { root } = createRouter(config.route)
  const known = await readKnownSilences(config)
  const nowMs = systemClock.now()
  print(context, options, {
    json: {
      root: nodeJson(root),
      silences: known.silences.map(silenceJson),
      silences_by_command_known: known.unavailable === undefined,
      inhibit_rules: config.inhibitRules.map(ruleJson),
    },
    lines: () => [
      ...nodeLines(root),
      ...headed('silences', [
        ...known.silences.map((silence) => silenceLine(silence, nowMs)),
        ...unavailableSilenceLines(known),
      ]),
      ...headed('inhibit rules', config.inhibitRules.map(ruleLine)),
    ],
  })

  function headed(heading: string, lines: string[]): string[] {
    return lines.length === 0 ? [] : [context.terminal.paint('bold', heading), ...lines]
  }
}

function nodeJson(node: RouteNode): Record<string, unknown> {
  return {
    name: node.name,
    mode: node.mode,
    matchers: node.matchers.map(({ text }) => text),
    sinks: node.sinks,
    continue: node.continue,
    group_by: node.groupBy,
    group_wait_seconds: node.groupWaitMs / 1000,
    group_interval_seconds: node.groupIntervalMs / 1000,
    mute_time_intervals: node.muteTimeIntervals,
    on_mute: node.onMute,
    routes: node.routes.map(nodeJson),
  }
}

type InhibitRuleConfig = Config['inhibitRules'][number]

function ruleJson(rule: InhibitRuleConfig): Record<string, unknown> {
  return {
    name: rule.name,
    source_matchers: rule.sourceMatchers.map(({ text }) => text),
    target_matchers: rule.targetMatchers.map(({ text }) => text),
    equal: rule.equal,
    window_seconds: rule.windowMs / 1000,
  }
}

function ruleLine({
  name,
  sourceMatchers,
  targetMatchers,
  equal,
  windowMs,
}: InhibitRuleConfig): string {
  const [source, target] = [sourceMatchers, targetMatchers].map((matchers) =>
    matchers.map(({ text }) => text).join(' and '),
  )
  const same = equal.length === 0 ? '' : ` with the same ${equal.join(', ')}`
  return `  ${name}: ${source} suppresses ${target}${same}, for ${formatDuration(windowMs)}`
}

/** `routes explain`: traces one event through the configured tree as of now. */

export interface ExplainRoutesOptions extends CommonOptions {
  uid?: string
  event?: string
  feed?: string
  account?: string
}

export async function explainRoutes(
  context: Context,
  options: ExplainRoutesOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { feed, uid, event, account } = options
  if (feed !== undefined) findNamed(config.feeds, feed, 'feed')
  if ((uid === undefined) === (event === undefined)) {
    throw new CommandError('mistake', 'name an event: either --uid <uid> or --event <file>')
  }
  if (event !== undefined && account !== undefined) {
    throw new CommandError('mistake', '--account goes with --uid; an --event has its feed’s')
  }
  const { events, nowMs, known } =
    event === undefined
      ? await readStoredEvents(config, refang(uid?.trim() ?? ''), options)
      : {
          ...(await readEventFile(context, config, { file: event, feed })),
          known: await readKnownSilences(config),
        }
  const destinations = destinationsBySink(config)
  const traces = events.map((one) => traceRoute(config, destinations, { event: one, nowMs, known }))
  print(context, options, {
    json: traces.map(traceJson),
    lines: () => [...traces.flatMap(traceLines), ...unavailableSilenceLines(known)],
  })
}

export function silenceLine(silence: Silence, nowMs: number): string {
  const { id, matchers, startsAtMs, endsAtMs, owner, reason, maxSeverity, machines } = silence
  const what = matchers.map(({ text }) => text).join(' and ')
  const ceiling = `up to ${maxSeverity}${machines ? ', for machines too' : ''}`
  const span = `${formatUtcTime(startsAtMs)} to ${formatUtcTime(endsAtMs)}`
  const phase = silencePhase(silence, nowMs)
  return `  ${id} (${phase}): ${sanitize(what, 600)}, ${ceiling}, ${span}, ${sanitize(owner)}: ${sanitize(reason, 500)}`
}

export function silencePhase(
  { startsAtMs, endsAtMs }: Silence,
  nowMs: number,
): 'not begun' | 'active' | 'over' {
  if (nowMs < startsAtMs) return 'not begun'
  return nowMs < endsAtMs ? 'active' : 'over'
}

export function silenceJson(silence: Silence): Record<string, unknown> {
  const { id, matchers, startsAtMs, endsAtMs, owner, reason, maxSeverity, machines, origin } =
    silence
  return {
    id,
    matchers: matchers.map(({ text }) => text),
    starts: formatIsoTime(startsAtMs),
    until: formatIsoTime(endsAtMs),
    owner,
    reason,
    severity: maxSeverity,
    machines,
    origin,
  }
}

export function traceJson(trace: RouteTrace): Record<string, unknown> {
  const { event, account, feed } = trace.input
  return {
    uid: event.uid,
    type: event.type,
    severity: event.severity,
    account,
    feed,
    judged_at: formatIsoTime(trace.nowMs),
    visits: trace.visits.map(({ route, path, mode, stopsSiblings, ...visit }) => ({
      route,
      path,
      mode,
      ...visit,
      stops_siblings: stopsSiblings,
    })),
    decisions: trace.decisions.map(decisionJson),
    destinations: trace.items.map(({ sink, label, routes, isShadow }) => ({
      sink,
      destination: label,
      routes,
      is_shadow: isShadow ?? false,
    })),
    silence: trace.silence ? silenceJson(trace.silence) : null,
    silences_by_command_known: trace.areSilencesKnown,
    inhibits: trace.inhibits.map(({ name }) => name),
    may_be_inhibited_by: trace.inhibitedBy.map(({ name }) => name),
  }
}

function decisionJson(traced: TracedDecision): Record<string, unknown> {
  const { node, labels, mutedUntilMs } = traced
  const { route, path, mode, ...decision } = traced.decision
  return {
    route,
    path,
    mode,
    ...decision,
    group: node.groupWaitMs === 0 ? null : labels,
    group_wait_seconds: node.groupWaitMs / 1000,
    group_interval_seconds: node.groupIntervalMs / 1000,
    muted_until: formatIsoTime(mutedUntilMs),
    on_mute: mutedUntilMs === undefined ? null : node.onMute,
  }
}

export function traceLines(trace: RouteTrace): string[] {
  const { event, account, feed } = trace.input
  const what = `${sanitize(event.type, 60)}, ${formatSeverity(event.severity)}`
  return [
    `${sanitize(event.uid, 600)} (${what}), by the feed ${feed} of ${account}, as of ${formatUtcTime(trace.nowMs)}`,
    'asked, in order',
    ...trace.visits.map(visitLine),
    'decided',
    ...trace.decisions.flatMap(decisionLines),
    'goes to',
    ...trace.items.map(itemLine),
    'suppressed',
    ...suppressionLines(trace),
  ]
}

function visitLine({ route, path, failed, taken, stopsSiblings }: RouteVisit): string {
  return `${'  '.repeat(path.length)}${route}: ${answer()}`

  function answer(): string {
    if (failed) {
      const has = failed.actual.map((value) => JSON.stringify(sanitize(value, 80))).join(', ')
      return `no, not ${failed.matcher}: it has ${has === '' ? 'nothing' : has}`
    }
    const effect = taken ? 'takes it' : 'matches, and a route below takes it'
    return stopsSiblings && path.length > 1 ? `${effect}; those behind are not asked` : effect
  }
}

function decisionLines({ decision, node, labels, mutedUntilMs }: TracedDecision): string[] {
  const { path, mode, sinks, why } = decision
  const because = why.length === 0 ? 'the rest' : why.join(' and ')
  const isShadow = mode === 'shadow'
  const muted = mutedUntilMs === undefined ? '' : formatUtcTime(mutedUntilMs)
  const dropped = node.onMute === 'drop' ? 'dropped' : 'held'
  return [
    `  ${path.join(' > ')}${isShadow ? ' (shadow)' : ''}: ${because} → ${sinks.join(', ')}`,
    `    ${formatGrouping(node)}${formatLabels()}`,
    ...(muted === '' ? [] : [`    muted until ${muted}: ${dropped}`]),
  ]

  function formatLabels(): string {
    const shared = Object.entries(labels).map(
      ([name, value]) => `${name}=${JSON.stringify(sanitize(value, 120))}`,
    )
    return node.groupWaitMs === 0 || shared.length === 0 ? '' : `; its group: ${shared.join(' ')}`
  }
}

function itemLine({ sink, label, routes, isShadow }: RouteTrace['items'][number]): string {
  const place = label === sink ? sink : `${sink}, ${label}`
  return `  ${sanitize(place)}, by ${routes.join(', ')}${isShadow ? ': recorded, never sent' : ''}`
}

function suppressionLines({
  silence,
  areSilencesKnown,
  inhibitedBy,
  inhibits,
  nowMs,
}: RouteTrace): string[] {
  const lines = [
    ...(silence ? ['  by a silence:', `  ${silenceLine(silence, nowMs)}`] : []),
    ...inhibitedBy.map(
      ({ name, windowMs }) =>
        `  by ${name}, where its source came within ${formatDuration(windowMs)} before`,
    ),
    ...inhibits.map(
      ({ name, windowMs }) =>
        `  as the source of ${name} it suppresses others for ${formatDuration(windowMs)}`,
    ),
  ]
  const silences = areSilencesKnown ? 'no silence' : 'no silence of the file'
  return lines.length === 0 ? [`  by ${silences} and no inhibit rule`] : lines
}

/** The route of one event, as one feed brought it, and what would suppress or hold it. */
export interface RouteTrace {
  input: RoutableEvent
  nowMs: number
  visits: RouteVisit[]
  decisions: TracedDecision[]
  items: (PlannedItem & { label: string })[]
  silence: Silence | undefined
  /** Whether the silences made by command were known. */
  areSilencesKnown: boolean
  /** Rules whose source or target the event matches. */
  inhibits: InhibitRule[]
  inhibitedBy: InhibitRule[]
}

export interface TracedDecision {
  decision: RouteDecision
  node: RouteNode
  labels: Record<string, string>
  /** undefined: not muted at `nowMs`. */
  mutedUntilMs: number | undefined
}

/** Traces an event at `nowMs`; `destinations` by the name of their sink. Pure. */
export function traceRoute(
  config: Config,
  destinations: ReadonlyMap<string, readonly Destination[]>,
  { event, nowMs, known }: { event: RoutableEvent; nowMs: number; known: KnownSilences },
): RouteTrace {
  const { inhibitRules } = config
  const router = createRouter(config.route)
  const { visits, decisions } = router.explain(event)
  const items = planItems(decisions, (sink) => (destinations.get(sink) ?? []).map(({ id }) => id))
  const labels = new Map([...destinations.values()].flat().map(({ id, label }) => [id, label]))
  const findRules = (keys: readonly { rule: string }[]): InhibitRule[] =>
    inhibitRules.filter(({ name }) => keys.some(({ rule }) => rule === name))
  return {
    input: event,
    nowMs,
    visits,
    decisions: decisions.map((decision): TracedDecision => {
      const node = requireNode(router, decision)
      return {
        decision,
        node,
        labels: groupLabels(node.groupBy, event),
        mutedUntilMs: mutedUntil(config.timeIntervals, node.muteTimeIntervals, nowMs),
      }
    }),
    items: items.map((item) => ({
      ...item,
      label: labels.get(item.destination) ?? item.destination,
    })),
    silence: findSilence(known.silences, event, nowMs),
    areSilencesKnown: known.unavailable === undefined,
    inhibits: findRules(sourceKeys(inhibitRules, event)),
    inhibitedBy: findRules(targetKeys(inhibitRules, event)),
  }
}

function requireNode(router: Router, { route }: RouteDecision): RouteNode {
  const node = router.node(route)
  if (node === undefined) throw new Error(`the tree decided for ${route}, which it does not have`)
  return node
}
