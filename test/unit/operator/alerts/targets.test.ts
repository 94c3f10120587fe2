import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type SinkHealth, takesMessages } from '../../../../src/operator/alerts/conditions.ts'
import { chooseTarget, orderTargets } from '../../../../src/operator/alerts/publisher.ts'

const sinks = [
  { name: 'siem', audience: 'machines' },
  { name: 'soc', audience: 'people' },
  { name: 'oncall', audience: 'people' },
  { name: 'lab', audience: 'machines' },
] as const

test.each([
  ['a second sink that the file names is the only other one', 'lab', 'oncall', ['soc', 'lab']],
  ['without one, the fallback comes second', undefined, 'lab', ['soc', 'lab', 'oncall', 'siem']],
  ['without either, people come first', undefined, undefined, ['soc', 'oncall', 'siem', 'lab']],
])('%s', (_name, named, fallback, order) => {
  const all = sinks.map((one) => (one.name === 'soc' ? { ...one, fallback } : one))
  expect(orderTargets({ sink: 'soc', fallback: named }, all)).toEqual(order)
})

const health = fc.record({
  name: fc.constantFrom('a', 'b', 'c', 'd'),
  circuit: fc.constantFrom('closed', 'open', 'half_open', 'disabled'),
  disabled: fc.constant(undefined),
  paused: fc.constantFrom(undefined, { reason: 'works', sinceMs: 0 }),
  deadLetters: fc.nat(2),
})

test('a notice goes through the first sink that takes messages and is not what it is about', () => {
  const given = fc.tuple(
    fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd')),
    fc.uniqueArray(health, { selector: ({ name }) => name }) as fc.Arbitrary<SinkHealth[]>,
    fc.constantFrom(null, 'a', 'b'),
  )
  fc.assert(
    fc.property(given, ([order, healths, about]) => {
      const chosen = chooseTarget(order, healths, about)
      const others = order.filter((sink) => sink !== about)
      const able = order.filter((sink) => takesMessages(healths, sink))
      const best = able.find((sink) => sink !== about) ?? able[0]
      expect(chosen).toBe(best ?? others[0] ?? null)
    }),
  )
})
