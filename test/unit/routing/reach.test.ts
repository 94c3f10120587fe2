/** Which sinks a feed's events may reach, against what the router does with each event. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createReach } from '../../../src/routing/reach.ts'
import { createRouter } from '../../../src/routing/router.ts'
import { aThreatEvent } from '../../support/events.ts'
import { aRoutableEvent, aTree, type TestRoute } from '../../support/routing.ts'

const northern = { name: 'brand', account: 'north', labels: { team: 'blue' } }

test.each<[string, TestRoute[], string[]]>([
  [
    'a route for some of its events: that and the root',
    [{ name: 's', matchers: ['account=north', 'severity>=high'], sinks: ['s'] }],
    ['s', 'oncall'],
  ],
  ['a label that it lacks', [{ name: 'l', matchers: ['region!=eu'], sinks: ['l'] }], ['l']],
])('%s', (_what, routes, sinks) => {
  const { root } = createRouter(aTree({ routes }))
  expect([...createReach(root)(northern)].toSorted()).toEqual(sinks.toSorted())
})

test.each([
  ['low', ['oncall']],
  ['high', ['s']],
])('of events with the severity %s alone: %j', (severity, sinks) => {
  const routes = [{ name: 's', matchers: ['severity>=high'], sinks: ['s'] }]
  const { root } = createRouter(aTree({ routes }))
  expect([...createReach(root)(northern, severity)]).toEqual(sinks)
})

const texts = [
  'account=north',
  'account=south',
  'account!=north',
  'feed=~"brand|x"',
  'team=blue',
  'team!=blue',
]
const eventTexts = ['severity>=high', 'severity=low', 'type=leak']

function anyRoute(depth: number, from: string[]): fc.Arbitrary<Omit<TestRoute, 'name'>> {
  return fc.record({
    matchers: fc.subarray(from, { maxLength: 2 }),
    sinks: fc.subarray(['a', 'b', 'c'], { minLength: 1 }),
    continue: fc.boolean(),
    mode: fc.constantFrom('live' as const, 'live' as const, 'shadow' as const),
    routes:
      depth === 0
        ? fc.constant([])
        : (fc.array(anyRoute(depth - 1, from), { maxLength: 3 }) as fc.Arbitrary<TestRoute[]>),
  })
}

function named(routes: Omit<TestRoute, 'name'>[], above: string): TestRoute[] {
  return routes.map((route, index) => {
    const name = `${above}.${index + 1}`
    return { ...route, name, routes: named(route.routes ?? [], name) }
  })
}

const anyFeed = fc.record({
  name: fc.constantFrom('brand', 'y'),
  account: fc.constantFrom('north', 'south', 'west'),
  labels: fc.constantFrom<Record<string, string>[]>({}, { team: 'blue' }, { team: 'red' }),
})

test('where routes look at feeds alone it is what the router does; else nothing is left out', () => {
  let different = 0
  for (const from of [texts, [...texts, ...eventTexts]]) {
    fc.assert(
      fc.property(fc.array(anyRoute(2, from), { maxLength: 4 }), anyFeed, (routes, feed) => {
        const router = createRouter(aTree({ routes: named(routes, 'r') }))
        const { name, account, labels } = feed
        const reached = createReach(router.root)(feed)
        const sent = ['low', 'high'].map((severity) => {
          const event = aThreatEvent({ severity, type: 'leak' })
          const decisions = router.route(aRoutableEvent({ event, feed: name, account, labels }))
          return decisions.filter(({ mode }) => mode === 'live').flatMap(({ sinks }) => sinks)
        })
        expect(sent.flat().filter((sink) => !reached.has(sink))).toEqual([])
        for (const [index, severity] of ['low', 'high'].entries()) {
          const some = createReach(router.root)(feed, severity)
          expect([...some].filter((sink) => !reached.has(sink))).toEqual([])
          expect(sent[index]!.filter((sink) => !some.has(sink))).toEqual([])
        }
        const certain = from === texts ? [...reached] : []
        expect(certain.filter((sink) => !sent.flat().includes(sink))).toEqual([])
        different += reached.size < 4 ? 1 : 0
      }),
      { numRuns: 500 },
    )
  }
  expect(different).toBeGreaterThan(100)
})
