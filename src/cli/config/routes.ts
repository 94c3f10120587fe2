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
  type RoutableEvent,
  type RouteDecision,
  type RouteNode,
  type RouteVisit,
} from '../../routing/router.ts'
import { findSilence, type Silence } from '../../routing/silences.ts'
import { mutedUntil } from '../../routing/time-intervals.ts'
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

interface ExplainRoutesOptions extends CommonOptions {
  uid?: string
  event?: string
  feed?: string
  account?: string
}

async function explainRoutes(context: Context, options: ExplainRoutesOptions): Promise<void> {
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
  const traces = events.map((one) => traceRoute(config, { event: one, nowMs, known }))
  print(context, options, {
    json: traces.map(({ json }) => json),
    lines: () => [...traces.flatMap(({ lines }) => lines), ...unavailableSilenceLines(known)],
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

interface Traced {
  event: RoutableEvent
  nowMs: number
  known: KnownSilences
}

/** What is found of one part, for machines and for people. */
interface Part<Json> {
  json: Json
  lines: string[]
}

/** The route of one event, as one feed brought it, and what would suppress or hold it. */
function traceRoute(config: Config, traced: Traced): Part<Record<string, unknown>> {
  const { nowMs } = traced
  const { event, account, feed } = traced.event
  const router = createRouter(config.route)
  const { visits, decisions } = router.explain(traced.event)
  const decided = decisions.map((decision) => {
    const node = router.node(decision.route)
    if (!node) throw new Error(`the tree decided for ${decision.route}, which it does not have`)
    return traceDecision(config, traced, { decision, node })
  })
  const items = traceItems(config, decisions)
  const suppressed = traceSuppression(config, traced)
  const what = `${sanitize(event.type, 60)}, ${formatSeverity(event.severity)}`
  const { uid, type, severity } = event
  return {
    json: {
      uid,
      type,
      severity,
      account,
      feed,
      judged_at: formatIsoTime(nowMs),
      visits: visits.map(({ route, path, mode, stopsSiblings, ...visit }) => ({
        route,
        path,
        mode,
        ...visit,
        stops_siblings: stopsSiblings,
      })),
      decisions: decided.map(({ json }) => json),
      destinations: items.json,
      ...suppressed.json,
    },
    lines: [
      `${sanitize(uid, 600)} (${what}), by the feed ${feed} of ${account}, as of ${formatUtcTime(nowMs)}`,
      'asked, in order',
      ...visits.map(visitLine),
      'decided',
      ...decided.flatMap(({ lines }) => lines),
      'goes to',
      ...items.lines,
      'suppressed',
      ...suppressed.lines,
    ],
  }
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

function traceDecision(
  { timeIntervals }: Config,
  { event, nowMs }: Traced,
  { decision, node }: { decision: RouteDecision; node: RouteNode },
): Part<Record<string, unknown>> {
  const { route, path, mode, ...rest } = decision
  const labels = groupLabels(node.groupBy, event)
  const mutedUntilMs = mutedUntil(timeIntervals, node.muteTimeIntervals, nowMs)
  const isMuted = mutedUntilMs !== undefined
  const shared = Object.entries(labels).map(
    ([name, value]) => `${name}=${JSON.stringify(sanitize(value, 120))}`,
  )
  const isAlone = node.groupWaitMs === 0
  const ofGroup = isAlone || shared.length === 0 ? '' : `; its group: ${shared.join(' ')}`
  const because = decision.why.length === 0 ? 'the rest' : decision.why.join(' and ')
  const dropped = node.onMute === 'drop' ? 'dropped' : 'held'
  return {
    json: {
      route,
      path,
      mode,
      ...rest,
      group: isAlone ? null : labels,
      group_wait_seconds: node.groupWaitMs / 1000,
      group_interval_seconds: node.groupIntervalMs / 1000,
      muted_until: formatIsoTime(mutedUntilMs),
      on_mute: isMuted ? node.onMute : null,
    },
    lines: [
      `  ${path.join(' > ')}${mode === 'shadow' ? ' (shadow)' : ''}: ${because} → ${decision.sinks.join(', ')}`,
      `    ${formatGrouping(node)}${ofGroup}`,
      ...(isMuted ? [`    muted until ${formatUtcTime(mutedUntilMs)}: ${dropped}`] : []),
    ],
  }
}

function traceItems(config: Config, decisions: readonly RouteDecision[]): Part<unknown[]> {
  const destinations = destinationsBySink(config)
  const labels = new Map([...destinations.values()].flat().map(({ id, label }) => [id, label]))
  const items = planItems(decisions, (sink) => (destinations.get(sink) ?? []).map(({ id }) => id))
  const labelled = items.map(({ sink, destination, routes, isShadow = false }) => {
    const label = labels.get(destination) ?? destination
    return { sink, destination: label, routes, is_shadow: isShadow }
  })
  return {
    json: labelled,
    lines: labelled.map(({ sink, destination, routes, is_shadow: isShadow }) => {
      const place = destination === sink ? sink : `${sink}, ${destination}`
      const never = isShadow ? ': recorded, never sent' : ''
      return `  ${sanitize(place)}, by ${routes.join(', ')}${never}`
    }),
  }
}

function traceSuppression(
  { inhibitRules }: Config,
  { event, nowMs, known }: Traced,
): Part<Record<string, unknown>> {
  const findRules = (keys: readonly { rule: string }[]): InhibitRule[] =>
    inhibitRules.filter(({ name }) => keys.some(({ rule }) => rule === name))
  const silence = findSilence(known.silences, event, nowMs)
  const inhibits = findRules(sourceKeys(inhibitRules, event))
  const inhibitedBy = findRules(targetKeys(inhibitRules, event))
  const areKnown = known.unavailable === undefined
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
  const silences = areKnown ? 'no silence' : 'no silence of the file'
  return {
    json: {
      silence: silence ? silenceJson(silence) : null,
      silences_by_command_known: areKnown,
      inhibits: inhibits.map(({ name }) => name),
      may_be_inhibited_by: inhibitedBy.map(({ name }) => name),
    },
    lines: lines.length === 0 ? [`  by ${silences} and no inhibit rule`] : lines,
  }
}
