/** `routes`: the tree with all that is inherited, and which way one event would take through it. */
import { Command } from 'commander'
import type { Config } from '../config/config.ts'
import type { ThreatEvent } from '../event.ts'
import { parseItem } from '../feed-types/events.ts'
import { systemClock } from '../lib/clock.ts'
import { refang } from '../messages/sanitize.ts'
import { severityInWords } from '../messages/summary.ts'
import { type InhibitRule, sourceKeys, targetKeys } from '../routing/inhibition.ts'
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
} from '../routing/router.ts'
import { findSilence, type Silence } from '../routing/silences.ts'
import { mutedUntil } from '../routing/time-intervals.ts'
import type { Destination } from '../sinks/sink.ts'
import { readPayload, readRecord } from '../store/records.ts'
import { redisNow } from '../redis/scripts.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
  readText,
} from './context.ts'
import {
  destinationsBySink,
  findBook,
  knownSilences,
  type KnownSilences,
  missingLines,
  withLedger,
} from './open-ledger.ts'
import { CommandError, findNamed, harmless, isoTime, spanInWords, timeInWords } from './terminal.ts'

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
  const known = await knownSilences(config)
  const nowMs = systemClock.now()
  print(context, options, {
    json: {
      root: nodeJson(root),
      silences: known.silences.map(silenceJson),
      silences_by_command_known: known.missing === undefined,
      inhibit_rules: config.inhibitRules.map(ruleJson),
    },
    lines: () => [
      ...nodeLines(root),
      ...headed('silences', [
        ...known.silences.map((silence) => silenceLine(silence, nowMs)),
        ...missingLines(known),
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
    stage: node.stage,
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

/** Grouping is said where it differs from the parent's. */
function nodeLines(node: RouteNode, parent?: RouteNode): string[] {
  const indent = '  '.repeat(node.path.length - 1)
  const grouping = groupingInWords(node)
  const { muteTimeIntervals: mutes, onMute } = node
  return [
    `${indent}${headOf(node)}`,
    ...(parent && groupingInWords(parent) === grouping ? [] : [`${indent}    ${grouping}`]),
    ...(mutes.length > 0
      ? [`${indent}    muted by ${mutes.join(', ')}: ${muteWords[onMute]}`]
      : []),
    ...node.routes.flatMap((child) => nodeLines(child, node)),
  ]
}

const muteWords = { hold: 'held until it is over', drop: 'dropped' }

function headOf({ name, path, matchers, sinks, ...node }: RouteNode): string {
  const rest = path.length === 1 ? 'the rest' : 'every event'
  const when = matchers.length === 0 ? rest : matchers.map(({ text }) => text).join(' and ')
  const stage = node.stage === 'shadow' ? ' (shadow: recorded, never sent)' : ''
  const goesOn = node.continue && !node.isAside ? ', and the search goes on' : ''
  return `${name}${stage}: ${when} → ${sinks.join(', ')}${goesOn}`
}

type Rule = Config['inhibitRules'][number]

function ruleJson(rule: Rule): Record<string, unknown> {
  return {
    name: rule.name,
    source_matchers: rule.sourceMatchers.map(({ text }) => text),
    target_matchers: rule.targetMatchers.map(({ text }) => text),
    equal: rule.equal,
    window_seconds: rule.windowMs / 1000,
  }
}

function ruleLine({ name, sourceMatchers, targetMatchers, equal, windowMs }: Rule): string {
  const [source, target] = [sourceMatchers, targetMatchers].map((matchers) =>
    matchers.map(({ text }) => text).join(' and '),
  )
  const same = equal.length === 0 ? '' : ` with the same ${equal.join(', ')}`
  return `  ${name}: ${source} keeps back ${target}${same}, for ${spanInWords(windowMs)}`
}

/** `routes explain`: one event on its way through the tree of the configuration, judged now. */

export interface ExplainRoutesOptions extends CommonOptions {
  uid?: string
  event?: string
  feed?: string
  account?: string
}

/** What is asked about, and when. */
interface Asked {
  inputs: RoutableEvent[]
  nowMs: number
}

export async function explainRoutes(
  context: Context,
  options: ExplainRoutesOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { feed, uid, event } = options
  if (feed !== undefined) findNamed(config.feeds, feed, 'feed')
  if ((uid === undefined) === (event === undefined)) {
    throw new CommandError('mistake', 'name an event: either --uid <uid> or --event <file>')
  }
  const asked =
    uid === undefined
      ? await askedByFile(context, config, options)
      : await askedByUid(config, refang(uid.trim()), options)
  const destinations = destinationsBySink(config)
  const known = await knownSilences(config)
  const { nowMs } = asked
  const ways = asked.inputs.map((input) => wayOf(config, destinations, { input, nowMs, known }))
  print(context, options, {
    json: ways.map(wayJson),
    lines: () => [...ways.flatMap(wayLines), ...missingLines(known)],
  })
}

async function askedByFile(
  context: Context,
  config: Config,
  { event: file = '', feed: named, account }: ExplainRoutesOptions,
): Promise<Asked> {
  if (account !== undefined) {
    throw new CommandError('mistake', '--account goes with --uid; an --event has its feed’s')
  }
  const feed = config.feeds.find(({ name }) => name === named) ?? config.feeds[0]
  if (feed === undefined || (named === undefined && config.feeds.length > 1)) {
    const names = config.feeds.map(({ name }) => name).join(', ')
    throw new CommandError('mistake', `say with --feed which feed brings it: ${names}`)
  }
  const event = parseEvent(await readText(context, file), file)
  const { name, labels } = feed
  return {
    inputs: [{ event, account: feed.account, feed: name, labels }],
    nowMs: systemClock.now(),
  }
}

/** The parser's own words quote the text, which may hold a secret. */
function parseEvent(text: string, file: string): ThreatEvent {
  const place = file === '-' ? 'standard input' : file
  const remedy = 'write one item of a search answer, with metadata.uid'
  let raw: unknown
  try {
    raw = JSON.parse(text)
  } catch {
    throw new CommandError('mistake', `${place}: not JSON; ${remedy}`)
  }
  const parsed = parseItem(raw)
  if (parsed.ok) return parsed.event
  throw new CommandError('mistake', `${place}: not an event: ${parsed.problem}; ${remedy}`)
}

/** As every feed that showed it, or as the one that was named, whether it did or not. */
async function askedByUid(
  config: Config,
  uid: string,
  { feed: named, account }: ExplainRoutesOptions,
): Promise<Asked> {
  const asAFeed = config.feeds.find(({ name }) => name === named)
  const wanted = account ?? asAFeed?.account
  return withLedger(config, async (ledger) => {
    const books = wanted === undefined ? ledger.books : [findBook(ledger, wanted)]
    const known = await Promise.all(
      books.map(async (book) => {
        const id = book.digests.recordId(uid)
        return Promise.all([readRecord(book, id), readPayload(book, id)])
      }),
    )
    const inputs = known.flatMap(([record, payload]): RoutableEvent[] => {
      if (!record || !payload) return []
      const { account: owner, sightings } = record
      const shown = new Map(sightings.map(({ feed, labels }) => [feed, labels]))
      const feeds = named === undefined ? [...shown.keys()] : [named]
      return feeds.map((feed) => {
        const labels = config.feeds.find(({ name }) => name === feed)?.labels ?? shown.get(feed)
        return { event: payload.event, account: owner, feed, labels: labels ?? {} }
      })
    })
    if (inputs.length > 0) return { inputs, nowMs: await redisNow(ledger) }
    throw new CommandError(
      'refused',
      missing(
        uid,
        known.some(([record]) => record !== undefined),
      ),
    )
  })
}

function missing(uid: string, isKnown: boolean): string {
  const what = JSON.stringify(uid.slice(0, 600))
  return isKnown
    ? `${what}: its content is no longer kept (retention.payload); "explain" still has its story`
    : `${what} was never taken in, or its story has expired (retention.story)`
}

/** The words of `routes`: a way through the tree for people and for machines. */

type Grouping = Pick<RouteNode, 'groupBy' | 'groupWaitMs' | 'groupIntervalMs'>

export function groupingInWords({ groupBy, groupWaitMs, groupIntervalMs }: Grouping): string {
  if (groupWaitMs === 0) return 'every event by itself, at once'
  const by = groupBy.length === 0 ? 'in one group' : `grouped by ${groupBy.join(', ')}`
  return `${by}: after ${spanInWords(groupWaitMs)}, then every ${spanInWords(groupIntervalMs)} at the most`
}

export function silenceLine(silence: Silence, nowMs: number): string {
  const { id, matchers, startsAtMs, endsAtMs, owner, reason, maxSeverity } = silence
  const what = matchers.map(({ text }) => text).join(' and ')
  const span = `${timeInWords(startsAtMs)} to ${timeInWords(endsAtMs)}`
  const phase = phaseOf(silence, nowMs)
  return `  ${id} (${phase}): ${harmless(what, 600)}, up to ${maxSeverity}, ${span}, ${harmless(owner)}: ${harmless(reason, 500)}`
}

export function phaseOf(
  { startsAtMs, endsAtMs }: Silence,
  nowMs: number,
): 'not begun' | 'active' | 'over' {
  if (nowMs < startsAtMs) return 'not begun'
  return nowMs < endsAtMs ? 'active' : 'over'
}

export function silenceJson(silence: Silence): Record<string, unknown> {
  const { id, matchers, startsAtMs, endsAtMs, owner, reason, maxSeverity, origin } = silence
  return {
    id,
    matchers: matchers.map(({ text }) => text),
    starts: isoTime(startsAtMs),
    until: isoTime(endsAtMs),
    owner,
    reason,
    severity: maxSeverity,
    origin,
  }
}

export function wayJson(way: RouteWay): Record<string, unknown> {
  const { event, account, feed } = way.input
  return {
    uid: event.uid,
    type: event.type,
    severity: event.severity,
    account,
    feed,
    judged_at: isoTime(way.nowMs),
    visits: way.visits.map(({ stopsSiblings, ...visit }) => ({
      ...visit,
      stops_siblings: stopsSiblings,
    })),
    decisions: way.decisions.map(decisionJson),
    destinations: way.items.map(({ sink, label, routes, isShadow }) => ({
      sink,
      destination: label,
      routes,
      is_shadow: isShadow ?? false,
    })),
    silence: way.silence ? silenceJson(way.silence) : null,
    silences_by_command_known: way.isSilenceKnown,
    inhibits: way.inhibits.map(({ name }) => name),
    may_be_inhibited_by: way.inhibitedBy.map(({ name }) => name),
  }
}

function decisionJson(judged: JudgedDecision): Record<string, unknown> {
  const { decision, node, labels, mutedUntilMs } = judged
  return {
    ...decision,
    group: node.groupWaitMs === 0 ? null : labels,
    group_wait_seconds: node.groupWaitMs / 1000,
    group_interval_seconds: node.groupIntervalMs / 1000,
    muted_until: isoTime(mutedUntilMs),
    on_mute: mutedUntilMs === undefined ? null : node.onMute,
  }
}

export function wayLines(way: RouteWay): string[] {
  const { event, account, feed } = way.input
  const what = `${harmless(event.type, 60)}, ${severityInWords(event.severity)}`
  return [
    `${harmless(event.uid, 600)} (${what}), by the feed ${feed} of ${account}, as of ${timeInWords(way.nowMs)}`,
    'asked, in order',
    ...way.visits.map(visitLine),
    'decided',
    ...way.decisions.flatMap(decisionLines),
    'goes to',
    ...way.items.map(itemLine),
    'kept back',
    ...keptBackLines(way),
  ]
}

function visitLine({ route, path, failed, taken, stopsSiblings }: RouteVisit): string {
  return `${'  '.repeat(path.length)}${route}: ${answer()}`

  function answer(): string {
    if (failed) {
      const has = failed.actual.map((value) => JSON.stringify(harmless(value, 80))).join(', ')
      return `no, not ${failed.matcher}: it has ${has === '' ? 'nothing' : has}`
    }
    const who = taken ? 'takes it' : 'matches, and a route below takes it'
    return stopsSiblings && path.length > 1 ? `${who}; those behind are not asked` : who
  }
}

function decisionLines({ decision, node, labels, mutedUntilMs }: JudgedDecision): string[] {
  const { path, stage, sinks, why } = decision
  const because = why.length === 0 ? 'the rest' : why.join(' and ')
  const isShadow = stage === 'shadow'
  const muted = mutedUntilMs === undefined ? '' : timeInWords(mutedUntilMs)
  const dropped = node.onMute === 'drop' ? 'dropped' : 'held'
  return [
    `  ${path.join(' > ')}${isShadow ? ' (shadow)' : ''}: ${because} → ${sinks.join(', ')}`,
    `    ${groupingInWords(node)}${labelsInWords()}`,
    ...(muted === '' ? [] : [`    muted until ${muted}: ${dropped}`]),
  ]

  function labelsInWords(): string {
    const shared = Object.entries(labels).map(
      ([name, value]) => `${name}=${JSON.stringify(harmless(value, 120))}`,
    )
    return node.groupWaitMs === 0 || shared.length === 0 ? '' : `; its group: ${shared.join(' ')}`
  }
}

function itemLine({ sink, label, routes, isShadow }: RouteWay['items'][number]): string {
  const place = label === sink ? sink : `${sink}, ${label}`
  return `  ${harmless(place)}, by ${routes.join(', ')}${isShadow ? ': recorded, never sent' : ''}`
}

function keptBackLines({
  silence,
  isSilenceKnown,
  inhibitedBy,
  inhibits,
  nowMs,
}: RouteWay): string[] {
  const lines = [
    ...(silence ? ['  by a silence:', `  ${silenceLine(silence, nowMs)}`] : []),
    ...inhibitedBy.map(
      ({ name, windowMs }) =>
        `  by ${name}, where its source came within ${spanInWords(windowMs)} before`,
    ),
    ...inhibits.map(
      ({ name, windowMs }) =>
        `  as the source of ${name} it keeps others back for ${spanInWords(windowMs)}`,
    ),
  ]
  const silences = isSilenceKnown ? 'no silence' : 'no silence of the file'
  return lines.length === 0 ? [`  by ${silences} and no inhibit rule`] : lines
}

/** The way that an event takes through the routing tree, and what would keep it back; pure. */

/** The way of one event, as one feed brought it. */
export interface RouteWay {
  input: RoutableEvent
  nowMs: number
  visits: RouteVisit[]
  decisions: JudgedDecision[]
  items: (PlannedItem & { label: string })[]
  silence: Silence | undefined
  /** Whether the silences made by command were known. */
  isSilenceKnown: boolean
  /** Rules whose source or target the event is. */
  inhibits: InhibitRule[]
  inhibitedBy: InhibitRule[]
}

export interface JudgedDecision {
  decision: RouteDecision
  node: RouteNode
  labels: Record<string, string>
  /** undefined: not muted at `nowMs`. */
  mutedUntilMs: number | undefined
}

/** What an event would meet at `nowMs`; `destinations` by the name of their sink. */
export function wayOf(
  config: Config,
  destinations: ReadonlyMap<string, readonly Destination[]>,
  { input, nowMs, known }: { input: RoutableEvent; nowMs: number; known: KnownSilences },
): RouteWay {
  const { inhibitRules } = config
  const router = createRouter(config.route)
  const { visits, decisions } = router.explain(input)
  const items = planItems(decisions, (sink) => (destinations.get(sink) ?? []).map(({ id }) => id))
  const labels = new Map([...destinations.values()].flat().map(({ id, label }) => [id, label]))
  const rulesOf = (keys: readonly { rule: string }[]): InhibitRule[] =>
    inhibitRules.filter(({ name }) => keys.some(({ rule }) => rule === name))
  return {
    input,
    nowMs,
    visits,
    decisions: decisions.map((decision): JudgedDecision => {
      const node = nodeOf(router, decision)
      return {
        decision,
        node,
        labels: groupLabels(node.groupBy, input),
        mutedUntilMs: mutedUntil(config.timeIntervals, node.muteTimeIntervals, nowMs),
      }
    }),
    items: items.map((item) => ({
      ...item,
      label: labels.get(item.destination) ?? item.destination,
    })),
    silence: findSilence(known.silences, input, nowMs),
    isSilenceKnown: known.missing === undefined,
    inhibits: rulesOf(sourceKeys(inhibitRules, input)),
    inhibitedBy: rulesOf(targetKeys(inhibitRules, input)),
  }
}

function nodeOf(router: Router, { route }: RouteDecision): RouteNode {
  const node = router.node(route)
  if (node === undefined) throw new Error(`the tree decided for ${route}, which it does not have`)
  return node
}
