import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { renderReport, type Report } from '../bench/report.ts'

let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tocsin-bench-'))
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** `close` comes only when no process is left that writes to its error output, Redis and sandbox too. */
function startBench() {
  const bench = spawn(
    process.execPath,
    [join(import.meta.dirname, '../bench/bench.ts'), '--quick', '--json'],
    { env: { ...process.env, TMPDIR: folder }, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  const closed = once(bench, 'close') as Promise<[number | null]>
  const outcome = Promise.all([closed, text(bench.stdout), text(bench.stderr)]).then(
    ([[code], output, errors]) => ({ code, output, errors }),
  )
  return { bench, outcome }
}

const figures = [
  'eventsPerSecond',
  'ofCeiling',
  'polledOfCeiling',
  'pages',
  'pagesPerSecond',
  'shareOfBudget',
  'commitsPerSecond',
  'bytes',
  'daysAtOne',
  'hoursAtForty',
] as const

const polled: (typeof figures)[number][] = ['eventsPerSecond', 'polledOfCeiling', 'pagesPerSecond']
const readAgain: typeof polled = ['eventsPerSecond', 'pages', 'shareOfBudget']

const kept: typeof polled = ['bytes', 'daysAtOne', 'hoursAtForty']

const rows: Record<string, (typeof figures)[number][]> = {
  fetch: ['eventsPerSecond', 'ofCeiling'],
  'webhook-single': ['eventsPerSecond', 'ofCeiling'],
  'webhook-batched': ['eventsPerSecond', 'ofCeiling'],
  'no-send': ['eventsPerSecond', 'ofCeiling'],
  'poll-events': polled,
  'poll-event_search': polled,
  'poll-legacy_search': polled,
  'poll-credentials': polled,
  'poll-credential_search': polled,
  'sweep-50': readAgain,
  'audit-50': readAgain,
  'sweep-100': readAgain,
  'audit-100': readAgain,
  'sweep-200': readAgain,
  'audit-200': readAgain,
  'intake-1': ['eventsPerSecond', 'commitsPerSecond'],
  'intake-13': ['eventsPerSecond', 'commitsPerSecond'],
  uid: ['bytes'],
  'uid-claimed': ['bytes'],
  settled: kept,
  'settled-expired': kept,
  'settled-1': kept,
  pending: ['bytes'],
  job: ['bytes'],
}

test('a quick bench measures everything, keeps the promise of 16 bytes a uid, and leaves nothing behind', async () => {
  const { code, output, errors } = await startBench().outcome
  expect({ code, errors }).toEqual({ code: 0, errors: '' })
  const report = JSON.parse(output) as Report
  const lines = renderReport(report).split('\n')

  expect(report.rows.map(({ key }) => key)).toEqual(Object.keys(rows))
  for (const row of report.rows) {
    const measured = figures.filter((name) => (row.figures[name] ?? 0) > 0)
    expect([row.key, measured]).toEqual([row.key, rows[row.key]])
    expect(row.span.seconds).toBeGreaterThan(0)
    expect(row.span.cpuSeconds.tocsin).toBeGreaterThan(0)
    expect(row.span.rss.redis).toBeGreaterThan(0)
    const line = lines.find((one) => one.startsWith(`${row.label} `))
    expect(line?.slice(row.label.length)).toMatch(/^ +[\d.,]+ /)
  }
  for (const { key, figures: figure } of report.rows) {
    if (!/^(sweep|audit)-/.test(key)) continue
    const events = Number(key.split('-')[1])
    // ten a page, and of an hour's requests so many
    expect([key, figure.events, figure.pages]).toEqual([key, events, events / 10])
    expect(figure.shareOfBudget).toBeCloseTo(events / 36_000)
  }
  const uid = report.rows.find(({ key }) => key === 'uid')
  expect(uid?.figures.bytes).toBeLessThanOrEqual(16)
  expect(lines).toContain('PASS: a remembered uid takes at most 16 bytes')
  expect(readdirSync(folder)).toEqual([])
}, 300_000)

test('a bench that is interrupted leaves nothing behind', async () => {
  const { bench, outcome } = startBench()
  while (readdirSync(folder).length === 0) await sleep(20)
  bench.kill('SIGTERM')
  expect(await outcome).toEqual({ code: 130, output: '', errors: '' })
  expect(readdirSync(folder)).toEqual([])
}, 120_000)
