import { expect, test } from 'vitest'
import type { Redis } from '../../../src/redis/client.ts'
import { inspectRedis, readServers } from '../../../src/redis/health.ts'

/** A Cluster whose masters answer INFO with these fields. */
function aCluster(...masters: Record<string, string | number>[]): Redis {
  const nodes = masters.map((fields, index) => ({
    options: { host: 'redis', port: index },
    info: async () =>
      Object.entries(fields)
        .map(([name, value]) => `${name}:${value}\r\n`)
        .join(''),
  }))
  return { isCluster: true, ping: async () => 'PONG', nodes: () => nodes } as unknown as Redis
}

test.each([
  ['of one limit', [90, 100], [60, 100]],
  ['of different limits', [90, 100], [600, 1_000]],
  ['of which one has no limit', [90, 100], [600, 0]],
])('of masters %s the memory told is that of the fullest one', async (_which, ...masters) => {
  const all = masters.map(([used = 0, max = 0]) => ({ used_memory: used, maxmemory: max }))
  for (const order of [all, all.toReversed()]) {
    const health = await inspectRedis(aCluster(...order))
    expect(health).toMatchObject({ usedMemoryBytes: 90, memoryLimitBytes: 100, isFull: true })
  }
})

test('of masters without a limit the memory told is the largest, and none is full', async () => {
  const health = await inspectRedis(aCluster({ used_memory: 5, maxmemory: 0 }, { used_memory: 7 }))
  expect(health).toMatchObject({ usedMemoryBytes: 7, memoryLimitBytes: undefined, isFull: false })
})

test('Redis before 7 is too old; Valkey, which calls itself an older Redis, is not', async () => {
  const cluster = aCluster(
    { redis_version: '6.2.14' },
    { redis_version: '7.0.0' },
    { redis_version: '10.1.0' },
    { redis_version: '6.9.9', valkey_version: '8.1.0' },
  )
  expect(await readServers(cluster)).toEqual([
    { name: 'Redis 6.2.14', isTooOld: true },
    { name: 'Redis 7.0.0', isTooOld: false },
    { name: 'Redis 10.1.0', isTooOld: false },
    { name: 'Valkey 8.1.0', isTooOld: false },
  ])
})
