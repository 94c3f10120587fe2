import { expect, test } from 'vitest'
import type { CircuitReading } from '../../../src/delivery/circuit.ts'
import { describeFallback, fallbackFrom } from '../../../src/delivery/fallback.ts'

const minute = 60_000
const nowMs = Date.parse('2026-11-01T03:12:00Z')
const pause = { reason: 'it moves', sinceMs: nowMs }

function reading(overrides: Partial<CircuitReading> = {}): CircuitReading {
  const none = { untilMs: undefined, untriedAtMs: undefined, openedAtMs: undefined }
  const rest = { lastSuccessMs: undefined, paused: undefined, disabled: undefined }
  return { state: 'closed', ...none, ...rest, ...overrides }
}

const openFor = (ms: number) => reading({ state: 'open', openedAtMs: nowMs - ms })

test.each<[what: string, own: CircuitReading, other: CircuitReading, goes: boolean, said?: string]>(
  [
    ['takes messages', reading(), reading(), false],
    [
      'is down for a minute',
      openFor(minute),
      reading(),
      false,
      'siem takes what waits from 2026-11-01 03:16:00 UTC on',
    ],
    [
      'is down for long',
      openFor(5 * minute),
      reading(),
      true,
      'its fallback siem takes what waits',
    ],
    [
      'is tried',
      { ...openFor(9 * minute), state: 'half_open' },
      reading(),
      false,
      'nothing goes to its fallback siem while one message tries',
    ],
    [
      'is gone',
      reading({ state: 'disabled' }),
      reading(),
      true,
      'its fallback siem takes what waits',
    ],
    [
      'is paused',
      { ...openFor(9 * minute), paused: pause },
      reading(),
      false,
      'nothing goes to its fallback siem while it is paused',
    ],
    [
      'is down as its fallback is',
      openFor(9 * minute),
      openFor(minute),
      false,
      'siem takes nothing either',
    ],
    [
      'is down while its fallback is gone',
      openFor(9 * minute),
      reading({ state: 'disabled' }),
      false,
      'siem takes nothing either',
    ],
    [
      'is down while its fallback is paused',
      openFor(9 * minute),
      reading({ paused: pause }),
      false,
      'siem takes nothing either',
    ],
    [
      'is down while its fallback is tried',
      openFor(9 * minute),
      reading({ state: 'half_open' }),
      true,
      'its fallback siem takes what waits',
    ],
  ],
)(
  'of a sink that %s it is said whether its fallback gets what waits, as it does',
  (_what, own, other, goes, said) => {
    const from = fallbackFrom(own, 5 * minute, other)
    expect(typeof from === 'number' && from <= nowMs).toBe(goes)
    const sink = { name: 'soc', fallback: 'siem', fallbackAfterMs: 5 * minute }
    const words = describeFallback(
      sink,
      new Map([
        ['soc', own],
        ['siem', other],
      ]),
      nowMs,
    )
    if (said === undefined) expect(words).toBeUndefined()
    else expect(words).toMatch(new RegExp(`${said}$`))
  },
)

test('a sink that is down and has no fallback is said to have none', () => {
  const sink = { name: 'soc', fallback: undefined, fallbackAfterMs: 5 * minute }
  expect(describeFallback(sink, new Map([['soc', openFor(0)]]), nowMs)).toBe('it has no fallback')
})
