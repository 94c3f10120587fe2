/** The words of `routes`: a way through the tree for people and for machines. */
import { severityInWords } from '../messages/severity-counts.ts'
import type { RouteNode, RouteVisit } from '../routing/router.ts'
import type { Silence } from '../routing/silences.ts'
import type { JudgedDecision, RouteWay } from './route-way.ts'
import { harmless, isoTime, spanInWords, timeInWords } from './words.ts'

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
