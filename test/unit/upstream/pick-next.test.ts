import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  pickNext,
  spacingMicros,
  type SlotRequest,
  type RequestKind,
} from '../../../src/upstream/rate-limits.ts'

const kinds: RequestKind[] = ['token', 'feed', 'rescan', 'detail', 'command']
const patientKinds: RequestKind[] = ['rescan', 'detail', 'command']
const turn = fc.record({
  kind: fc.constantFrom(...kinds),
  name: fc.string(),
  dueSinceMs: fc.nat(),
})
const history = fc.array(fc.constantFrom(...kinds), { maxLength: 9 })

describe('the next slot', () => {
  test('goes to a feed that is due, unless another kind was passed over nine times', () => {
    fc.assert(
      fc.property(fc.array(turn), history, (waiting, recent) => {
        const chosen = pickNext([...waiting, aTurn('feed', 0)], recent)!
        const isOwed = recent.length === 9 && !recent.includes(chosen.kind)
        expect(chosen.kind === 'feed' || chosen.kind === 'token' || isOwed).toBe(true)
      }),
    )
  })

  test('goes to a token before all else', () => {
    const waiting: SlotRequest[] = [aTurn('feed', 1), aTurn('token', 9), aTurn('command', 1)]
    expect(pickNext(waiting, Array(9).fill('feed'))?.kind).toBe('token')
  })

  test.each(patientKinds)('goes to a %s by its debt when no feed is due', (kind) => {
    for (const other of patientKinds.filter((candidate) => candidate !== kind)) {
      expect(pickNext([aTurn(kind, 5), aTurn(other, 9)], [])?.kind).toBe(kind)
      expect(pickNext([aTurn(other, 5), aTurn(kind, 9)], [])?.kind).toBe(other)
    }
    expect(pickNext([aTurn(kind, 1), aTurn('feed', 5)], [])?.kind).toBe('feed')
  })

  test('goes to the full event of the most severe, and among equals to the longest due', () => {
    const of = (rank: number, dueSinceMs: number) => ({ ...aTurn('detail', dueSinceMs), rank })
    const waiting = [of(4, 1), of(5, 9), of(5, 8), of(4, 2)]
    expect(pickNext(waiting, [])).toEqual(of(5, 8))
    expect(pickNext(waiting.toReversed(), [])).toEqual(of(5, 8))
    expect(pickNext([...waiting, aTurn('rescan', 3)], [])).toEqual(of(5, 8)) // one waits since 1
  })

  test('goes once in ten to rescans, details and commands each, and else to feeds', () => {
    const served = serve(200, (slot) => [
      aTurn('feed', slot),
      ...patientKinds.map((kind) => aTurn(kind, 0)),
    ])
    const settled = served.slice(100)
    for (const kind of patientKinds) expect(shareOf(settled, kind)).toBe(10)
    expect(shareOf(settled, 'feed')).toBe(70)
  })

  test('lets no kind starve, whoever else waits and however old their debts are', () => {
    const others = fc.array(
      turn.filter(({ kind }) => kind !== 'token'),
      { maxLength: 5 },
    )
    fc.assert(
      fc.property(
        fc.array(others, { minLength: 40, maxLength: 60 }),
        fc.constantFrom<RequestKind>('feed', ...patientKinds),
        (crowds, kind) => {
          const youngest = Number.MAX_SAFE_INTEGER
          const served = serve(crowds.length, (slot) => [...crowds[slot]!, aTurn(kind, youngest)])
          // Nine slots to fall behind, and at most the two other patient kinds before it then.
          expect(longestGap(served, kind)).toBeLessThanOrEqual(11)
        },
      ),
    )
  })
})

test('slots stand wide enough apart that no second holds more than the limit', () => {
  fc.assert(
    fc.property(fc.double({ min: 0.01, max: 1000, noNaN: true }), (limit) => {
      const spacing = spacingMicros(limit)
      expect(spacing * limit).toBeGreaterThan(1_049_999.99)
      expect(spacing * limit).toBeLessThan(1_050_000 + limit * 2)
    }),
  )
})

function aTurn(kind: RequestKind, dueSinceMs: number): SlotRequest {
  return { kind, name: kind, dueSinceMs }
}

/** The kinds that get so many slots in a row, `waitingAt` telling who waits for each. */
function serve(slots: number, waitingAt: (slot: number) => SlotRequest[]): RequestKind[] {
  const served: RequestKind[] = []
  for (let slot = 0; slot < slots; slot += 1) {
    served.push(pickNext(waitingAt(slot), served.slice(-9))!.kind)
  }
  return served
}

function shareOf(served: readonly RequestKind[], wanted: RequestKind): number {
  return served.filter((kind) => kind === wanted).length
}

/** The most slots in a row that went to other kinds. */
function longestGap(served: readonly RequestKind[], wanted: RequestKind): number {
  const gaps = served.join(' ').split(wanted)
  return Math.max(...gaps.map((gap) => gap.split(' ').filter((word) => word !== '').length))
}
