import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openDemoHistory, type DemoHistory } from '../../../src/cli/demo/sandbox.ts'
import type { SandboxEvent } from '../../../src/sandbox/history/history.ts'

const nowMs = Date.UTC(2026, 0, 1)
let folder = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tocsin-demo-'))
})

afterEach(() => rmSync(folder, { recursive: true }))

function openHistory(given: { file?: string; keep?: number; nowMs?: number } = {}): DemoHistory {
  const { file = 'history.jsonl', ...rest } = given
  return openDemoHistory({ file: join(folder, file), seed: 1, nowMs, ...rest })
}

function tell(history: DemoHistory, count: number): SandboxEvent[] {
  return Array.from({ length: count }, () => history.next(nowMs, nowMs))
}

const uidsOf = (events: readonly SandboxEvent[]): string[] => events.map(({ uid }) => uid)

test('over any number of runs the story is the one that a single run tells', () => {
  const whole = uidsOf(tell(openHistory({ file: 'whole' }), 30))
  const parts = [10, 5, 15].flatMap((count) => tell(openHistory(), count))
  expect(uidsOf(parts)).toEqual(whole)
  expect(new Set(whole).size).toBe(30)
})

test('the events of earlier runs stand again as they were', () => {
  const told = tell(openHistory(), 10)
  expect(openHistory().earlierEvents).toEqual(told)
})

test('each event is younger than all before it, whatever the clock does', () => {
  tell(openHistory(), 3)
  const history = openHistory()
  const last = history.earlierEvents.at(-1)!.createdAtMs
  expect(history.next(nowMs - 60_000, nowMs).createdAtMs).toBe(last + 1)
})

test('only so many stand again, and still no uid comes twice', () => {
  const first = tell(openHistory(), 10)
  expect(openHistory({ keep: 4 }).earlierEvents).toEqual(first.slice(-4))
  const second = tell(openHistory({ keep: 4 }), 10)
  expect(new Set(uidsOf([...first, ...second])).size).toBe(20)
})

test('what is older than a month stands no more, and still no uid comes twice', () => {
  const later = nowMs + 31 * 86_400_000
  const first = tell(openHistory(), 10)
  expect(openHistory({ nowMs: later }).earlierEvents).toEqual([])
  const second = tell(openHistory({ nowMs: later }), 10)
  expect(new Set(uidsOf([...first, ...second])).size).toBe(20)
})

test('a line that a crash cut off was never told', () => {
  const told = tell(openHistory(), 2)
  appendFileSync(join(folder, 'history.jsonl'), '{"number":3,"eve')
  const again = openHistory()
  expect(again.earlierEvents).toEqual(told)
  again.next(nowMs, nowMs)
  expect(readFileSync(join(folder, 'history.jsonl'), 'utf8').trim().split('\n')).toHaveLength(3)
  expect(openHistory().earlierEvents).toHaveLength(3)
})

test('a late event stands where it is asked to, and the story goes on behind the newest', () => {
  const history = openHistory()
  const [first, second] = tell(history, 2)
  const late = history.late(nowMs - 3_600_000, nowMs)
  expect(late).toMatchObject({ createdAtMs: nowMs - 3_600_000, arrivedAtMs: nowMs })
  expect(history.next(nowMs, nowMs).createdAtMs).toBe(second!.createdAtMs + 1)

  const again = openHistory()
  expect(again.earlierEvents).toHaveLength(4)
  expect(again.isLate(late.uid)).toBe(true)
  expect(again.isLate(first!.uid)).toBe(false)
})

test('after a run that ended with a late event, the next is still younger than all', () => {
  const history = openHistory()
  const [first] = tell(history, 1)
  history.late(nowMs - 3_600_000, nowMs)
  expect(openHistory().next(nowMs - 60_000, nowMs).createdAtMs).toBe(first!.createdAtMs + 1)
})
