/** What the service documents is used, and for a day after a refusal it is not. */
import { expect, test } from 'vitest'
import { createLogger } from '../../../src/lib/logger.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { type Capabilities, createCapabilities } from '../../../src/upstream/access/capabilities.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const dayMs = 24 * 3_600_000

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
        logger,
        keyFingerprint: () => scope,
        account: 'main',
      }),
    logged: () => lines.join('\n'),
    leftMs: (scope, name) => tests.redis.pttl(keys.shared('capability', scope, name)),
  }
}

test('a refusal is known to all processes of a key for a day, and logged once', async () => {
  const memory = aMemory()
  expect(await memory.of('key').isRefused('assets/v4')).toBe(false)
  for (const _time of [1, 2]) await memory.of('key').refuse('assets/v4', 'the service answers 405')
  expect(await memory.of('key').isRefused('assets/v4')).toBe(true)
  const leftMs = await memory.leftMs('key', 'assets/v4')
  expect(leftMs).toBeGreaterThan(dayMs * 0.9)
  expect(leftMs).toBeLessThanOrEqual(dayMs)
  expect(memory.logged().match(/because the service answers 405/g)).toHaveLength(1)
  expect(memory.logged()).toContain('"level":"warn"')
})

test('a refusal is not one of another key, whose user may have the permission', async () => {
  const memory = aMemory()
  await memory.of('key 1').refuse('astp', 'the service answers 403')
  expect(await memory.of('key 2').isRefused('astp')).toBe(false)
})
