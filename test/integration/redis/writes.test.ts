/** How commands leave the process: each write to the kernel costs more than the command in it. */
import { expect, test } from 'vitest'
import { connectTo, redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()

/** How often Redis had something to read from its clients. */
async function readsOfServer(): Promise<number> {
  const info = await tests.redis.info('stats')
  return Number(/^total_reads_processed:(\d+)/m.exec(info)?.[1])
}

test('commands that are given in one turn of the event loop reach Redis together, and each has its answer', async () => {
  const key = tests.keys().shared('writes')
  const before = await readsOfServer()
  const numbers = Array.from({ length: 100 }, (_none, at) => at + 1)
  const answers = await Promise.all(numbers.map(() => tests.redis.incr(key)))
  const reads = (await readsOfServer()) - before
  expect(answers).toEqual(numbers)
  expect(reads).toBeLessThanOrEqual(4) // of them one is for the look itself
})

test('a disconnect loses no command of the same turn', async () => {
  const key = tests.keys().shared('writes')
  const other = connectTo(tests.server.url)
  await other.ping()
  const answer = other.set(key, 'written').catch(() => undefined)
  other.disconnect()
  await answer
  await expect.poll(() => tests.redis.get(key)).toBe('written')
})
