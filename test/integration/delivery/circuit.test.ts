import { expect, test } from 'vitest'
import { createCircuit, type Circuit } from '../../../src/delivery/circuit.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()

function fresh(): { circuit: Circuit; keys: Keys } {
  const keys = tests.keys()
  return { circuit: createCircuit(tests.redis, keys), keys }
}

/** Lets the time of an open circuit pass without waiting for it. */
async function pass(keys: Keys): Promise<void> {
  await tests.redis.hset(keys.shared('circuit', 'soc'), 'until', 1)
}

test('stays closed below five faults in a row, whatever happens between them', async () => {
  const { circuit } = fresh()
  for (const word of ['fault', 'fault', 'fault', 'fault', 'answered', 'fault', 'none'] as const) {
    await circuit.report('soc', word)
  }
  expect(await circuit.admit('soc')).toBe(0)
})

test('opens at the fifth fault, and at once where only an operator can help', async () => {
  const { circuit } = fresh()
  for (let i = 0; i < 4; i += 1) expect(await circuit.report('soc', 'fault')).toBeUndefined()
  expect(await circuit.report('soc', 'fault')).toBe('opened')
  expect(await circuit.admit('soc')).toBeGreaterThan(29_000)
  expect(await circuit.report('siem', 'broken')).toBe('opened')
})

test('lets one probe through when its time is over; its success closes it for all', async () => {
  const { circuit, keys } = fresh()
  await circuit.report('soc', 'broken')
  await pass(keys)
  expect(await circuit.admit('soc')).toBe(0)
  expect(await circuit.admit('soc')).toBe(1_000)
  expect(await circuit.report('soc', 'ok')).toBe('closed')
  expect(await circuit.admit('soc')).toBe(0)
  expect(await circuit.admit('soc')).toBe(0)
})

test('a probe that fails keeps it open twice as long, up to a quarter of an hour', async () => {
  const { circuit, keys } = fresh()
  await circuit.report('soc', 'broken')
  const waits: number[] = []
  for (let i = 0; i < 7; i += 1) {
    await pass(keys)
    await circuit.admit('soc')
    await circuit.report('soc', 'fault')
    waits.push(Math.round((await circuit.admit('soc')) / 1_000))
  }
  expect(waits).toEqual([60, 120, 240, 480, 900, 900, 900])
})

test('a probe that had nothing to send leaves its place to the next', async () => {
  const { circuit, keys } = fresh()
  await circuit.report('soc', 'broken')
  await pass(keys)
  expect(await circuit.admit('soc')).toBe(0)
  await circuit.giveBack('soc')
  expect(await circuit.admit('soc')).toBe(0)
})
