import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  concernsDestination,
  effectOn,
  isUnexplained,
  mayBeMessages,
  decideRetry,
  maxAgeMs,
  pauseAfter,
  type Failure,
} from '../../../src/delivery/send/retry-policy.ts'
import { SinkError, type SinkReason } from '../../../src/sinks/sink.ts'

/** Every reason, what becomes of a young single item, whether the try counts, what it says of the sink. */
const table: Record<SinkReason, [act: string, counts: boolean | undefined, effect: string]> = {
  rate_limited: ['retry', false, 'none'],
  unavailable: ['retry', true, 'fault'],
  timeout: ['retry', true, 'fault'],
  connection_lost: ['retry', true, 'fault'],
  rejected: ['retry', true, 'fault'],
  invalid: ['dead', undefined, 'answered'],
  unauthorized: ['retry', false, 'broken'],
  gone: ['retry', false, 'gone'],
  recipient_refused: ['dead', undefined, 'answered'],
  recipient_deferred: ['retry', true, 'fault'],
  redirected: ['retry', false, 'broken'],
  forbidden_address: ['retry', false, 'broken'],
  misconfigured: ['retry', false, 'broken'],
}
const reasons = Object.keys(table) as SinkReason[]

function failure(reason: SinkReason, overrides: Partial<Failure> = {}): Failure {
  const young = { tries: 0, ageMs: 0, retryAfterMs: undefined, members: 1, random: 0.5 }
  const itself = { attempts: 0, mayBeMessages: false, isNewHalf: false }
  const others = { hasAcceptedOthers: false, newParts: 1, blindParts: 0 }
  return { reason, ...young, ...itself, ...others, ...overrides }
}

const itsOwn = { isMessages: true, isDestinations: false }
const everybodys = { isMessages: false, isDestinations: false }
const recipients = { isMessages: false, isDestinations: true }

/** Written down here: a shorter one gives events up that people were promised. */
const threeDaysMs = 259_200_000

