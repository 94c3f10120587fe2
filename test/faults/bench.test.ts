/** Short runs of the bench: every row is measured, and whatever becomes of them nothing is left. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chosenRows, renderReport, rows, type Report } from '../bench/report.ts'

let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tocsin-bench-'))
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** `close` comes only when no process is left that writes to its error output, Redis and sandbox too. */
function start(...args: string[]) {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../bench/bench.ts'), ...args], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close') as Promise<[number | null]>
  const outcome = Promise.all([closed, text(child.stdout), text(child.stderr)]).then(
    ([[code], output, errors]) => ({ code, output, errors }),
  )
  return { child, outcome }
}

test('a quick bench measures every row, keeps the promise of 16 bytes a uid, and leaves nothing behind', async () => {
  const { code, output, errors } = await start('--quick', '--json').outcome
  const report = JSON.parse(output) as Report
  expect({ code, errors, failures: report.failures }).toEqual({ code: 0, errors: '', failures: {} })

  expect(Object.keys(report.figures).toSorted()).toEqual(rows.map(({ key }) => key).toSorted())
  // differences of two runs are below zero by chance, where they are of few events
  const isDifference = /-more$|^full-event-|^cpu-redis-13$/
  const isMeasured = ([key, value]: [string, number | string]): boolean =>
    value === 'not installed' ||
    (isDifference.test(key) ? typeof value === 'number' : Number(value) > 0)
  expect(Object.entries(report.figures).filter((row) => !isMeasured(row))).toEqual([])
  expect(report.figures['uid-1000000']).toBeLessThanOrEqual(16)
  expect(readdirSync(folder)).toEqual([])
}, 1_800_000)

test('a bench that is interrupted leaves nothing behind', async () => {
  const { child, outcome } = start('--loaded')
  while (readdirSync(folder).length === 0) await sleep(20)
  child.kill('SIGTERM')
  expect(await outcome).toEqual({ code: 130, output: '', errors: '' })
  expect(readdirSync(folder)).toEqual([])
})

test('a row says whether its target is met, and one that was not measured has missed it', () => {
  const chosen = chosenRows([
    'empty-poll',
    'plain',
    'alertmanager',
    'single',
    'batched',
    'uid-1000',
  ])
  const figures = {
    plain: 1_701,
    alertmanager: 'not installed',
    single: 0.9,
    batched: 1.09,
    'poll-scripts': 57,
  }
  const report = { machine: 'here', figures, failures: { 'empty-poll': 'no poll' } }
  const printed = renderReport(report, chosen)
  const lines = printed.split('\n').map((line) => line.split(/ {2,}/))
  const seen = chosen.map(({ key }) => lines.find(([name]) => name === key)?.slice(2))
  expect(seen).toEqual([
    ['1,701 events/s'],
    ['0.9', '≥ 0.9', '1.1', 'met'],
    ['1.09', '≥ 1.1', '1.5', 'missed'],
    ['not installed'],
    ['57', '≤ 3', 'missed'],
    ['-', '≤ 30', 'missed'],
    ['-', '≤ 20 bytes', 'missed'],
  ])
  expect(printed).toContain('empty-poll was not measured: no poll')
})

test('docs/testing.md names every row, or the part that measures it', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/testing.md'), 'utf8')
  const unnamed = rows.filter(
    ({ key, part }) => !page.includes(`\`${key}\``) && !page.includes(`\`${part}\``),
  )
  expect(unnamed).toEqual([])
})
