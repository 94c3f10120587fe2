import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { pickNext, type Turn, type TurnKind } from '../../../src/service/pacing/pick-next.ts'
import { spacingMicros } from '../../../src/service/pacing/tier-limiter.ts'

const kinds: TurnKind[] = ['token', 'feed', 'detail', 'command']
const turn = fc.record({
  kind: fc.constantFrom(...kinds),
  name: fc.string(),
  dueSinceMs: fc.nat(),
})
const history = fc.array(fc.constantFrom(...kinds), { maxLength: 9 })

describe('the next slot', () => {
  test('goes to nobody only if nobody waits', () => {
    fc.assert(
      fc.property(fc.array(turn), history, (waiting, recent) => {
        const chosen = pickNext(waiting, recent)
        expect(waiting.length === 0 ? [undefined] : waiting).toContain(chosen)
      }),
    )
  })

  test('goes to no younger turn of the same kind, and to no detail while a feed is due', () => {
    fc.assert(
      fc.property(fc.array(turn, { minLength: 1 }), history, (waiting, recent) => {
        const chosen = pickNext(waiting, recent)!
        const peers = waiting.filter(({ kind }) => kind === chosen.kind)
        expect(chosen.dueSinceMs).toBe(Math.min(...peers.map(({ dueSinceMs }) => dueSinceMs)))
        const hasFeed = waiting.some(({ kind }) => kind === 'feed')
        expect(hasFeed && chosen.kind === 'detail').toBe(false)
      }),
    )
  })

  test('goes to a token before all else', () => {
    const waiting: Turn[] = [aTurn('feed', 1), aTurn('token', 9), aTurn('command', 1)]
    expect(pickNext(waiting, Array(9).fill('feed'))?.kind).toBe('token')
  })

  test('goes to a command when no feed is due', () => {
    expect(pickNext([aTurn('command', 5), aTurn('detail', 9)], [])?.kind).toBe('command')
    expect(pickNext([aTurn('command', 9), aTurn('detail', 5)], [])?.kind).toBe('detail')
    expect(pickNext([aTurn('command', 1), aTurn('feed', 5)], [])?.kind).toBe('feed')
  })

  test('goes to a command once in ten while feeds are always due', () => {
    const served: TurnKind[] = []
    for (let slot = 0; slot < 100; slot += 1) {
      const waiting = [aTurn('feed', slot), aTurn('command', 0), aTurn('detail', 0)]
      served.push(pickNext(waiting, served.slice(-9))!.kind)
    }
    expect(served.filter((kind) => kind === 'command')).toHaveLength(10)
    expect(served.filter((kind) => kind === 'feed')).toHaveLength(90)
  })
})

test('slots stand wide enough apart that no second holds more than the limit', () => {
  fc.assert(
    fc.property(fc.double({ min: 0.01, max: 1000, noNaN: true }), (limit) => {
      const spacing = spacingMicros(limit)
      expect(spacing * limit).toBeGreaterThan(1_029_999.99)
      expect(spacing * limit).toBeLessThan(1_030_000 + limit * 2)
    }),
  )
})

function aTurn(kind: TurnKind, dueSinceMs: number): Turn {
  return { kind, name: kind, dueSinceMs }
}
