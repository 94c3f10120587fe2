import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Arrival } from '../../../src/cli/demo/evidence.ts'
import { renderScreen, type DemoFrame } from '../../../src/cli/demo/screen.ts'
import { cutToWidth, measureWidth } from '../../../src/lib/text-width.ts'

function anArrival(given: Partial<Arrival> = {}): Arrival {
  const message = { id: 'e1', form: 'single', events: 1, mayBeRepeat: false } as const
  const carried = { items: ['e1'], uids: ['paste/x/1'], isComplete: false, severity: 'low' }
  return {
    sink: 'slack',
    atMs: 0,
    ...message,
    ...carried,
    text: 'LOW Paste: on pastebin',
    ...given,
  }
}

function aFrame(given: Partial<DemoFrame> = {}): DemoFrame {
  const feed = { name: 'brand', labels: 'team=brand', fetched: 12, new: 10, late: 1, duplicate: 2 }
  return {
    reading: {
      stage: 'ends in 12 s',
      caughtUpMs: 0,
      feeds: [{ ...feed, lagMs: 2_000, lagObjectiveMs: 15_000 }],
      sinks: [
        { name: 'slack', arrived: 7, messages: 2, collected: 5, pending: 3 },
        { name: 'webhook', arrived: 0, messages: 0, collected: 0, pending: 0 },
      ],
    },
    introduction: ['where it runs'],
    arrivals: [anArrival()],
    columns: 100,
    rows: 30,
    paint: (_style, text) => text,
    ...given,
  }
}

test('a frame shows feeds with their lag, sinks with their backlog, and the last message of each', () => {
  const lines = renderScreen(aFrame()).map((line) => line.replaceAll(/ {2,}/g, '|'))
  expect(lines).toEqual([
    'Tocsin demo: ends in 12 s',
    'where it runs',
    '',
    'FEED|LABELS|FETCHED|NEW|LATE|DUPLICATES|LAG|OBJECTIVE',
    'brand|team=brand|12|10|1|2|2 s|15 s',
    '',
    'SINK|EVENTS|MESSAGES|COLLECTED|PENDING|LAST MESSAGE',
    'slack|7|2|5|3|LOW Paste: on pastebin',
    'webhook|0|0|0|0|-',
    '',
    'WHAT ARRIVES WHERE',
    expect.stringMatching(/^\d\d:\d\d:\d\d slack\|LOW Paste: on pastebin$/),
  ])
})

test('the latest arrivals are shown, as many as there is room for', () => {
  const arrivals = Array.from({ length: 50 }, (_, n) => anArrival({ text: `LOW number ${n}` }))
  const lines = renderScreen(aFrame({ arrivals, rows: 24 }))
  expect(lines).toHaveLength(24)
  expect(lines.at(-1)).toContain('number 49')
  expect(lines.at(11)).toContain('number 37')
})

test('a feed behind its objective stands out, as does a critical arrival', () => {
  const frame = aFrame({ paint: (style, text) => `<${style}>${text}` })
  frame.reading.feeds[0]!.lagMs = 16_000
  const lines = renderScreen({ ...frame, arrivals: [anArrival({ severity: 'critical' })] })
  expect(lines.filter((line) => line.includes('<red>'))).toEqual([
    expect.stringContaining('brand'),
    expect.stringContaining('LOW Paste'),
  ])
})

test('a frame fits any terminal, whatever it shows', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 120 })
  const size = { columns: fc.integer({ min: 1, max: 200 }), rows: fc.integer({ min: 1, max: 60 }) }
  fc.assert(
    fc.property(fc.record({ ...size, texts: fc.array(text, { maxLength: 70 }) }), (given) => {
      const arrivals = given.texts.map((one) => anArrival({ text: one }))
      const lines = renderScreen(aFrame({ ...given, arrivals }))
      expect(lines.length).toBeLessThanOrEqual(given.rows)
      for (const line of lines) expect(measureWidth(line)).toBeLessThanOrEqual(given.columns)
    }),
  )
})

test('East Asian letters and emoji take two columns, marks none', () => {
  expect(measureWidth('abc')).toBe(3)
  expect(measureWidth('数据库')).toBe(6)
  expect(measureWidth('🔥')).toBe(2)
  expect(measureWidth('e\u0301')).toBe(1)
  expect(cutToWidth('数据库', 5)).toBe('数据…')
  expect(cutToWidth('数据库', 4)).toBe('数…')
  expect(cutToWidth('abc', 3)).toBe('abc')
})

test('the whole demo has room for its latest arrivals on a terminal of 80 by 24', () => {
  const { reading } = aFrame()
  const feed = { ...reading.feeds[0]!, name: 'suppliers', labels: 'team=purchasing' }
  const feeds = [feed, { ...feed, lagMs: undefined }, feed].map((one) => ({
    ...one,
    fetched: 1234,
  }))
  const sink = { ...reading.sinks[0]!, name: 'webhook' as const }
  const lines = renderScreen({
    ...aFrame({ introduction: ['one', 'two', 'three'], columns: 80, rows: 23 }),
    reading: { ...reading, feeds, sinks: [sink, sink, sink] },
    arrivals: Array.from({ length: 50 }, (_, n) => anArrival({ text: `LOW number ${n}` })),
  })
  expect(lines.filter((line) => line.includes('LOW number')).length).toBe(7)
  for (const line of lines.slice(0, 9)) expect(line).not.toContain('…')
})
