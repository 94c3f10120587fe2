import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

test('a quick run of bench:delay keeps the targets of the polling rule and prints both laws of rescans', () => {
  const script = join(import.meta.dirname, '../../bench/bench-delay.ts')
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, '--quick'], {
    encoding: 'utf8',
  })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout).toContain('PASS: the index rule keeps its targets')
  expect(stdout).toMatch(/^poisson, 10 feeds( +[\d.]+ \/ [\d.]+ \/ [\d.]+){3} +-[\d.]+ ± [\d.]+ /m)
  expect(stdout).toMatch(/^1 feed, 1000 events a week each: [\d.]+ % of 1 request\/s/m)
  expect(stdout).toMatch(/^ {2}late by 10\.0 min: [\d.]+ min, at most [\d.]+ min$/m)
})
