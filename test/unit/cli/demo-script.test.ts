import { expect, test } from 'vitest'
import { createDemoScript } from '../../../src/cli/demo/stage.ts'

const hourMs = 3_600_000

function aScript() {
  const late: number[] = []
  let credentials = 0
  const script = createDemoScript({
    showLate: (ageMs) => late.push(ageMs),
    showCredentials: (count) => (credentials += count),
  })
  return { script, late, credentials: () => credentials }
}

test('one late event is shown, once no cursor can find it any more', () => {
  const { script, late } = aScript()
  script.step(0, false)
  expect([late.length, script.isLateShown]).toEqual([0, false])
  script.step(200, true)
  script.step(60_000, true)
  expect([late.length, script.isLateShown]).toEqual([1, true])
  expect(late[0]).toBeGreaterThan(12 * hourMs)
  expect(late[0]).toBeLessThan(24 * hourMs)
})

test('credentials leak at the start and every few seconds', () => {
  const { script, credentials } = aScript()
  script.step(0, false)
  const first = credentials()
  expect(first).toBeGreaterThan(0)
  script.step(200, false)
  expect(credentials()).toBe(first)
  script.step(10_000, false)
  expect(credentials()).toBe(2 * first)
})
