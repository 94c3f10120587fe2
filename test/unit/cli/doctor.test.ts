/** The parts of `doctor` that judge, and what becomes of a check that fails itself. */
import { expect, test } from 'vitest'
import { about, makeCheck } from '../../../src/cli/set-up/doctor-finding.ts'
import { judgeDisk, judgeMemory, judgeTimeZones } from '../../../src/cli/set-up/doctor-host.ts'

const mebibyte = 2 ** 20
const never = new AbortController().signal

test('a check that takes too long is a problem, and says how long it was waited for', async () => {
  const limits = { timeoutMs: 20, stop: never }
  const found = await makeCheck(about('sink', 'soc'), limits, () => new Promise(() => {}))
  expect(found).toEqual([
    expect.objectContaining({
      check: 'sink',
      subject: 'soc',
      status: 'problem',
      detail: expect.stringMatching(/^no answer within /),
    }),
  ])
})

test('a check that cannot be made says why', async () => {
  const limits = { timeoutMs: 1_000, stop: never }
  const found = await makeCheck(about('sink', 'soc'), limits, () =>
    Promise.reject(new Error('the file is gone')),
  )
  expect(found).toMatchObject([
    { status: 'warning', detail: 'could not be checked: the file is gone' },
  ])
  expect(found[0]?.remedy).not.toBeNull()
})

test.each([
  [100, 'problem'],
  [300, 'warning'],
  [2_048, 'ok'],
])('%i MiB of disk for a ledger of 1 GiB are %s', (free, status) => {
  const found = judgeDisk('/data', free * mebibyte, 1024 * mebibyte)
  expect(found).toMatchObject({ check: 'disk', status, detail: `${free} MiB free` })
  expect(found.remedy === null).toBe(status === 'ok')
})

test.each([
  [100, false, 'problem'],
  [300, false, 'warning'],
  [600, false, 'ok'],
  [600, true, 'warning'],
  [1_600, true, 'ok'],
])('%i MiB of memory, embedded Redis %s, are %s', (available, hasRedis, status) => {
  const needs = { hasRedis, maxBytes: 1024 * mebibyte }
  expect(judgeMemory(available * mebibyte, needs)).toMatchObject({ status })
})

test.each([
  ['2026a', 'ok'],
  ['2025b', 'ok'],
  ['2024a', 'warning'],
  [undefined, 'problem'],
])('time zone data of %s in 2026 are %s', (release, status) => {
  expect(judgeTimeZones({ release, nowMs: Date.UTC(2026, 5, 1) })).toMatchObject({ status })
})
