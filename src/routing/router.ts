/**
 * Decides which routes take an event, by Alertmanager's rules. It goes depth first, the first match
 * among siblings wins unless it says `continue`, and a node handles what none of its children
 * takes. A route in `mode: shadow` is evaluated and recorded, but its parent and siblings behave as
 * if it were not there. Pure: the same event and tree give the same decisions. At least one is
 * live, because the root takes the rest.
 */
import type { ThreatEvent } from '../event.ts'
import type { OnMute, RouteConfig, RouteMode } from './config.ts'
import type { eventNames, Matcher } from './matcher.ts'

export interface RouteDecision {
  route: string
  /** Names of the nodes from the root to the route, both included. */
  path: string[]
  /** `shadow`: recorded, never sent. */
  mode: RouteMode
  /** Its own, or the nearest ancestor's. */
  sinks: string[]
  /** Texts of the matchers that held, in order of the path; empty for the root. */
  why: string[]
}

/** One evaluated node; one that is missing stood behind a sibling that stopped the event. */
export interface RouteVisit {
  route: string
  path: string[]
  mode: RouteMode
  matched: boolean
  /** It is among the decisions: it matched and none of its children did, shadows left out. */
  taken: boolean
  /** Its later siblings are not evaluated. */
  stopsSiblings: boolean
  /** The first matcher that did not hold, with the event's values for it (`[]`: none). */
  failed: { matcher: string; actual: string[] } | null
}

interface RouteExplanation {
  /** In the order in which their routes were evaluated. */
  decisions: RouteDecision[]
  /** In the order in which they were evaluated. */
  visits: RouteVisit[]
}

/** A node with inheritance applied. */
export interface RouteNode {
  name: string
  path: string[]
  sinks: string[]
  matchers: readonly Matcher[]
  groupBy: readonly string[]
  groupWaitMs: number
  groupIntervalMs: number
  /** What messages say of what to do; undefined or empty: nothing. */
  note: string | undefined
  runbookUrl: string | undefined
  mention: readonly string[] | undefined
  continue: boolean
  /** Its own or inherited: every node below a shadow is shadow. */
  mode: RouteMode
  /** The node itself says `mode: shadow`: parent and siblings go on as if it had not matched. */
  isShadowItself: boolean
  /** Its own only: mutes are not inherited. */
  muteTimeIntervals: readonly string[]
  onMute: OnMute
  routes: RouteNode[]
}

export interface Router {
  route(input: RoutableEvent): RouteDecision[]
  /** The same decisions, with every step that led to them. */
  explain(input: RoutableEvent): RouteExplanation
  /** Returns undefined if this tree has no such route. */
  node(name: string): RouteNode | undefined
  readonly root: RouteNode
}

/** Throws if the root lacks sinks or grouping, has matchers or is a shadow. */
export function createRouter(config: RouteConfig): Router {
  const { sinks, groupBy, groupWaitMs, groupIntervalMs } = config
  if (sinks === undefined || config.matchers.length > 0 || config.mode === 'shadow') {
    throw new Error('the root of the routing tree needs sinks, takes no matchers and is live')
  }
  if (groupBy === undefined || groupWaitMs === undefined || groupIntervalMs === undefined) {
    throw new Error('the root of the routing tree needs its grouping')
  }
  const grouping = { groupBy, groupWaitMs, groupIntervalMs }
  const guidance = { note: undefined, runbookUrl: undefined, mention: undefined }
  const above = { path: [], mode: 'live', sinks, ...grouping, ...guidance } as const
  const root = resolve(config, above)
  const nodes = new Map(listNodes(root).map((node) => [node.name, node]))
  return {
    root,
    node: (name) => nodes.get(name),
    route: (input) => explain(root, input).decisions,
    explain: (input) => explain(root, input),
  }
}

type Inherited = Pick<
  Readonly<RouteNode>,
  'mode' | 'groupBy' | 'groupWaitMs' | 'groupIntervalMs' | 'note' | 'runbookUrl' | 'mention'
> & { readonly path: readonly string[]; readonly sinks: readonly string[] }

function resolve(config: RouteConfig, parent: Inherited): RouteNode {
  const own = {
    path: [...parent.path, config.name],
    sinks: [...(config.sinks ?? parent.sinks)],
    groupBy: config.groupBy ?? parent.groupBy,
    groupWaitMs: config.groupWaitMs ?? parent.groupWaitMs,
    groupIntervalMs: config.groupIntervalMs ?? parent.groupIntervalMs,
    note: config.note ?? parent.note,
    runbookUrl: config.runbookUrl ?? parent.runbookUrl,
    mention: config.mention ?? parent.mention,
    mode: parent.mode === 'shadow' ? parent.mode : config.mode,
  }
  return {
    ...own,
    name: config.name,
    matchers: config.matchers,
    continue: config.continue,
    isShadowItself: config.mode === 'shadow',
    muteTimeIntervals: config.muteTimeIntervals,
    onMute: config.onMute,
    routes: config.routes.map((route) => resolve(route, own)),
  }
}

/** A node and all below it, parents first. */
export function listNodes(node: RouteNode): RouteNode[] {
  return [node, ...node.routes.flatMap(listNodes)]
}

