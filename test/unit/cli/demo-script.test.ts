import { expect, test } from 'vitest'
import { runStage } from '../../../src/cli/demo/demo.ts'
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

/** Runs a demo that has no time; its feeds are read to their end the first time that it looks. */
async function runBriefly(isAborted: boolean): Promise<{ shown: number; arriving: boolean }> {
  const { script, late } = aScript()
  const reading = { caughtUpMs: 1, feeds: [], sinks: [] }
  let arriving = true
  const stage = {
    introduction: [],
    startArrivals: () => () => Promise.resolve(void (arriving = false)),
    step: () => script.step(0, true),
    isLateShown: () => script.isLateShown,
    hasRead: () => true,
    pausePolling: () => Promise.resolve(),
    sendDigest: () => Promise.resolve(),
    read: () => Promise.resolve(reading),
    finish: () => Promise.resolve({} as never),
  }
  const nothing = (): void => {}
  const view = { introduce: nothing, showArrival: nothing, update: nothing, end: nothing }
  const signal = isAborted ? AbortSignal.abort() : new AbortController().signal
  await runStage(stage, view, {
    options: { for: 0, fresh: false, rate: 2, folder: '', output: 'text' },
    surroundings: { signal, stdout: process.stdout, env: {} },
  })
  return { shown: late.length, arriving }
}

test('a demo that is over before its feeds are read shows its late event all the same', async () => {
  expect(await runBriefly(false)).toEqual({ shown: 1, arriving: false })
})

test('a demo that is interrupted before its feeds are read ends at once', async () => {
  expect(await runBriefly(true)).toEqual({ shown: 0, arriving: false })
})
