import { expect, test } from 'vitest'
import type { CircuitReading } from '../../../src/delivery/circuit.ts'
import { describeFallback, fallbackFrom } from '../../../src/delivery/relief/fallback.ts'

const minute = 60_000
const nowMs = Date.parse('2026-11-01T03:12:00Z')
const pause = { reason: 'it moves', sinceMs: nowMs }

function reading(overrides: Partial<CircuitReading> = {}): CircuitReading {
  const none = { untilMs: undefined, untriedAtMs: undefined, openedAtMs: undefined }
  const rest = { lastSuccessMs: undefined, paused: undefined, disabled: undefined }
  return { state: 'closed', ...none, ...rest, ...overrides }
}

const openFor = (ms: number) => reading({ state: 'open', openedAtMs: nowMs - ms })

const takes = 'its fallback siem takes what waits'
const later = `${takes} from 2026-11-01 03:16:00 UTC on`
const neither = 'its fallback siem takes nothing either'
const tried = 'nothing goes to its fallback siem while one message tries'
const kept = 'nothing goes to its fallback siem while it is paused'
const long = openFor(9 * minute)

test.each<[what: string, own: CircuitReading, other: CircuitReading, said: string | undefined]>([
  ['takes messages', reading(), reading(), undefined],
  ['is down for a minute', openFor(minute), reading(), later],
  ['is down for long', openFor(5 * minute), reading(), takes],
  ['is tried', { ...long, state: 'half_open' }, reading(), tried],
  ['is gone', reading({ state: 'disabled' }), reading(), takes],
  ['is paused', { ...long, paused: pause }, reading(), kept],
  ['is down as its fallback is', long, openFor(minute), neither],
  ['is down while its fallback is gone', long, reading({ state: 'disabled' }), neither],
  ['is down while its fallback is paused', long, reading({ paused: pause }), neither],
  ['is down while its fallback is tried', long, reading({ state: 'half_open' }), takes],
])(
  'of a sink that %s it is said whether its fallback gets what waits, as it does',
  (_what, own, other, said) => {
    const from = fallbackFrom(own, 5 * minute, other)
    expect(typeof from === 'number' && from <= nowMs).toBe(said === takes)
    const sink = { name: 'soc', fallback: 'siem', fallbackAfterMs: 5 * minute }
    const circuits = new Map(Object.entries({ soc: own, siem: other }))
    expect(describeFallback(sink, circuits, nowMs)).toBe(said)
  },
)

test('a sink that is down and has no fallback is said to have none', () => {
  const sink = { name: 'soc', fallback: undefined, fallbackAfterMs: 5 * minute }
  expect(describeFallback(sink, new Map([['soc', openFor(0)]]), nowMs)).toBe('it has no fallback')
})
