import { expect, test } from 'vitest'
import type { Arrival } from '../../../src/cli/demo/evidence.ts'
import { createDemoJson, createDemoLines } from '../../../src/cli/demo/demo.ts'
import { systemClock } from '../../../src/lib/clock.ts'

const arrival: Arrival = {
  sink: 'email',
  atMs: Date.UTC(2026, 0, 1),
  id: 'e1',
  form: 'single',
  events: 1,
  items: ['e1'],
  uids: ['leak/x/1'],
  isComplete: false,
  mayBeRepeat: false,
  severity: 'high',
  text: 'HIGH Leak: x',
}

function someLines() {
  let nowMs = 0
  const lines: string[] = []
  const clock = { ...systemClock, monotonic: () => nowMs }
  const view = createDemoLines({ print: (line) => lines.push(line), clock })
  return { view, lines, advance: (ms: number) => (nowMs += ms) }
}

const reading = { stage: 'runs', caughtUpMs: 0, feeds: [], sinks: [] }

test('an arrival is a line', () => {
  const { view, lines } = someLines()
  view.showArrival(arrival)
  expect(lines).toEqual([expect.stringMatching(/^\d\d:\d\d:\d\d email HIGH Leak: x$/)])
})

test('what comes too fast to read is counted, and the count is told within the next second', () => {
  const { view, lines, advance } = someLines()
  for (let n = 0; n < 12; n++) view.showArrival(arrival)
  expect(lines).toHaveLength(5)
  view.update(reading)
  expect(lines).toHaveLength(5)
  advance(1_000)
  view.update(reading)
  expect(lines.slice(5)).toEqual(['… and 7 more'])
  view.showArrival(arrival)
  expect(lines).toHaveLength(7)
})

test('what was counted last is told at the end', () => {
  const { view, lines } = someLines()
  for (let n = 0; n < 6; n++) view.showArrival(arrival)
  view.end()
  expect(lines.at(-1)).toBe('… and 1 more')
})

test('for machines every arrival is one JSON value on a line of its own', () => {
  const lines: string[] = []
  const view = createDemoJson((line) => lines.push(line))
  for (let n = 0; n < 12; n++) view.showArrival(arrival)
  expect(lines).toHaveLength(12)
  expect(JSON.parse(lines[0]!)).toEqual({
    kind: 'arrival',
    at: '2026-01-01T00:00:00.000Z',
    sink: 'email',
    id: 'e1',
    form: 'single',
    events: 1,
    items: ['e1'],
    uids: ['leak/x/1'],
    isComplete: false,
    mayBeRepeat: false,
    severity: 'high',
    text: 'HIGH Leak: x',
  })
})
