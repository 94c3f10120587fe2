import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  inhibitRulesConfig,
  sourceKeys,
  targetKeys,
  type InhibitRule,
} from '../../../src/routing/inhibition.ts'
import type { RoutableEvent } from '../../../src/routing/router.ts'
import type { ThreatEvent } from '../../../src/event.ts'
import { aThreatEvent } from '../../support/events.ts'
import { aRoutableEvent } from '../../support/routing.ts'

const written = {
  source_matchers: ['type="ransomleak"'],
  target_matchers: ['type="paste"'],
  equal: ['identifier'],
  window: '1h',
}

function rules(...overrides: object[]): InhibitRule[] {
  return inhibitRulesConfig.parse(overrides.map((one) => ({ ...written, ...one })))
}

function anInput(event: Partial<ThreatEvent>, rest: Partial<RoutableEvent> = {}): RoutableEvent {
  return aRoutableEvent({ event: aThreatEvent(event), ...rest })
}

const source = anInput({ type: 'ransomleak' })
const target = anInput({ type: 'paste' })

/** Whether the source suppresses the target, by the first of the rules. */
function suppresses(from: RoutableEvent, to: RoutableEvent, given = rules({})): boolean {
  const set = sourceKeys(given, from).map(({ key }) => key)
  return targetKeys(given, to).some(({ key }) => set.includes(key))
}

test('a source and its target share a key, each on its side only', () => {
  const [key] = sourceKeys(rules({}), source)
  expect(key).toEqual({
    rule: 'inhibit.1',
    key: expect.stringMatching(/^[0-9a-f]{32}$/),
    windowMs: 3_600_000,
  })
  expect(targetKeys(rules({}), target)).toEqual([key])
  expect(sourceKeys(rules({}), target)).toEqual([])
  expect(targetKeys(rules({}), source)).toEqual([])
})

test('what both lack is not equal, and without equal every source suppresses every target', () => {
  const onTeam = rules({ equal: ['team'] })
  expect(suppresses(source, target, onTeam)).toBe(false)
  const labelled = { labels: { team: 'brand' } }
  const [from, to] = ['ransomleak', 'paste'].map((type) => anInput({ type }, labelled))
  expect(suppresses(from!, to!, onTeam)).toBe(true)
  const elsewhere = anInput({ type: 'paste', identifiers: [] }, { feed: 'other' })
  expect(suppresses(source, elsewhere, rules({ equal: [] }))).toBe(true)
})

test('an event that is a source of a rule is suppressed by none of its sources', () => {
  const both = rules({ target_matchers: ['severity>=low'] })
  expect(sourceKeys(both, source)).toHaveLength(1)
  expect(targetKeys(both, source)).toEqual([])
  expect(suppresses(source, target, both)).toBe(true)
})

test('an event of an unknown severity is never suppressed', () => {
  expect(targetKeys(rules({}), anInput({ type: 'paste', severity: 'apocalyptic' }))).toEqual([])
})

test('what people closed at the service suppresses nothing', () => {
  const closedAtMs = Date.UTC(2026, 10, 1)
  for (const closed of [{ ignoredAtMs: closedAtMs }, { remediatedAtMs: closedAtMs }]) {
    expect(sourceKeys(rules({}), anInput({ type: 'ransomleak', ...closed }))).toEqual([])
  }
})

test.each([
  ['name', { name: 'leaks' }],
  ['source', { source_matchers: ['type="ransomleak"', 'kind="event"'] }],
  ['target', { target_matchers: ['type=~"paste"'] }],
  ['window', { window: '2h' }],
  ['equal', { equal: ['identifier', 'feed'] }],
])('a rule with another %s has other keys', (_what, change) => {
  const [before] = targetKeys(rules({}), target)
  const [after] = targetKeys(rules(change), target)
  expect(after?.key).not.toBe(before?.key)
})

test('two events share a key just where they have the same sets under every name', () => {
  const tags = fc.array(fc.constantFrom('', 'a', 'b', 'a, b', '","'), { maxLength: 3 })
  const byTags = rules({ equal: ['tag', 'source'] })
  const text = fc.constantFrom('x', 'y')
  fc.assert(
    fc.property(tags, text, tags, text, (tagsOne, sourceOne, tagsOther, sourceOther) => {
      const from = anInput({ type: 'ransomleak', tags: tagsOne, source: sourceOne })
      const to = anInput({ type: 'paste', tags: tagsOther, source: sourceOther })
      const isSame =
        sourceOne === sourceOther &&
        tagsOne.every((tag) => tagsOther.includes(tag)) &&
        tagsOther.every((tag) => tagsOne.includes(tag)) &&
        tagsOne.some((tag) => tag !== '')
      expect(suppresses(from, to, byTags)).toBe(isSame)
    }),
    { numRuns: 500 },
  )
})

test('a source suppresses its targets for a day at most', () => {
  expect(rules({ window: '24h' })[0]?.windowMs).toBe(86_400_000)
  expect(() => rules({ window: '1441m' })).toThrow('too long')
})
