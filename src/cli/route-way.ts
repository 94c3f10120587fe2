/** The way that an event takes through the routing tree, and what would keep it back; pure. */
import type { Config } from '../config/config.ts'
import { planItems, type PlannedItem } from '../routing/destinations.ts'
import { groupLabels } from '../routing/group-key.ts'
import { sourceKeys, targetKeys, type InhibitRule } from '../routing/inhibition.ts'
import type { RoutableEvent } from '../routing/routable-event.ts'
import {
  createRouter,
  type RouteDecision,
  type Router,
  type RouteNode,
  type RouteVisit,
} from '../routing/router.ts'
import { findSilence, type Silence } from '../routing/silences.ts'
import { mutedUntil } from '../routing/time-intervals.ts'
import type { Destination } from '../sinks/sink.ts'
import type { KnownSilences } from './known-silences.ts'

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
