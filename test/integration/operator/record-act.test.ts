import { expect, test } from 'vitest'
import { recordAct } from '../../../src/operator/record-act.ts'
import { type ActNote, noteAct, readActs } from '../../../src/store/acts.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const pause: ActNote = { by: 'mara', act: '/sinks/soc/pause', via: 'page', account: '' }

test('an act is recorded with who did it, by what, and what came of it', async () => {
  const store = { redis: tests.redis, keys: tests.keys() }
  const result = await recordAct(store, pause, () => Promise.resolve({ result: 7, isDone: true }))
  expect(result).toBe(7)
  const nothing = { ...pause, by: 'lee', via: 'command' as const }
  await recordAct(store, nothing, () => Promise.resolve({ result: 0, isDone: false }))
  expect(await readActs(store, 10)).toMatchObject([
    { by: 'lee', via: 'command', outcome: 'nothing to do' },
    { ...pause, outcome: 'done' },
  ])
})

test('an act that throws is recorded as refused or failed, and throws', async () => {
  const store = { redis: tests.redis, keys: tests.keys() }
  const fails = (): Promise<never> => Promise.reject(new Error('no such sink'))
  await expect(recordAct(store, pause, fails)).rejects.toThrow('no such sink')
  const refused = { ...pause, isRefusal: () => true }
  await expect(recordAct(store, refused, fails)).rejects.toThrow('no such sink')
  const outcomes = (await readActs(store, 10)).map(({ outcome }) => outcome)
  expect(outcomes).toEqual(['refused', 'failed'])
})

test('an act of a process that died is there, and unclear', async () => {
  const store = { redis: tests.redis, keys: tests.keys() }
  await noteAct(store, pause)
  expect(await readActs(store, 10)).toMatchObject([{ ...pause, outcome: 'unclear' }])
})

test('no act begins that cannot be recorded', async () => {
  const { redis } = tests
  const keys = tests.keys()
  await redis.set(keys.shared('acts'), 'not a stream')
  let hasBegun = false
  const perform = (): Promise<{ result: boolean; isDone: boolean }> => {
    hasBegun = true
    return Promise.resolve({ result: true, isDone: true })
  }
  await expect(recordAct({ redis, keys }, pause, perform)).rejects.toThrow('WRONGTYPE')
  expect(hasBegun).toBe(false)
})
