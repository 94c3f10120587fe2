import { expect, test } from 'vitest'
import { recordAct } from '../../../src/operator/acts/record-act.ts'
import { type ActNote, noteAct, readActs, trimActs } from '../../../src/store/history/acts.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const unnoted: unknown[] = []
const pause = {
  by: 'mara',
  act: '/sinks/soc/pause',
  via: 'page' as ActNote['via'],
  account: '',
  onUnnoted: (error: unknown) => void unnoted.push(error),
}

test('an act is recorded with who did it, by what, and what came of it', async () => {
  const store = { redis: tests.redis, keys: tests.keys() }
  const result = await recordAct(store, pause, () => Promise.resolve({ result: 7, isDone: true }))
  expect(result).toBe(7)
  const nothing = { ...pause, by: 'lee', via: 'command' as const }
  await recordAct(store, nothing, () => Promise.resolve({ result: 0, isDone: false }))
  expect(await readActs(store, 10)).toMatchObject([
    { by: 'lee', via: 'command', outcome: 'nothing to do' },
    { by: 'mara', via: 'page', outcome: 'done' },
  ])
})

test('acts of one millisecond are listed by their order, whatever they changed', async () => {
  const store = { redis: tests.redis, keys: tests.keys() }
  const names = Array.from({ length: 15 }, (_, at) => `user ${at}`)
  for (const [at, by] of names.entries()) {
    await recordAct(store, { ...pause, by }, () =>
      Promise.resolve({ result: 0, isDone: at % 2 === 0 }),
    )
  }
  expect((await readActs(store, 20)).map(({ by }) => by)).toEqual(names.toReversed())
})

test('an act that throws is recorded as refused or unclear, and throws', async () => {
  const store = { redis: tests.redis, keys: tests.keys() }
  const fails = (): Promise<never> => Promise.reject(new Error('no such sink'))
  await expect(recordAct(store, pause, fails)).rejects.toThrow('no such sink')
  const refused = { ...pause, outcomeOf: () => 'refused' as const }
  await expect(recordAct(store, refused, fails)).rejects.toThrow('no such sink')
  const outcomes = (await readActs(store, 10)).map(({ outcome }) => outcome)
  expect(outcomes).toEqual(['refused', 'unclear'])
})

test('an act of a process that died is there, and unclear', async () => {
  const store = { redis: tests.redis, keys: tests.keys() }
  await noteAct(store, pause)
  expect(await readActs(store, 10)).toMatchObject([{ by: 'mara', outcome: 'unclear' }])
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

test.each([
  ['refused', { outcomeOf: () => 'refused' as const }, () => Promise.reject(new Error('no sink'))],
  ['nothing to do', {}, () => Promise.resolve({ result: 0, isDone: false })],
])('acts with the outcome %s push none out that was done', async (outcome, how, perform) => {
  const store = { redis: tests.redis, keys: tests.keys() }
  await recordAct(store, pause, () => Promise.resolve({ result: 0, isDone: true }))
  const idle = { ...pause, by: 'eve', ...how }
  await Promise.allSettled(Array.from({ length: 2_500 }, () => recordAct(store, idle, perform)))
  const acts = await readActs(store, 50)
  expect(acts.at(-1)).toMatchObject({ by: 'mara', outcome: 'done' })
  expect(acts.slice(0, -1).map((act) => [act.by, act.outcome])).toEqual(
    Array.from({ length: 20 }, () => ['eve', outcome]),
  )
  // whole nodes of the stream are dropped
  expect(await tests.redis.xlen(store.keys.shared('idle-acts'))).toBeLessThan(1_200)
  expect(await tests.redis.xlen(store.keys.shared('acts'))).toBe(2)
})

test('acts are kept as long as it is said, refused ones and others', async () => {
  const store = { redis: tests.redis, keys: tests.keys() }
  const fails = (): Promise<never> => Promise.reject(new Error('no such sink'))
  for (let at = 0; at < 150; at += 1) {
    await recordAct(store, pause, () => Promise.resolve({ result: 0, isDone: true }))
    await recordAct(store, { ...pause, outcomeOf: () => 'refused' }, fails).catch(() => undefined)
  }
  const [newest] = await readActs(store, 1)
  await trimActs(store, newest!.atMs + 1)
  for (const [name, most] of [
    ['acts', 300],
    ['idle-acts', 150],
  ] as const) {
    expect(await tests.redis.xlen(store.keys.shared(name))).toBeLessThan(most)
  }
})

test('what an act touches is recorded: the first names, and how many more there are', async () => {
  const store = { redis: tests.redis, keys: tests.keys() }
  const items = Array.from({ length: 23 }, (_one, at) => `main/i:${at}:0:soc`)
  await recordAct(store, { ...pause, items }, () => Promise.resolve({ result: 0, isDone: true }))
  expect(await readActs(store, 1)).toMatchObject([{ items: items.slice(0, 20), more: 3 }])
})

test('what is not recorded as done in the end was not refused, but is unclear', async () => {
  const store = { redis: tests.redis, keys: tests.keys() }
  const outcomeOf = () => 'refused' as const
  const perform = async (): Promise<{ result: number; isDone: boolean }> => {
    await tests.redis.rename(store.keys.shared('acts'), store.keys.shared('aside'))
    await tests.redis.set(store.keys.shared('acts'), 'not a stream')
    return { result: 0, isDone: true }
  }
  unnoted.length = 0
  expect(await recordAct(store, { ...pause, outcomeOf }, perform)).toBe(0)
  expect(String(unnoted)).toContain('WRONGTYPE')
  await tests.redis.rename(store.keys.shared('aside'), store.keys.shared('acts'))
  expect(await readActs(store, 10)).toMatchObject([{ by: 'mara', outcome: 'unclear' }])
})
