import { expect, test } from 'vitest'
import { createWorkHints, type Hint, type WorkHints } from '../../../src/delivery/due-accounts.ts'
import type { Redis } from '../../../src/redis/client.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()

function fresh(): { hints: WorkHints; keys: Keys } {
  const keys = tests.keys()
  return { hints: createWorkHints(tests.redis, keys), keys }
}

const one = { account: 'main', sink: 'soc' }
const other = { account: 'other', sink: 'siem' }

function namesOf(hints: readonly Hint[]): string[] {
  return hints.map(({ account, sink }) => `${account}/${sink}`)
}

/** In how many ms somebody looks at it; undefined: nobody does. */
async function waitOf(keys: Keys, pair: string): Promise<number | undefined> {
  const at = await tests.redis.zscore(keys.shared('work'), pair)
  const [seconds, micros] = await tests.redis.time()
  return at === null ? undefined : Number(at) - Number(seconds) * 1_000 - Number(micros) / 1_000
}

test('what was told is heard when its time has come, the earliest first, as much as is asked for', async () => {
  const { hints, keys } = fresh()
  await hints.write([
    { ...one, inMs: 0 },
    { ...other, inMs: -5_000 },
    { account: 'later', sink: 'soc', inMs: 60_000 },
  ])
  expect(namesOf(await hints.read(10))).toEqual(['other/siem', 'main/soc'])
  expect(namesOf(await hints.read(1))).toEqual(['other/siem'])
  const waitMs = await waitOf(keys, 'later|soc')
  expect(waitMs).toBeGreaterThan(50_000)
  expect(waitMs).toBeLessThanOrEqual(60_002)
})

test('a hint comes at the earliest time told, and a later word puts off none', async () => {
  const { hints, keys } = fresh()
  await hints.write([{ ...one, inMs: 30_000 }])
  await hints.write([{ ...one, inMs: 3_600_000 }])
  expect(await waitOf(keys, 'main|soc')).toBeLessThanOrEqual(30_001)
  await hints.write([{ ...one, inMs: 0.2 }])
  expect(await waitOf(keys, 'main|soc')).toBeLessThanOrEqual(2)
  const apart = createWorkHints({} as Redis, keys) // nothing asks it for nothing
  await apart.write([])
  await apart.clear([])
  expect(await tests.redis.zcard(keys.shared('work'))).toBe(1)
})

test('who looked clears the hint, or puts it off until the next piece is due', async () => {
  const { hints, keys } = fresh()
  await hints.write([
    { ...one, inMs: 0 },
    { ...other, inMs: 0 },
  ])
  const [first, second] = await hints.read(10)
  await hints.clear([
    { ...first!, inMs: undefined },
    { ...second!, inMs: 29_999.5 },
  ])
  expect(await waitOf(keys, 'main|soc')).toBeUndefined()
  const waitMs = await waitOf(keys, 'other|siem')
  expect(waitMs).toBeGreaterThan(20_000)
  expect(waitMs).toBeLessThanOrEqual(30_001)
})

test('what was told anew since it was read is not cleared, though told for the same millisecond', async () => {
  const { hints } = fresh()
  await hints.write([{ ...one, inMs: -60_000 }])
  const [read] = await hints.read(10)
  const values = new Set([read!.value])
  for (let i = 1; i < 1_000; i += 1) {
    await hints.write([{ ...one, inMs: 0 }])
    values.add((await hints.read(10))[0]!.value)
  }
  expect(values.size).toBe(1_000)
  expect(new Set([...values].map((value) => value.split('.')[0])).size).toBe(1)
  await hints.clear([{ ...read!, inMs: undefined }])
  expect(namesOf(await hints.read(10))).toEqual(['main/soc'])
  await hints.clear([{ ...read!, inMs: 60_000 }])
  expect(namesOf(await hints.read(10))).toEqual(['main/soc'])
})
