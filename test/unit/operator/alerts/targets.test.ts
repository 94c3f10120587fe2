import fc from 'fast-check'
import { expect, test } from 'vitest'
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

test('a notice goes through the first sink that takes messages and is not what it is about', () => {
  const some = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'))
  fc.assert(
    fc.property(some, some, fc.constantFrom(null, 'a', 'b'), (order, deaf, about) => {
      const others = order.filter((sink) => sink !== about)
      const able = order.filter((sink) => !deaf.includes(sink))
      const best = able.find((sink) => sink !== about) ?? able[0]
      expect(chooseTarget(order, deaf, about)).toBe(best ?? others[0] ?? null)
    }),
  )
})
