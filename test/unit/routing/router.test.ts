import { describe, expect, test } from 'vitest'
import { createRouter, matcherValues } from '../../../src/routing/router.ts'
import { aThreatEvent } from '../../support/events.ts'
import { aRoutableEvent as anInput, aTree, type TestRoute } from '../../support/routing.ts'

/** The routes that take an event of this severity and type. */
function routesFor(
  routes: TestRoute[],
  event: { severity?: string; type?: string } = {},
): string[] {
  const router = createRouter(aTree({ routes }))
  return router.route(anInput({ event: aThreatEvent(event) })).map(({ route }) => route)
}

describe('which route takes an event', () => {
  const urgent = { name: 'urgent', matchers: ['severity>=high'] }

  test('all matchers of a route must hold', () => {
    const both = { name: 'both', matchers: ['severity>=high', 'type="paste"'] }
    expect(routesFor([both])).toEqual(['root'])
    expect(routesFor([both], { type: 'paste' })).toEqual(['both'])
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
        mode: 'live',
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

  test('grouping is inherited key by key, muting is not', () => {
    const router = createRouter(
      aTree({
        routes: [
          {
            name: 'brand',
            groupBy: [],
            groupWaitMs: 0,
            muteTimeIntervals: ['night'],
            onMute: 'drop',
            routes: [{ name: 'urgent', groupIntervalMs: 60_000 }],
          },
        ],
      }),
    )
    const grouping = { groupBy: [], groupWaitMs: 0 }
    const muted = { muteTimeIntervals: ['night'], onMute: 'drop' }
    const unmuted = { muteTimeIntervals: [], onMute: 'hold' }
    expect(router.root).toMatchObject({ groupBy: ['feed', 'type'], groupWaitMs: 10_000 })
    expect(router.node('brand')).toMatchObject({ ...grouping, ...muted, groupIntervalMs: 300_000 })
    expect(router.node('urgent')).toMatchObject({
      ...grouping,
      ...unmuted,
      groupIntervalMs: 60_000,
    })
    expect(router.node('root')).toBe(router.root)
    expect(router.node('gone')).toBeUndefined()
  })

  test('changing a decision changes no later one', () => {
    const router = createRouter(tree)
    router.route(anInput())[0]!.sinks.push('elsewhere')
    expect(router.route(anInput())[0]!.sinks).toEqual(['soc', 'siem'])
  })

  test('a root without sinks or grouping, with matchers, or in shadow is refused', () => {
    expect(() => createRouter(aTree({ sinks: undefined }))).toThrow('needs sinks')
    expect(() => createRouter(aTree({ matchers: ['tag="x"'] }))).toThrow('takes no matchers')
    expect(() => createRouter(aTree({ mode: 'shadow' }))).toThrow('is live')
    expect(() => createRouter(aTree({ groupBy: undefined }))).toThrow('needs its grouping')
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
    expect(matcherValues(input, name)).toEqual(values)
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
    const passed = { mode: 'live', matched: true, failed: null, stopsSiblings: true }
    const failed = { mode: 'live', matched: false, taken: false, stopsSiblings: false }
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
})
