import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { RouteConfig } from '../../../src/routing/config.ts'
import { parseMatcher } from '../../../src/routing/matcher.ts'
import { valuesOf, type RoutableEvent } from '../../../src/routing/routable-event.ts'
import { createRouter } from '../../../src/routing/router.ts'
import { aThreatEvent } from '../../support/events.ts'

interface Node {
  name: string
  matchers?: string[]
  sinks?: string[]
  continue?: boolean
  routes?: Node[]
}

function aTree(node: Node): RouteConfig {
  return {
    name: node.name,
    matchers: (node.matchers ?? []).map(parseMatcher),
    sinks: node.sinks,
    continue: node.continue ?? false,
    routes: (node.routes ?? []).map(aTree),
  }
}

function anInput(overrides: Partial<RoutableEvent> = {}): RoutableEvent {
  return { event: aThreatEvent(), account: 'main', feed: 'brand', labels: {}, ...overrides }
}

/** The routes that take an event of this severity and type. */
function routesFor(routes: Node[], event: { severity?: string; type?: string } = {}): string[] {
  const router = createRouter(aTree({ name: 'root', sinks: ['oncall'], routes }))
  return router.route(anInput({ event: aThreatEvent(event) })).map(({ route }) => route)
}

describe('which route takes an event', () => {
  const urgent = { name: 'urgent', matchers: ['severity>=high'] }
  const logs = { name: 'logs', matchers: ['type="stealer_log"'] }

  test('the root takes what no route takes', () => {
    expect(routesFor([])).toEqual(['root'])
    expect(routesFor([urgent, logs], { severity: 'low', type: 'paste' })).toEqual(['root'])
  })

  test('the first of two siblings that match takes it alone', () => {
    expect(routesFor([urgent, logs])).toEqual(['urgent'])
    expect(routesFor([logs, urgent])).toEqual(['logs'])
  })

  test('continue lets the next siblings have it too', () => {
    expect(routesFor([{ ...urgent, continue: true }, logs])).toEqual(['urgent', 'logs'])
    expect(routesFor([{ ...urgent, continue: true }])).toEqual(['urgent'])
  })

  test('a route without matchers takes everything', () => {
    expect(routesFor([{ name: 'all' }, urgent])).toEqual(['all'])
  })

  test('all matchers of a route must hold', () => {
    const both = { name: 'both', matchers: ['severity>=high', 'type="paste"'] }
    expect(routesFor([both])).toEqual(['root'])
    expect(routesFor([both], { type: 'paste' })).toEqual(['both'])
  })

  test('a child that matches keeps it from its parent; without one the parent takes it', () => {
    const parent = { ...urgent, routes: [logs] }
    expect(routesFor([parent])).toEqual(['logs'])
    expect(routesFor([parent], { type: 'paste' })).toEqual(['urgent'])
  })

  test('a child is not asked where its parent does not match', () => {
    expect(routesFor([{ ...urgent, routes: [logs] }], { severity: 'low' })).toEqual(['root'])
  })

  test("a child's continue is of its own level: its parent stops the parent's siblings", () => {
    const parent = { ...urgent, routes: [{ ...logs, continue: true }] }
    expect(routesFor([parent, { name: 'rest' }])).toEqual(['logs'])
    expect(routesFor([{ ...parent, continue: true }, { name: 'rest' }])).toEqual(['logs', 'rest'])
  })

  test('an event of an unknown severity takes the way of the critical ones', () => {
    expect(routesFor([urgent], { severity: 'apocalyptic', type: 'paste' })).toEqual(['urgent'])
  })
})

