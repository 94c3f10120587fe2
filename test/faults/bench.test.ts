/** Short runs of both benches: every row is measured, and whatever becomes of them nothing is left. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { FleetReport } from '../bench/bench-fleet.ts'
import { chosenRows, renderReport, rows, standingRows, type Report } from '../bench/report.ts'

let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tocsin-bench-'))
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** `close` comes only when no process is left that writes to its error output, Redis and sandbox too. */
function start(bench: string, ...args: string[]) {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../bench', bench), ...args], {
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
  const { code, output, errors } = await start('bench.ts', '--quick', '--json').outcome
  const report = JSON.parse(output) as Report
  expect({ code, errors, failures: report.failures }).toEqual({ code: 0, errors: '', failures: {} })

  const measured = rows.map(({ key }) => [key, report.figures[key]! > 0])
  expect(measured).toEqual(rows.map(({ key }) => [key, true]))
  expect(Object.keys(report.figures).toSorted()).toEqual(rows.map(({ key }) => key).toSorted())
  expect(report.figures['uid-1000000']).toBeLessThanOrEqual(16)
  expect(readdirSync(folder)).toEqual([])
}, 1_800_000)

test('a row says whether its target is met, and one that was not measured has missed it', () => {
  const chosen = chosenRows(['series', 'plain', 'single', 'batched', 'uid-1000'])
  const figures = { plain: 1_701, single: 1, batched: 1.99, 'series-feed': 57 }
  const report = { machine: 'here', figures, failures: { series: 'no scrape' } }
  const printed = renderReport(report, chosen)
  const lines = printed.split('\n').map((line) => line.split(/ {2,}/))
  const seen = chosen.map(({ key }) => lines.find(([name]) => name === key)?.slice(2))
  expect(seen).toEqual([
    ['1,701 events/s'],
    ['1', '≥ 1', 'met'],
    ['1.99', '≥ 2', 'missed'],
    ['57', '≤ 15', 'missed'],
    ['-', '≤ 30', 'missed'],
    ['-', '≤ 20 bytes', 'missed'],
  ])
  expect(printed).toContain('series was not measured: no scrape')
})

test('docs/testing.md names every row, or the part that measures it', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/testing.md'), 'utf8')
  const unnamed = rows.filter(
    ({ key, part }) => !page.includes(`\`${key}\``) && !page.includes(`\`${part}\``),
  )
  expect(unnamed).toEqual([])
})

test('a row that no table has is refused by name', () => {
  expect(() => chosenRows(['speed', 'sped'])).toThrow('--only sped: write one of speed, intake')
})

test('a small fleet is measured in both shapes, on two replicas, and while some of it fails', async () => {
  const size = ['--organizations', '36', '--tenants', '4', '--replicas', '2']
  const args = [...size, '--for', '5s', '--every', '5s', '--json']
  const { code, output, errors } = await start('bench-fleet.ts', ...args).outcome
  const reports = JSON.parse(output) as FleetReport[]
  const failures = reports.map(({ failure }) => failure)
  expect({ code, errors, failures }).toEqual({
    code: 0,
    errors: '',
    failures: [undefined, undefined],
  })

  const [organizations, tenants] = reports
  for (const { standing } of reports) {
    expect(Object.keys(standing!).toSorted()).toEqual(standingRows.map(({ key }) => key).toSorted())
    expect(Object.values(standing!).every((figure) => figure > 0)).toBe(true)
  }
  // two events an account; of 36 organizations four fail and one is slow
  expect(organizations?.delays).toMatchObject({ calm: { events: 62 }, disturbed: { events: 62 } })
  expect(organizations?.delays?.struck).toEqual({
    delay: expect.any(Number) as number,
    503: expect.any(Number) as number,
    429: expect.any(Number) as number,
    hang: expect.any(Number) as number,
  })
  expect(Object.values(organizations!.delays!.struck!).every((times) => times > 0)).toBe(true)
  expect(tenants?.delays).toMatchObject({ calm: { events: 8, untold: 0 }, bound: (1.5 * 4) / 0.7 })
  expect(readdirSync(folder)).toEqual([])
}, 1_800_000)

test.each(['bench.ts', 'bench-fleet.ts'])(
  '%s leaves nothing behind when it is interrupted',
  async (bench) => {
    const { child, outcome } = start(bench)
    while (readdirSync(folder).length === 0) await sleep(20)
    child.kill('SIGTERM')
    expect(await outcome).toEqual({ code: 130, output: '', errors: '' })
    expect(readdirSync(folder)).toEqual([])
  },
  120_000,
)
