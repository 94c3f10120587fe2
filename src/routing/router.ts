/**
 * Which routes take an event, by Alertmanager's rules: depth first, the first match among siblings
 * wins unless it says `continue`, and a node handles what none of its children takes. Pure: the
 * same event and tree give the same decisions, and never none, for the root takes the rest.
 */
import type { RouteConfig } from './config.ts'
import type { Matcher } from './matcher.ts'
import { valuesOf, type RoutableEvent } from './routable-event.ts'

export interface RouteDecision {
  route: string
  /** Names of the nodes from the root to the route, both included. */
  path: string[]
  /** Its own, or the nearest ancestor's. */
  sinks: string[]
  /** Texts of the matchers that held, in order of the path; empty for the root. */
  why: string[]
}

/** One node that the event came by. A node left out was behind a sibling that stopped the event. */
export interface RouteVisit {
  route: string
  path: string[]
  matched: boolean
  /** It is among the decisions: it matched and none of its children did. */
  taken: boolean
  /** Its later siblings are not asked. */
  stopsSiblings: boolean
  /** The first matcher that did not hold, with what the event has there (`[]`: nothing). */
  failed: { matcher: string; actual: string[] } | null
}

export interface RouteExplanation {
  decisions: RouteDecision[]
  /** In the order in which they were asked. */
  visits: RouteVisit[]
}

/** A node with its inheritance applied. */
export interface RouteNode {
  name: string
  path: string[]
  sinks: string[]
  matchers: readonly Matcher[]
  continue: boolean
  routes: RouteNode[]
}

export interface Router {
  route(input: RoutableEvent): RouteDecision[]
  /** The same decisions, with every step on the way to them. */
  explain(input: RoutableEvent): RouteExplanation
  /** For those who show the tree. */
  readonly root: RouteNode
}

/** `config` is validated: the root has sinks and no matchers. */
export function createRouter(config: RouteConfig): Router {
  if (config.sinks === undefined || config.matchers.length > 0) {
    throw new Error('the root of the routing tree needs sinks and takes no matchers')
  }
  const root = resolve(config, { path: [], sinks: config.sinks })
  return {
    root,
    route: (input) => explain(root, input).decisions,
    explain: (input) => explain(root, input),
  }
}

function resolve(config: RouteConfig, parent: { path: string[]; sinks: string[] }): RouteNode {
  const path = [...parent.path, config.name]
  const sinks = config.sinks ?? parent.sinks
  return {
    name: config.name,
    path,
    sinks,
    matchers: config.matchers,
    continue: config.continue,
    routes: config.routes.map((route) => resolve(route, { path, sinks })),
  }
}

function explain(root: RouteNode, input: RoutableEvent): RouteExplanation {
  const visits: RouteVisit[] = []
  const decisions = visit(root, []) ?? []
  return { decisions, visits }

  /** undefined: the node does not match. `why` holds what matched above it. */
  function visit(node: RouteNode, why: string[]): RouteDecision[] | undefined {
    const failed = firstFailure(node, input)
    const seen = { route: node.name, path: [...node.path], matched: failed === null, failed }
    const entry = { ...seen, taken: false, stopsSiblings: failed === null && !node.continue }
    visits.push(entry)
    if (failed) return undefined
    const reasons = [...why, ...node.matchers.map(({ text }) => text)]
    const fromChildren = visitChildren(node, reasons)
    if (fromChildren.length > 0) return fromChildren
    entry.taken = true
    return [{ route: node.name, path: [...node.path], sinks: [...node.sinks], why: reasons }]
  }

  function visitChildren(node: RouteNode, why: string[]): RouteDecision[] {
    const decided: RouteDecision[] = []
    for (const child of node.routes) {
      const taken = visit(child, why)
      if (taken) decided.push(...taken)
      if (taken && !child.continue) break
    }
    return decided
  }
}

function firstFailure(node: RouteNode, input: RoutableEvent): RouteVisit['failed'] {
  for (const matcher of node.matchers) {
    const actual = valuesOf(input, matcher.name)
    if (!matcher.matches(actual)) return { matcher: matcher.text, actual: [...actual] }
  }
  return null
}