describe('what a decision says', () => {
  const tree = aTree({
    name: 'root',
    sinks: ['oncall'],
    routes: [
      {
        name: 'brand',
        matchers: ['feed="brand"'],
        routes: [
          { name: 'urgent', matchers: ['severity>=high', 'type!="paste"'], sinks: ['soc', 'siem'] },
          { name: 'rest', routes: [{ name: 'pastes', matchers: ['type="paste"'] }] },
        ],
      },
    ],
  })

  test('its path, its own sinks, and the matchers that held in order of the path', () => {
    expect(createRouter(tree).route(anInput())).toEqual([
      {
        route: 'urgent',
        path: ['root', 'brand', 'urgent'],
        sinks: ['soc', 'siem'],
        why: ['feed="brand"', 'severity>=high', 'type!="paste"'],
      },
    ])
  })

  test('sinks come from the nearest ancestor that names some', () => {
    const paste = anInput({ event: aThreatEvent({ type: 'paste' }) })
    const [decision] = createRouter(tree).route(paste)
    expect(decision).toMatchObject({ route: 'pastes', sinks: ['oncall'] })
  })

  test('changing a decision changes no later one', () => {
    const router = createRouter(tree)
    router.route(anInput())[0]!.sinks.push('elsewhere')
    expect(router.route(anInput())[0]!.sinks).toEqual(['soc', 'siem'])
  })

  test('a root without sinks or with matchers is refused', () => {
    expect(() => createRouter(aTree({ name: 'root' }))).toThrow('needs sinks')
    expect(() =>
      createRouter(aTree({ name: 'root', sinks: ['soc'], matchers: ['tag="x"'] })),
    ).toThrow('takes no matchers')
  })
})

describe('what matchers see of an event', () => {
  const input = anInput({
    event: aThreatEvent({
      uid: 'credential/9',
      kind: 'credential',
      type: 'credential',
      source: 'leaks',
      tags: ['vip', 'eu'],
      identifiers: [
        { id: 77, name: 'example.com' },
        { id: 78, name: 'example.org' },
      ],
    }),
    labels: { team: 'brand', severity: 'forged' },
  })

  test.each([
    ['account', ['main']],
    ['feed', ['brand']],
    ['kind', ['credential']],
    ['type', ['credential']],
    ['severity', ['high']],
    ['source', ['leaks']],
    ['identifier', ['example.com', '77', 'example.org', '78']],
    ['tag', ['vip', 'eu']],
    ['team', ['brand']],
    ['absent', []],
    ['constructor', []],
    ['__proto__', []],
  ])('%s: %j', (name, values) => {
    expect(valuesOf(input, name)).toEqual(values)
  })

  test.each([
    'identifier="77"',
    'identifier="example.org"',
    'tag="eu"',
    'team=~"br.*"',
    'absent=""',
  ])('%s takes it', (matcher) => {
    const routes = [{ name: 'it', matchers: [matcher] }]
    const router = createRouter(aTree({ name: 'root', sinks: ['soc'], routes }))
    expect(router.route(input)[0]!.route).toBe('it')
  })
})

describe('explain', () => {
  const router = createRouter(
    aTree({
      name: 'root',
      sinks: ['oncall'],
      routes: [
        { name: 'pastes', matchers: ['severity>=high', 'type="paste"', 'tag="x"'] },
        { name: 'vip', matchers: ['tag=vip'] },
        {
          name: 'urgent',
          matchers: ['severity>=high'],
          routes: [{ name: 'quiet', matchers: ['feed=other'] }],
        },
        { name: 'behind' },
      ],
    }),
  )

  test('names each node asked, the first matcher that failed, and what the event has there', () => {
    const { decisions, visits } = router.explain(anInput())
    expect(decisions.map(({ route }) => route)).toEqual(['urgent'])
    const passed = { matched: true, failed: null, stopsSiblings: true }
    const failed = { matched: false, taken: false, stopsSiblings: false }
    expect(visits).toEqual([
      { route: 'root', path: ['root'], taken: false, ...passed },
      {
        route: 'pastes',
        path: ['root', 'pastes'],
        failed: { matcher: 'type="paste"', actual: ['stealer_log'] },
        ...failed,
      },
      {
        route: 'vip',
        path: ['root', 'vip'],
        failed: { matcher: 'tag=vip', actual: [] },
        ...failed,
      },
      { route: 'urgent', path: ['root', 'urgent'], taken: true, ...passed },
      {
        route: 'quiet',
        path: ['root', 'urgent', 'quiet'],
        failed: { matcher: 'feed=other', actual: ['brand'] },
        ...failed,
      },
    ])
  })

  test('is plain data', () => {
    const explanation = router.explain(anInput())
    expect(JSON.parse(JSON.stringify(explanation))).toEqual(explanation)
  })
})

