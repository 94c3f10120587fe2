import { expect, test } from 'vitest'
import { createDemoScreen, type ScreenStream } from '../../../src/cli/demo/screen.ts'

const reading = { stage: 'runs', caughtUpMs: 0, feeds: [], sinks: [] }

function aTerminal(given: Partial<ScreenStream> = {}) {
  const writes: string[] = []
  const write = (text: string): boolean => writes.push(text) > 0
  const stream = { columns: 80, rows: 24, writableNeedDrain: false, write, ...given }
  return { stream: stream as ScreenStream & { columns: number; rows: number }, writes }
}

test('a frame is one write, and after it the cursor is there', () => {
  const { stream, writes } = aTerminal()
  createDemoScreen({ stdout: stream, paint: (_style, text) => text }).update(reading)
  expect(writes).toHaveLength(1)
  expect(writes[0]!.lastIndexOf('\u001B[?25h')).toBeGreaterThan(
    writes[0]!.lastIndexOf('\u001B[?25l'),
  )
})

test('a frame leaves the last row free, so that the terminal never scrolls', () => {
  const { stream, writes } = aTerminal({ rows: 5 })
  createDemoScreen({ stdout: stream, paint: (_style, text) => text }).update(reading)
  const frame = writes[0]!.slice(writes[0]!.indexOf('\u001B[H'))
  expect(frame.split('\r\n')).toHaveLength(5)
})

test('what stood on the terminal before scrolls away; later frames overwrite in place', () => {
  const { stream, writes } = aTerminal()
  const screen = createDemoScreen({ stdout: stream, paint: (_style, text) => text })
  screen.update(reading)
  screen.update(reading)
  expect(writes[0]).toMatch(/^\n{24}/)
  expect(writes[1]).not.toMatch(/^\n/)
  expect(writes[1]).not.toContain('\u001B[2J')
})

test('a resize wipes what it mangled', () => {
  const { stream, writes } = aTerminal()
  const screen = createDemoScreen({ stdout: stream, paint: (_style, text) => text })
  screen.update(reading)
  stream.columns = 60
  screen.update(reading)
  expect(writes[1]).toContain('\u001B[2J')
})

test('a terminal that cannot keep up misses frames instead of piling them up', () => {
  const { stream, writes } = aTerminal({ writableNeedDrain: true })
  createDemoScreen({ stdout: stream, paint: (_style, text) => text }).update(reading)
  expect(writes).toEqual([])
})
