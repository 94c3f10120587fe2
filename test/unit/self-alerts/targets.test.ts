import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type SinkHealth, takesMessages } from '../../../src/self-alerts/conditions.ts'
import { chooseTarget, orderTargets } from '../../../src/self-alerts/publisher.ts'

const sinks = [
  { name: 'siem', type: 'webhook', audience: 'machines' },
  { name: 'soc', type: 'slack', audience: 'people' },
  { name: 'ops', type: 'slack', audience: 'people' },
  { name: 'oncall', type: 'email', audience: 'people' },
  { name: 'lab', type: 'webhook', audience: 'machines' },
] as const

function orderOf(given: { sink: string; fallback?: string }, fallback?: string): string[] {
  const config = { fallback: undefined, afterMs: 0, ...given }
  const withFallback = sinks.map((one) => (one.name === given.sink ? { ...one, fallback } : one))
  return orderTargets(config, withFallback)
}

test('a second sink that the file names is the only other one', () => {
  expect(orderOf({ sink: 'soc', fallback: 'lab' }, 'oncall')).toEqual(['soc', 'lab'])
})

test('without one, the fallback comes second', () => {
  expect(orderOf({ sink: 'soc' }, 'lab')).toEqual(['soc', 'lab', 'oncall', 'ops', 'siem'])
})

test('the others are tried in the order of the file: people by another way, people by the same, machines', () => {
  expect(orderOf({ sink: 'soc' })).toEqual(['soc', 'oncall', 'ops', 'siem', 'lab'])
  expect(orderOf({ sink: 'oncall' })).toEqual(['oncall', 'soc', 'ops', 'siem', 'lab'])
  expect(orderOf({ sink: 'siem' })).toEqual(['siem', 'soc', 'ops', 'oncall', 'lab'])
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
