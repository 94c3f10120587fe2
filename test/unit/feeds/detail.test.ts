import { describe, expect, test } from 'vitest'
import { fetchDetail } from '../../../src/delivery/send/full-events.ts'
import { type Clock, defaultTimings, systemClock } from '../../../src/lib/clock.ts'
import type { UpstreamClient } from '../../../src/upstream/client.ts'
import { UpstreamError, type UpstreamReason } from '../../../src/upstream/error.ts'

/** A service that refuses with each of the errors in turn, and answers then. */
async function fetchAfter(errors: UpstreamError[], stop = new AbortController()) {
  const slept: number[] = []
  const clock: Clock = {
    ...systemClock,
    sleep(ms) {
      slept.push(ms)
      if (slept.length > 5) stop.abort()
      return Promise.resolve()
    },
  }
  const slots: unknown[] = []
  const getEvent = ({ slot }: { slot: unknown }) => {
    slots.push(slot)
    const error = errors.shift()
    if (error) return Promise.reject(error)
    return Promise.resolve({ kind: 'detail', data: { password: 'hunter22', host: 'a' } })
  }
  const client = { getEvent } as unknown as UpstreamClient
  const parts = { signal: stop.signal, clock, timings: defaultTimings }
  const detail = await fetchDetail(client, { uid: 'paste/site/1', rank: 4 }, parts)
  return { detail, slept, slots }
}

const refused = (reason: UpstreamReason, retryAfterMs?: number): UpstreamError =>
  new UpstreamError(reason, 'refused', { retryAfterMs })

describe('the full event', () => {
  test.each(['rejected', 'invalid', 'contract'] as const)(
    'does not hold its message up where no repetition mends what is wrong (%s)',
    async (reason) => {
      const told = await fetchAfter([refused(reason)])
      expect(told).toMatchObject({ detail: 'unavailable', slept: [] })
      expect(told.slots).toMatchObject([{ kind: 'detail', name: 'paste/site/1', rank: 4 }])
    },
  )

  test.each(['auth', 'rate_limited', 'unavailable', 'timeout'] as const)(
    'is asked for again after %s, as late as the service asks for, and comes masked',
    async (reason) => {
      const { detail, slept } = await fetchAfter([refused(reason), refused(reason, 90_000)])
      expect(detail).toEqual({ password: 'h••••2', host: 'a' })
      expect(slept).toEqual([defaultTimings.detailRetryMs, 90_000])
    },
  )

  test('is given up when its time is over', async () => {
    const errors = Array.from({ length: 20 }, () => refused('unavailable'))
    expect((await fetchAfter(errors)).detail).toBe('unavailable')
    const stop = new AbortController()
    stop.abort()
    expect((await fetchAfter([], stop)).detail).toBe('unavailable')
  })
})
