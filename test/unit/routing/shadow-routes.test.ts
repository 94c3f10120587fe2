import { expect, test } from 'vitest'
import { createRouter } from '../../../src/routing/router.ts'
import { aThreatEvent } from '../../support/events.ts'
import { aRoutableEvent, aTree, type TestRoute } from '../../support/routing.ts'

/** `route mode` of every decision about an event of this type. */
function decided(routes: TestRoute[], type = 'paste'): string[] {
  const input = aRoutableEvent({ event: aThreatEvent({ type }) })
  return createRouter(aTree({ routes }))
    .route(input)
    .map(({ route, mode }) => `${route} ${mode}`)
}

const trial: TestRoute = { name: 'trial', matchers: ['type="paste"'], mode: 'shadow' }
const rest: TestRoute = { name: 'rest' }

test('a shadow route that matches is recorded, and its siblings are asked', () => {
  expect(decided([trial, rest])).toEqual(['trial shadow', 'rest live'])
  expect(decided([{ ...trial, continue: true }, rest])).toEqual(['trial shadow', 'rest live'])
})

test('a shadow route alone leaves the event to its parent', () => {
  expect(decided([trial])).toEqual(['root live', 'trial shadow'])
  const parent = { name: 'parent', routes: [trial] }
  expect(decided([parent, rest])).toEqual(['parent live', 'trial shadow'])
})

test('a shadow route behind a live one that takes the event is not asked', () => {
  expect(decided([rest, trial])).toEqual(['rest live'])
})

test('a shadow route that does not match leaves no trace', () => {
  expect(decided([trial, rest], 'chat')).toEqual(['rest live'])
})

test('everything below a shadow route is shadow, and chosen there by the usual rules', () => {
  const tree = { ...trial, routes: [{ name: 'first' }, { name: 'second' }] }
  expect(decided([tree, rest])).toEqual(['first shadow', 'rest live'])
  const twice = { ...trial, routes: [{ name: 'inner', mode: 'shadow' as const }] }
  expect(decided([twice, rest])).toEqual(['trial shadow', 'inner shadow', 'rest live'])
})

test('what explain says of a shadow route is what happened', () => {
  const router = createRouter(aTree({ routes: [trial, rest] }))
  const { visits } = router.explain(aRoutableEvent({ event: aThreatEvent({ type: 'paste' }) }))
  expect(
    visits.map(({ route, mode, taken, stopsSiblings }) => [route, mode, taken, stopsSiblings]),
  ).toEqual([
    ['root', 'live', false, true],
    ['trial', 'shadow', true, false],
    ['rest', 'live', true, true],
  ])
})