describe('any tree', () => {
  /** Nodes match by their type lists alone; names are given by place afterwards. */
  interface Shape {
    types: string[]
    sinks: string[] | undefined
    continue: boolean
    routes: Shape[]
  }

  const types = ['a', 'b', 'c']

  function shapeOf(depth: number): fc.Arbitrary<Shape> {
    return fc.record({
      types: fc.subarray(types),
      sinks: fc.option(fc.subarray(['soc', 'siem', 'oncall']), { nil: undefined }),
      continue: fc.boolean(),
      routes: depth === 0 ? fc.constant([]) : fc.array(shapeOf(depth - 1), { maxLength: 3 }),
    })
  }

  function named(node: Shape, name: string): Node {
    const { sinks } = node
    return {
      name,
      matchers: node.types.length === types.length ? [] : [`type=~"${node.types.join('|')}"`],
      continue: node.continue,
      routes: node.routes.map((child, index) => named(child, `${name}.${index + 1}`)),
      ...(sinks && { sinks }),
    }
  }

  function treeOf(children: Shape[]): RouteConfig {
    const all = { types, sinks: ['default'], continue: false, routes: children }
    return aTree(named(all, 'root'))
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

  const children = fc.array(shapeOf(3), { maxLength: 5 })
  const type = fc.constantFrom(...types)

  test('routes as a naive reading of the rules does', () => {
    fc.assert(
      fc.property(children, type, (routes, eventType) => {
        const router = createRouter(treeOf(routes))
        const input = anInput({ event: aThreatEvent({ type: eventType }) })
        const all = { types, sinks: ['default'], continue: false, routes }
        expect(router.route(input).map(({ route, sinks }) => [route, ...sinks])).toEqual(
          expected(all, 'root', eventType, []),
        )
      }),
      { numRuns: 1000 },
    )
  })

  test('gives at least one decision, none twice, each a node that explain calls taken', () => {
    fc.assert(
      fc.property(children, type, (routes, eventType) => {
        const router = createRouter(treeOf(routes))
        const input = anInput({ event: aThreatEvent({ type: eventType }) })
        const { decisions, visits } = router.explain(input)
        const taken = visits.filter((visit) => visit.taken).map(({ path }) => path)
        expect(decisions.length).toBeGreaterThan(0)
        expect(taken).toEqual(decisions.map(({ path }) => path))
        expect(new Set(taken.map(String)).size).toBe(taken.length)
        expect(router.route(input)).toEqual(decisions)
      }),
    )
  })

  test('siblings that all continue may stand in any order', () => {
    const sinksOf = (routes: Shape[], eventType: string): string[] =>
      createRouter(treeOf(routes))
        .route(anInput({ event: aThreatEvent({ type: eventType }) }))
        .map(({ sinks }) => String(sinks))
        .toSorted()
    fc.assert(
      fc.property(children, type, fc.infiniteStream(fc.nat()), (routes, eventType, numbers) => {
        const open = routes.map((route) => ({ ...route, continue: true }))
        const ranked = open.map((route) => ({ route, rank: numbers.next().value ?? 0 }))
        const shuffled = ranked.toSorted((a, b) => a.rank - b.rank).map(({ route }) => route)
        expect(sinksOf(shuffled, eventType)).toEqual(sinksOf(open, eventType))
      }),
    )
  })

  test('siblings that do not match the event change nothing, wherever they stand', () => {
    fc.assert(
      fc.property(children, type, (routes, eventType) => {
        const sinksOf = (siblings: Shape[]): string[][] =>
          createRouter(treeOf(siblings))
            .route(anInput({ event: aThreatEvent({ type: eventType }) }))
            .map(({ sinks }) => sinks)
        const matching = routes.filter((route) => route.types.includes(eventType))
        expect(sinksOf(routes)).toEqual(sinksOf(matching))
      }),
    )
  })
})
