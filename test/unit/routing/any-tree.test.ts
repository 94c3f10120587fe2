/** What holds for every tree and event. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { RouteConfig, RouteMode } from '../../../src/routing/config.ts'
import { createRouter, type RouteDecision } from '../../../src/routing/router.ts'
import { aThreatEvent } from '../../support/events.ts'
import { aRoutableEvent as anInput, aTree, type TestRoute } from '../../support/routing.ts'
import { runs } from '../../support/runs.ts'

/** Nodes match by their type lists alone; names are given by place afterwards. */
interface Shape {
  types: string[]
  sinks: string[] | undefined
  continue: boolean
  mode: RouteMode
  routes: Shape[]
}

const types = ['a', 'b', 'c']

function shapeOf(depth: number, modes: RouteMode[]): fc.Arbitrary<Shape> {
  return fc.record({
    types: fc.subarray(types),
    sinks: fc.option(fc.subarray(['soc', 'siem', 'oncall']), { nil: undefined }),
    continue: fc.boolean(),
    mode: fc.constantFrom(...modes),
    routes: depth === 0 ? fc.constant([]) : fc.array(shapeOf(depth - 1, modes), { maxLength: 3 }),
  })
}

function named(node: Shape, name: string): TestRoute {
  const { sinks } = node
  return {
    name,
    matchers: node.types.length === types.length ? [] : [`type=~"${node.types.join('|')}"`],
    continue: node.continue,
    mode: node.mode,
    routes: node.routes.map((child, index) => named(child, `${name}.${index + 1}`)),
    ...(sinks && { sinks }),
  }
}

function rootOf(children: Shape[]): Shape {
  return { types, sinks: ['default'], continue: false, mode: 'live', routes: children }
}

function treeOf(children: Shape[]): RouteConfig {
  return aTree(named(rootOf(children), 'root'))
}

/** The rules read from the other end: all leaves of the walk, as lists of names. */
function expected(node: Shape, name: string, type: string, inherited: string[]): string[][] {
  const sinks = node.sinks ?? inherited
  const asked: string[][] = []
  let isOpen = true
  for (const [index, child] of node.routes.entries()) {
    const takes = isOpen && child.types.includes(type)
    if (takes) asked.push(...expected(child, `${name}.${index + 1}`, type, sinks))
    if (takes) isOpen = child.continue
  }
  return asked.length > 0 ? asked : [[name, ...sinks]]
}

const children = fc.array(shapeOf(3, ['live']), { maxLength: 5 })
const mixedChildren = fc.array(shapeOf(3, ['live', 'shadow']), { maxLength: 5 })
const type = fc.constantFrom(...types)

test('routes as a naive reading of the rules does', () => {
  fc.assert(
    fc.property(children, type, (routes, eventType) => {
      const router = createRouter(treeOf(routes))
      const input = anInput({ event: aThreatEvent({ type: eventType }) })
      expect(router.route(input).map(({ route, sinks }) => [route, ...sinks])).toEqual(
        expected(rootOf(routes), 'root', eventType, []),
      )
    }),
    { numRuns: runs({ short: 200, long: 1000 }) },
  )
})

test('gives at least one live decision, none twice, each a node that explain calls taken', () => {
  fc.assert(
    fc.property(mixedChildren, type, (routes, eventType) => {
      const router = createRouter(treeOf(routes))
      const input = anInput({ event: aThreatEvent({ type: eventType }) })
      const { decisions, visits } = router.explain(input)
      const taken = visits.filter((visit) => visit.taken).map(({ path }) => path)
      expect(decisions.map(({ mode }) => mode)).toContain('live')
      expect(taken).toEqual(decisions.map(({ path }) => path))
      expect(new Set(taken.map(String)).size).toBe(taken.length)
      expect(router.route(input)).toEqual(decisions)
    }),
  )
})

/** Without the routes that say `mode: shadow`, and all below them. */
function withoutShadows(route: TestRoute): TestRoute {
  const routes = (route.routes ?? []).filter(({ mode }) => mode !== 'shadow').map(withoutShadows)
  return { ...route, routes }
}

function decisionsOf(root: TestRoute, eventType: string): RouteDecision[] {
  const input = anInput({ event: aThreatEvent({ type: eventType }) })
  return createRouter(aTree(root)).route(input)
}

test('without its shadow routes a tree makes the same live decisions', () => {
  fc.assert(
    fc.property(mixedChildren, type, (routes, eventType) => {
      const root = named(rootOf(routes), 'root')
      const live = decisionsOf(root, eventType).filter(({ mode }) => mode === 'live')
      expect(live).toEqual(decisionsOf(withoutShadows(root), eventType))
    }),
    { numRuns: runs({ short: 200, long: 1000 }) },
  )
})

test('a shadow route that is asked decides as it would alone and live below its parent', () => {
  fc.assert(
    fc.property(shapeOf(3, ['live']), type, (shape, eventType) => {
      const trial = named(shape, 'trial')
      const [shadow, live] = (['shadow', 'live'] as const).map((mode) =>
        decisionsOf({ name: 'root', routes: [{ ...trial, mode }] }, eventType)
          .filter(({ path }) => path.includes('trial'))
          .map(({ mode: _mode, ...rest }) => rest),
      )
      expect(shadow).toEqual(live)
    }),
  )
})
