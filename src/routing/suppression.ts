/**
 * Why an item is not sent, decided when it is about to enter a message, not before. It is closed at
 * the service, silenced, inhibited, or muted. The first rule that has a verdict decides. All of
 * that concerns people: machines get every event, but for silences that name them.
 */
import { ownFeed } from '../event.ts'
import type { InhibitRule } from './inhibition.ts'
import type { RoutableEvent, Router } from './router.ts'
import { findSilence, type Silence } from './silences.ts'
import { mutedUntil, type TimeIntervals } from './time-intervals.ts'

export interface SuppressionSetup {
  router: Router
  inhibitRules: readonly InhibitRule[]
  timeIntervals: TimeIntervals
  /** Those of the file and those made by command. */
  silences: () => readonly Silence[]
  /** Whether the sink is for people. */
  isForPeople: (sink: string) => boolean
}

/** Every verdict but `send` names its rule. */
export type Verdict =
  | { act: 'send' }
  | { act: 'suppress'; reason: SuppressionReason; rule: string }
  | { act: 'hold'; rule: string; untilMs: number }

export type SuppressionReason = Closure | 'silence' | 'inhibition' | 'mute'

/** What people did with an event upstream. */
export type Closure = 'ignored' | 'remediated'

/** An item and what is known of it just now. */
export interface Candidate {
  sink: string
  /** The first one decides about muting. */
  routes: readonly string[]
  event: RoutableEvent
  /** Since the event was taken in. */
  closed: Closure | undefined
  /** The inhibition rule whose source is fresh, if any. */
  inhibitedBy: string | undefined
}

type Check = (setup: SuppressionSetup, candidate: Candidate, nowMs: number) => Verdict | undefined

/** In this order. */
const checksForPeople: Check[] = [checkClosed, checkSilences, checkInhibition, checkMutes]

/** Returns what becomes of an item now. Tocsin's own events cannot be suppressed. */
export function decideVerdict(
  setup: SuppressionSetup,
  candidate: Candidate,
  nowMs: number,
): Verdict {
  const checks = setup.isForPeople(candidate.sink) ? checksForPeople : [checkSilences]
  for (const check of candidate.event.feed === ownFeed ? [] : checks) {
    const verdict = check(setup, candidate, nowMs)
    if (verdict) return verdict
  }
  return { act: 'send' }
}

/** Whether no rule can suppress anything for the sink just now. */
export function allowsAll(setup: SuppressionSetup, sink: string): boolean {
  return !setup.isForPeople(sink) && !setup.silences().some(({ machines }) => machines)
}

function checkClosed(
  _setup: SuppressionSetup,
  { closed, event: { event } }: Candidate,
): Verdict | undefined {
  const closure = event.ignoredAtMs === null ? undefined : 'ignored'
  const reason = closed ?? (event.remediatedAtMs === null ? closure : 'remediated')
  return reason && { act: 'suppress', reason, rule: 'at the service' }
}

function checkSilences(
  { silences, isForPeople }: SuppressionSetup,
  { sink, event }: Candidate,
  nowMs: number,
): Verdict | undefined {
  const about = silences().filter(({ machines }) => machines || isForPeople(sink))
  const silence = findSilence(about, event, nowMs)
  return silence && { act: 'suppress', reason: 'silence', rule: silence.id }
}

function checkInhibition(
  _setup: SuppressionSetup,
  { inhibitedBy: rule }: Candidate,
): Verdict | undefined {
  return rule === undefined ? undefined : { act: 'suppress', reason: 'inhibition', rule }
}

function checkMutes(
  { timeIntervals, router }: SuppressionSetup,
  { routes }: Candidate,
  nowMs: number,
): Verdict | undefined {
  const node = routes[0] === undefined ? undefined : router.node(routes[0])
  if (!node || node.muteTimeIntervals.length === 0) return undefined
  const untilMs = mutedUntil(timeIntervals, [...node.muteTimeIntervals], nowMs)
  if (untilMs === undefined) return undefined
  const rule = `${node.name}: ${node.muteTimeIntervals.join(', ')}`
  if (node.onMute === 'drop') return { act: 'suppress', reason: 'mute', rule }
  return { act: 'hold', rule, untilMs }
}
