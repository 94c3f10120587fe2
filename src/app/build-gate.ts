import type { Gate, Judged, Verdict } from '../digest/gate.ts'
import { areInhibited } from '../ledger/inhibitors.ts'
import type { Book } from '../ledger/book.ts'
import { ownFeed } from '../events/own-feed.ts'
import { targetKeys } from '../routing/inhibition.ts'
import type { RouteNode, Router } from '../routing/router.ts'
import type { RoutableEvent } from '../routing/routable-event.ts'
import { findSilence, type Silence } from '../routing/silences.ts'
import { mutedUntil } from '../routing/time-intervals.ts'
import type { Shared } from './shared.ts'

interface GateParts extends Pick<Shared, 'config' | 'clock'> {
  router: Router
  silences: () => readonly Silence[]
}

interface Candidate {
  judged: Judged
  input: RoutableEvent
  /** The rule that inhibits it, if one does. */
  inhibitedBy: string | undefined
}

/** One rule's word on a candidate; undefined: none. */
type Stage = (parts: GateParts, candidate: Candidate, nowMs: number) => Verdict | undefined

/** In this order; the first that says something decides. */
const stages: Stage[] = [closed, silenced, inhibited, muted]

export function buildGate(
  shared: Pick<Shared, 'config' | 'clock'>,
  router: Router,
  silences: () => readonly Silence[],
): Gate {
  const parts: GateParts = { config: shared.config, clock: shared.clock, router, silences }
  return {
    judge: (book, items) => judge(parts, book, items),
    isIdleFor: (sink) => isMachine(parts, sink) && !hasRules(parts),
  }
}

async function judge(parts: GateParts, book: Book, items: readonly Judged[]): Promise<Verdict[]> {
  const nowMs = parts.clock.now()
  const candidates = await candidatesOf(parts, book, items, nowMs)
  return candidates.map((candidate) => {
    // what Tocsin says of itself is nobody's to silence
    for (const stage of candidate.judged.feed === ownFeed ? [] : stages) {
      const verdict = stage(parts, candidate, nowMs)
      if (verdict) return verdict
    }
    return { act: 'send' }
  })
}

/** Machines are told of what people closed, so nothing but a rule keeps anything from them. */
function hasRules({ config, router, silences }: GateParts): boolean {
  return silences().length > 0 || config.inhibitRules.length > 0 || hasMutes(router.root)
}

function hasMutes({ muteTimeIntervals, routes }: RouteNode): boolean {
  return muteTimeIntervals.length > 0 || routes.some(hasMutes)
}

function isMachine({ config }: GateParts, name: string): boolean {
  return config.sinks.some((sink) => sink.name === name && sink.type === 'webhook')
}

/** What people closed at the service is not told to people; machines are told, with its times. */
function closed(parts: GateParts, { judged }: Candidate): Verdict | undefined {
  const { ignoredAtMs, remediatedAtMs } = judged.event
  const shown = ignoredAtMs === null ? undefined : 'ignored'
  const reason = judged.closed ?? (remediatedAtMs === null ? shown : 'remediated')
  if (reason === undefined || isMachine(parts, judged.sink)) return undefined
  return { act: 'suppress', reason, rule: 'at the service' }
}

function silenced(
  { silences }: GateParts,
  { input }: Candidate,
  nowMs: number,
): Verdict | undefined {
  const silence = findSilence(silences(), input, nowMs)
  return silence && { act: 'suppress', reason: 'silence', rule: silence.id }
}

function inhibited(_parts: GateParts, { inhibitedBy: rule }: Candidate): Verdict | undefined {
  return rule === undefined ? undefined : { act: 'suppress', reason: 'inhibition', rule }
}

function muted(
  { config, router }: GateParts,
  { judged: { routes } }: Candidate,
  nowMs: number,
): Verdict | undefined {
  const node = routes[0] === undefined ? undefined : router.node(routes[0])
  if (!node || node.muteTimeIntervals.length === 0) return undefined
  const untilMs = mutedUntil(config.timeIntervals, [...node.muteTimeIntervals], nowMs)
  if (untilMs === undefined) return undefined
  const rule = `${node.name}: ${node.muteTimeIntervals.join(', ')}`
  if (node.onMute === 'drop') return { act: 'suppress', reason: 'mute', rule }
  return { act: 'hold', rule, untilMs }
}

async function candidatesOf(
  { config: { inhibitRules } }: GateParts,
  book: Book,
  items: readonly Judged[],
  nowMs: number,
): Promise<Candidate[]> {
  const inputs = items.map((judged) => {
    const { event, feed, labels } = judged
    return { judged, input: { event, account: book.account, feed, labels } }
  })
  const asked = inputs.flatMap(({ judged, input }, place) =>
    targetKeys(inhibitRules, input).map((target) => {
      return { ...target, place, recordId: judged.recordId }
    }),
  )
  const answers = await areInhibited(book, asked, nowMs)
  return inputs.map(({ judged, input }, at) => ({
    judged,
    input,
    inhibitedBy: asked.find(({ place }, i) => place === at && answers[i])?.rule,
  }))
}
