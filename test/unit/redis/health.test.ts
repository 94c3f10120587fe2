import { expect, test } from 'vitest'
import type { Redis } from '../../../src/redis/connection.ts'
import { inspectRedis } from '../../../src/redis/health.ts'

/** A Cluster whose masters answer INFO with these figures. */
function aCluster(...masters: { used: number; max: number }[]): Redis {
  const nodes = masters.map(({ used, max }, index) => ({
    options: { host: 'redis', port: index },
    info: async () => `used_memory:${used}\r\nmaxmemory:${max}\r\n`,
  }))
  return { isCluster: true, ping: async () => 'PONG', nodes: () => nodes } as unknown as Redis
}

test.each([
  ['of one limit', [90, 100], [60, 100]],
  ['of different limits', [90, 100], [600, 1_000]],
  ['of which one has no limit', [90, 100], [600, 0]],
])('of masters %s the memory told is that of the fullest one', async (_which, ...masters) => {
  const all = masters.map(([used = 0, max = 0]) => ({ used, max }))
  for (const order of [all, all.toReversed()]) {
    const health = await inspectRedis(aCluster(...order))
    expect(health).toMatchObject({ usedMemoryBytes: 90, memoryLimitBytes: 100, isFull: true })
  }
})

test('of masters without a limit the memory told is the largest, and none is full', async () => {
  const health = await inspectRedis(aCluster({ used: 5, max: 0 }, { used: 7, max: 0 }))
  expect(health).toMatchObject({ usedMemoryBytes: 7, memoryLimitBytes: undefined, isFull: false })
})
