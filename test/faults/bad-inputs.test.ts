import { expect, test } from 'vitest'
import { badInputs } from '../fuzz/bad-inputs.ts'

test('after more than 500 bad inputs the daemon is the same, polls and delivers, and was clear each time', async () => {
  const { tried, crashed, unclear } = await badInputs()
  expect(crashed).toEqual([])
  expect(unclear).toEqual([])
  expect(tried).toBeGreaterThanOrEqual(500)
}, 900_000)
