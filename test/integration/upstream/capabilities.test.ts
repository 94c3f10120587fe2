import { describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { type Capabilities, createCapabilities } from '../../../src/upstream/capabilities.ts'
import { UpstreamError } from '../../../src/upstream/error.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const dayMs = 24 * 3_600_000
const clock: Clock = { ...systemClock, now: () => 1_800_000_000_000 }

interface Memory {
  of: (scope: string) => Capabilities
  logged: () => string
  /** Milliseconds until Redis forgets `name`. */
  leftMs: (scope: string, name: string) => Promise<number>
}

let prefixes = 0

function aMemory(): Memory {
  const keys = createKeys(`capabilities-${(prefixes += 1)}`)
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const logger = createLogger({ level: 'info', destination })
  return {
    of: (scope) =>
      createCapabilities({
        redis: tests.redis,
        keys,
        clock,
        logger,
        keyFingerprint: () => scope,
        account: 'main',
      }),
    logged: () => lines.join('\n'),
    leftMs: (scope, name) => tests.redis.pttl(keys.shared('capability', scope, name)),
  }
}

function refusing(status: number): () => Promise<never> {
  return () => Promise.reject(new UpstreamError('rejected', 'no', { status }))
}

describe('what a server has', () => {
  test('is asked once by all processes of a key, and remembered for 30 days', async () => {
    const memory = aMemory()
    let asked = 0
    const ask = () => Promise.resolve((asked += 1))
    expect(await memory.of('key 1').read('tenant_events')).toBeUndefined()
    expect(await memory.of('key 1').find('tenant_events', ask)).toBe(true)
    expect(await memory.of('key 1').find('tenant_events', ask)).toBe(true)
    expect(asked).toBe(1)
    expect(await memory.of('key 1').read('tenant_events')).toEqual({ has: true, atMs: clock.now() })
    const left = await memory.leftMs('key 1', 'tenant_events')
    expect(left).toBeGreaterThan(29 * dayMs)
    expect(left).toBeLessThanOrEqual(30 * dayMs)
  })

  test.each([
    [403, 'an hour', dayMs / 24],
    [404, 'a day', dayMs],
    [405, 'a day', dayMs],
  ])('is not there after a %i, which is remembered for %s', async (status, _long, ttlMs) => {
    const memory = aMemory()
    expect(await memory.of('key').find('filters', refusing(status))).toBe(false)
    expect(await memory.of('key').find('filters', () => Promise.resolve())).toBe(false)
    const leftMs = await memory.leftMs('key', 'filters')
    expect(leftMs).toBeGreaterThan(ttlMs * 0.9)
    expect(leftMs).toBeLessThanOrEqual(ttlMs)
    expect(memory.logged()).toBe('')
  })

  test.each([
    [429, 'rate_limited'],
    [503, 'unavailable'],
    [401, 'auth'],
  ] as const)('stays open after a %i, so that it is asked again', async (status, reason) => {
    const memory = aMemory()
    const failure = new UpstreamError(reason, 'not now', { status })
    const asking = memory.of('key').find('filters', () => Promise.reject(failure))
    await expect(asking).rejects.toBe(failure)
    expect(await memory.of('key').read('filters')).toBeUndefined()
  })

  test('is not believed where the answer is nonsense: an hour without it, and one warning', async () => {
    const memory = aMemory()
    const nonsense = new UpstreamError(
      'contract',
      'the answer is not JSON, where the API gives JSON',
    )
    const ask = (): Promise<never> => Promise.reject(nonsense)
    expect(await memory.of('key').find('filters', ask)).toBe(false)
    expect(await memory.of('key').find('filters', ask)).toBe(false)
    expect(await memory.leftMs('key', 'filters')).toBeLessThanOrEqual(3_600_000)
    expect(memory.logged().match(/"filters\\" is unclear/g)).toHaveLength(1)
    expect(memory.logged()).toContain('not JSON')
  })

  test('is not given up for 30 days because a gateway in between answers by a web page (403)', async () => {
    const memory = aMemory()
    const page = new UpstreamError('auth', 'forbidden', { status: 403, fault: 'html' })
    expect(await memory.of('key').find('astp', () => Promise.reject(page))).toBe(false)
    expect(await memory.leftMs('key', 'astp')).toBeLessThanOrEqual(3_600_000)
  })
})