function explain(root: RouteNode, input: RoutableEvent): RouteExplanation {
  const visits: RouteVisit[] = []
  const decisions = visit(root, []) ?? []
  return { decisions, visits }

  /** Returns undefined if the node does not match. `why` holds the matchers that held above it. */
  function visit(node: RouteNode, why: string[]): RouteDecision[] | undefined {
    const { name: route, mode } = node
    const failed = firstFailure(node, input)
    const stopsSiblings = failed === null && !node.continue && !node.isShadowItself
    const seen = { route, path: [...node.path], mode, matched: failed === null, failed }
    const entry = { ...seen, taken: false, stopsSiblings }
    visits.push(entry)
    if (failed) return undefined
    const reasons = [...why, ...node.matchers.map(({ text }) => text)]
    const below = visitChildren(node, reasons)
    if (below.isTaken) return below.decided
    entry.taken = true
    const own = { route, path: [...node.path], mode, sinks: [...node.sinks], why: reasons }
    return [own, ...below.decided]
  }

  /** `isTaken`: a child other than a shadow took the event, so the node itself does not. */
  function visitChildren(
    node: RouteNode,
    why: string[],
  ): { decided: RouteDecision[]; isTaken: boolean } {
    const decided: RouteDecision[] = []
    let isTaken = false
    for (const child of node.routes) {
      const taken = visit(child, why)
      if (!taken) continue
      decided.push(...taken)
      if (child.isShadowItself) continue
      isTaken = true
      if (!child.continue) break
    }
    return { decided, isTaken }
  }
}

function firstFailure(node: RouteNode, input: RoutableEvent): RouteVisit['failed'] {
  for (const matcher of node.matchers) {
    const actual = matcherValues(input, matcher.name)
    if (!matcher.matches(actual)) return { matcher: matcher.text, actual: [...actual] }
  }
  return null
}

/** One item to be created: the event for one destination. */
export interface PlannedItem {
  sink: string
  destination: string
  /** Names of all routes that named the sink, live ones first; the first decides about the item. */
  routes: string[]
  /** Only routes in `mode: shadow` named the sink: the item is recorded and never sent. */
  isShadow?: boolean
}

/**
 * Plans the items of an event's decisions: each destination once, in the order in which the routes
 * name the sinks, live routes first. `destinationsFor` returns a sink's destination ids and throws
 * for an unknown sink.
 */
export function planItems(
  decisions: readonly RouteDecision[],
  destinationsFor: (sink: string) => readonly string[],
): PlannedItem[] {
  const planned = new Map<string, PlannedItem>()
  const isLive = ({ mode }: RouteDecision): boolean => mode === 'live'
  const inOrder = [...decisions.filter(isLive), ...decisions] // a route's first place counts
  const namedSinks = inOrder.flatMap(({ route, mode, sinks }) =>
    sinks.map((sink) => ({ route, sink, isShadow: mode === 'shadow' })),
  )
  for (const { route, sink, isShadow } of namedSinks) {
    for (const destination of destinationsFor(sink)) {
      const newItem = { sink, destination, routes: [], ...(isShadow && { isShadow }) }
      const item: PlannedItem = planned.get(destination) ?? newItem
      if (!item.routes.includes(route)) item.routes.push(route)
      planned.set(destination, item)
    }
  }
  return [...planned.values()]
}

/** An event with what its feed adds to it: everything that matchers see. */
export interface RoutableEvent {
  event: ThreatEvent
  account: string
  feed: string
  /** The feed's labels. */
  labels: Readonly<Record<string, string>>
}

type EventName = (typeof eventNames)[number]

const valueReaders: Record<EventName, (input: RoutableEvent) => readonly string[]> = {
  account: ({ account }) => [account],
  feed: ({ feed }) => [feed],
  kind: ({ event }) => [event.kind],
  type: ({ event }) => [event.type],
  severity: ({ event }) => [event.severity],
  source: ({ event }) => [event.source],
  identifier: ({ event }) => event.identifiers.flatMap(({ name, id }) => [name, String(id)]),
  tag: ({ event }) => event.tags,
}

/** The event's values under a matcher's name; names that it does not have are labels. */
export function matcherValues(input: RoutableEvent, name: string): readonly string[] {
  if (Object.hasOwn(valueReaders, name)) return valueReaders[name as EventName](input)
  const label = Object.hasOwn(input.labels, name) ? input.labels[name] : undefined
  return label === undefined ? [] : [label]
}

export function allMatch(matchers: readonly Matcher[], input: RoutableEvent): boolean {
  return matchers.every((matcher) => matcher.matches(matcherValues(input, matcher.name)))
}

/**
 * The event's values under the names of `group_by`, each as one text; empty if there is none.
 * Events with equal texts share a group. Identifiers appear by name, so two sets that read alike
 * share a group. The texts are shown to people and are untrusted.
 */
export function groupLabels(
  groupBy: readonly string[],
  input: RoutableEvent,
): Record<string, string> {
  return Object.fromEntries(groupBy.map((name) => [name, valueSet(name, input).join(', ')]))
}

/** The event's values under one name as a sorted set; of identifiers the names, not the ids. */
export function valueSet(name: string, input: RoutableEvent): string[] {
  const values =
    name === 'identifier'
      ? input.event.identifiers.map((identifier) => identifier.name)
      : matcherValues(input, name)
  return [...new Set(values)].toSorted()
}