describe('the retry table', () => {
  test.each(reasons)('%s', (reason) => {
    const [act, counts, effect] = table[reason]
    const verdict = decideRetry(failure(reason))
    expect(verdict.act).toBe(act)
    expect(verdict.act === 'retry' ? verdict.counts : undefined).toBe(counts)
    expect(effectOn(reason)).toBe(effect)
  })

  test('a batch that is refused as a whole is split, whatever its age; nothing else ever is', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...reasons),
        fc.integer({ min: 2, max: 50 }),
        fc.nat(),
        (reason, members, ageMs) => {
          const { act } = decideRetry(failure(reason, { members, ageMs }))
          expect(act === 'split').toBe(reason === 'invalid')
        },
      ),
    )
  })

  test('a batch that the receiver had in hand is halved at the third try, or at the next once others passed', () => {
    const lasting = { members: 50, mayBeMessages: true }
    const actsOf = (about: Partial<Failure>) =>
      [0, 1, 2, 3].map(
        (attempts) => decideRetry(failure('unavailable', { ...about, attempts })).act,
      )
    expect(actsOf(lasting)).toEqual(['retry', 'retry', 'split', 'split'])
    expect(actsOf({ ...lasting, hasAcceptedOthers: true })).toEqual(Array(4).fill('split'))
    expect(actsOf({ ...lasting, isNewHalf: true })).toEqual(Array(4).fill('split'))
    expect(actsOf({ ...lasting, members: 1 })).toEqual(Array(4).fill('retry'))
    expect(actsOf({ ...lasting, mayBeMessages: false })).toEqual(Array(4).fill('retry'))
  })

  test('where nothing is accepted, splits make six messages more at most', () => {
    const blind = { members: 50, mayBeMessages: true, attempts: 9 }
    const actAfter = (about: Partial<Failure>) =>
      decideRetry(failure('unavailable', { ...blind, ...about })).act
    expect([5, 6, 100].map((blindParts) => actAfter({ blindParts }))).toEqual([
      'split',
      'retry',
      'retry',
    ])
    expect([6, 7].map((newParts) => actAfter({ newParts }))).toEqual(['split', 'retry'])
    expect(actAfter({ blindParts: 100, hasAcceptedOthers: true })).toBe('split')
    expect(decideRetry(failure('invalid', { ...blind, blindParts: 100 })).act).toBe('split')
  })

  test.each<[string, SinkError, { isMessages: boolean; isDestinations: boolean }]>([
    ['500', new SinkError('unavailable', '', { status: 500 }), itsOwn],
    ['404', new SinkError('rejected', '', { status: 404 }), itsOwn],
    ['403 of a firewall', new SinkError('unauthorized', '', { status: 403 }), itsOwn],
    ['no answer', new SinkError('timeout', ''), itsOwn],
    ['a cut connection', new SinkError('connection_lost', ''), itsOwn],
    ['401', new SinkError('unauthorized', '', { status: 401 }), everybodys],
    ['a refused connection', new SinkError('unavailable', ''), everybodys],
    ['a redirect', new SinkError('redirected', '', { status: 302 }), everybodys],
    ['429', new SinkError('rate_limited', '', { status: 429 }), everybodys],
    ['a full mailbox', new SinkError('recipient_deferred', '', { status: 452 }), recipients],
    ['an unknown mailbox', new SinkError('recipient_refused', '', { status: 550 }), recipients],
    [
      'no relay',
      new SinkError('unavailable', '', { status: 554, scope: 'destination' }),
      recipients,
    ],
  ])('%s is laid at the right door', (_name, error, { isMessages, isDestinations }) => {
    expect(mayBeMessages(error)).toBe(isMessages)
    expect(concernsDestination(error)).toBe(isDestinations)
  })

  const scope = 'destination'
  test.each([
    ['no answer', new SinkError('timeout', ''), true],
    ['one room that cannot be reached', new SinkError('unavailable', '', { scope }), true],
    ['a sink that cannot be reached', new SinkError('unavailable', ''), false],
    ['an answer', new SinkError('timeout', '', { status: 504 }), false],
  ])('%s may be laid at either door, or not', (_name, error, isEither) => {
    expect(isUnexplained(error)).toBe(isEither)
  })

  test('a retry is never sooner than asked nor than a second, and never later than a day', () => {
    const any = fc.record({
      reason: fc.constantFrom(...reasons),
      tries: fc.nat({ max: 10_000 }),
      ageMs: fc.nat({ max: maxAgeMs - 1 }),
      retryAfterMs: fc.option(fc.nat({ max: 900_000 }), { nil: undefined }),
      members: fc.integer({ min: 1, max: 50 }),
      random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    })
    fc.assert(
      fc.property(any, (given) => {
        const verdict = decideRetry(failure(given.reason, given))
        if (verdict.act !== 'retry') return
        expect(verdict.afterMs).toBeGreaterThanOrEqual(Math.max(1_000, given.retryAfterMs ?? 0))
        expect(verdict.afterMs).toBeLessThanOrEqual(86_400_000)
        expect(Number.isInteger(verdict.afterMs)).toBe(true)
      }),
    )
  })

  test('nothing is tried after 72 hours, and everything that heals is tried until then', () => {
    for (const reason of reasons) {
      if (table[reason][0] !== 'retry' || reason === 'gone') continue
      expect(decideRetry(failure(reason, { ageMs: threeDaysMs })).act).toBe('dead')
      const tries = reason === 'rejected' ? 4 : 1_000
      expect(decideRetry(failure(reason, { ageMs: threeDaysMs - 1, tries })).act).toBe('retry')
    }
    expect(decideRetry(failure('rejected', { tries: 5 })).act).toBe('dead')
  })

  test('a sink that heals is tried again within seconds at first, and twice a day at last', () => {
    const waitsMs = (random: number) =>
      Array.from({ length: 11 }, (_, tries) => {
        const verdict = decideRetry(failure('timeout', { tries, random }))
        return verdict.act === 'retry' ? verdict.afterMs : verdict.act
      })
    const seconds = [5, 30, 120, 600, 1800, 3600, 7200, 14_400, 28_800, 43_200, 43_200]
    expect(waitsMs(0.5)).toEqual(seconds.map((one) => one * 1000))
    expect(waitsMs(0)).toEqual(seconds.map((one) => one * 800)) // a fifth sooner, so that not all come at once
    expect(waitsMs(1)).toEqual(seconds.map((one) => one * 1200))
  })

  test('a limit that names no time is respected for ten seconds; what needs an operator waits for the circuit', () => {
    expect(decideRetry(failure('rate_limited', { tries: 7 }))).toMatchObject({ afterMs: 10_000 })
    expect(decideRetry(failure('unauthorized', { tries: 7 }))).toMatchObject({ afterMs: 30_000 })
    expect(decideRetry(failure('gone', { tries: 7 }))).toMatchObject({ afterMs: 30_000 })
  })

  test('the whole sink is left alone for as long as it asks, or where its limit is known and was passed', () => {
    const pause = (reason: SinkReason, retryAfterMs?: number, limitPerSecond?: number) =>
      pauseAfter({ reason, retryAfterMs }, limitPerSecond)
    expect(pause('unavailable', 7)).toBe(7)
    expect(pause('rate_limited', 7, 5)).toBe(7)
    expect(pause('rate_limited', undefined, 5)).toBe(10_000)
    expect(pause('rate_limited')).toBeUndefined()
    expect(pause('unavailable', undefined, 5)).toBeUndefined()
  })

  test('what a sink that is gone has waiting never dies of its age', () => {
    expect(decideRetry(failure('gone', { ageMs: 100 * maxAgeMs })).act).toBe('retry')
  })
})
