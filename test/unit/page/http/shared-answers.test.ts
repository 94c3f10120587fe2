import { expect, test } from 'vitest'
import { SharedAnswers } from '../../../../src/page/http/shared-answers.ts'
import { stillClock } from '../../../support/still-clock.ts'

test('an answer is made once for all who ask within two seconds, and anew after that', async () => {
  const clock = stillClock()
  const shared = new SharedAnswers(clock, 2_000)
  let made = 0
  const make = (): Promise<number> => Promise.resolve((made += 1))
  expect(await Promise.all([shared.read('now', make), shared.read('now', make)])).toEqual([1, 1])
  clock.pass(1_999)
  expect(await shared.read('now', make)).toBe(1)
  clock.pass(1)
  expect(await shared.read('now', make)).toBe(2)
})

test('answers of different names are not mixed up', async () => {
  const shared = new SharedAnswers(stillClock(), 2_000)
  expect(await shared.read('of main', () => Promise.resolve('main'))).toBe('main')
  expect(await shared.read('of other', () => Promise.resolve('other'))).toBe('other')
})

test('a failure is told to whoever asked, and not kept', async () => {
  const shared = new SharedAnswers(stillClock(), 2_000)
  await expect(shared.read('now', () => Promise.reject(new Error('away')))).rejects.toThrow('away')
  expect(await shared.read('now', () => Promise.resolve('back'))).toBe('back')
})
