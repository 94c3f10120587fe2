import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { planItems, type RouteDecision } from '../../../src/routing/router.ts'

const destinations: Record<string, string[]> = {
  soc: ['soc'],
  siem: ['siem'],
  oncall: ['oncall:1', 'oncall:2'],
}

function destinationsOf(sink: string): string[] {
  const known = destinations[sink]
  if (!known) throw new Error(`no sink ${sink}`)
  return known
}

function aDecision(route: string, ...sinks: string[]): RouteDecision {
  return { route, path: ['root', route], mode: 'live', sinks, why: [] }
}

function aShadow(route: string, ...sinks: string[]): RouteDecision {
  return { ...aDecision(route, ...sinks), mode: 'shadow' }
}

describe('the items of an event', () => {
  test('one per destination, in the order in which the routes name the sinks', () => {
    expect(
      planItems([aDecision('urgent', 'siem', 'oncall'), aDecision('all', 'soc')], destinationsOf),
    ).toEqual([
      { sink: 'siem', destination: 'siem', routes: ['urgent'] },
      { sink: 'oncall', destination: 'oncall:1', routes: ['urgent'] },
      { sink: 'oncall', destination: 'oncall:2', routes: ['urgent'] },
      { sink: 'soc', destination: 'soc', routes: ['all'] },
    ])
  })

  test('what only shadow routes name is recorded, behind what is sent', () => {
    expect(
      planItems([aShadow('trial', 'oncall', 'soc'), aDecision('urgent', 'soc')], destinationsOf),
    ).toEqual([
      { sink: 'soc', destination: 'soc', routes: ['urgent', 'trial'] },
      { sink: 'oncall', destination: 'oncall:1', routes: ['trial'], isShadow: true },
      { sink: 'oncall', destination: 'oncall:2', routes: ['trial'], isShadow: true },
    ])
  })

  test('a live route decides about the item, wherever a shadow route stands', () => {
    const live = aDecision('urgent', 'soc')
    for (const decisions of [
      [aShadow('trial', 'soc'), live],
      [live, aShadow('trial', 'soc')],
    ]) {
      expect(planItems(decisions, destinationsOf)).toEqual([
        { sink: 'soc', destination: 'soc', routes: ['urgent', 'trial'] },
      ])
    }
  })

  test('a sink that is not known is a failure, not a lost item', () => {
    expect(() => planItems([aDecision('urgent', 'gone')], destinationsOf)).toThrow('no sink gone')
  })

  test('no destination is forgotten, none comes twice, and each knows every route that named it', () => {
    const sinks = Object.keys(destinations)
    const decisions = fc.uniqueArray(
      fc.record({
        route: fc.constantFrom('a', 'b', 'c', 'd'),
        sinks: fc.array(fc.constantFrom(...sinks)),
      }),
      { selector: ({ route }) => route },
    )
    fc.assert(
      fc.property(decisions, (given) => {
        const items = planItems(
          given.map(({ route, sinks: named }) => aDecision(route, ...named)),
          destinationsOf,
        )
        const all = new Set(given.flatMap(({ sinks: named }) => named.flatMap(destinationsOf)))
        expect(items.map(({ destination }) => destination)).toEqual([...all])
        for (const { sink, routes } of items) {
          const namedBy = given.filter(({ sinks: named }) => named.includes(sink))
          expect(routes).toEqual(namedBy.map(({ route }) => route))
        }
      }),
    )
  })
})
