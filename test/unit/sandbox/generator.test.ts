import { expect, test } from 'vitest'
import { toFullEvent, toSearchItem } from '../../../src/sandbox/api/event-items.ts'
import { createGenerator } from '../../../src/sandbox/history/generator.ts'
import type { SandboxEvent } from '../../../src/sandbox/history/history.ts'
import { createRandom } from '../../../src/sandbox/options.ts'
import { parseInstant } from '../../../src/sandbox/times.ts'
import { wireFullEvent, wireSearchItem } from '../../../src/upstream/resources/events.ts'

const group = {
  id: 1042,
  name: 'Brand',
  tenantId: 42,
  identifiers: [
    { id: 77, name: 'example.com' },
    { id: 78, name: 'Example Bank' },
  ],
}
const nowMs = Date.UTC(2026, 10, 1, 12, 0, 0, 123)

function history(seed: number, count: number): SandboxEvent[] {
  const generator = createGenerator(seed)
  return Array.from({ length: count }, () => generator.make(group, nowMs))
}

const many = history(1, 4000)

test('the same seed tells the same events, another seed others', () => {
  expect(history(1, 50)).toEqual(many.slice(0, 50))
  expect(history(2, 50)).not.toEqual(many.slice(0, 50))
})

test('every item is one that the wire format describes, with its own uid', () => {
  for (const event of many) wireSearchItem.parse(toSearchItem(event))
  for (const event of many) wireFullEvent.parse(toFullEvent(event))
  expect(new Set(many.map(({ uid }) => uid)).size).toBe(many.length)
})

test('an item tells its creation to the millisecond, in several forms', () => {
  const shown = many.map((event) => wireSearchItem.parse(toSearchItem(event)).metadata)
  const created = shown.map((metadata) => metadata.estimated_created_at ?? '')
  expect(new Set(created.map((text) => Math.trunc(parseInstant(text))))).toEqual(new Set([nowMs]))
  expect(created.some((text) => /\.\d{6}Z$/.test(text))).toBe(true)
  expect(created.some((text) => text.endsWith('+05:30'))).toBe(true)
  expect(created.some((text) => !/(Z|[+-]\d\d:\d\d)$/.test(text))).toBe(true)
  expect(shown.some((metadata) => metadata.matched_at === null)).toBe(true)
})

test('a history has many types, the rare unknown among them, and some overrides', () => {
  const types = new Set(many.map(({ type }) => type))
  expect(types.size).toBeGreaterThanOrEqual(9)
  expect(types).toContain('mesh_relay')
  expect(many.filter(({ severity }) => severity === 'urgent').length).toBeGreaterThan(0)
  expect(many.filter(({ override }) => override !== null).length).toBeGreaterThan(40)
})

test('some texts are hostile', () => {
  const text = JSON.stringify(many.map(({ highlights }) => highlights))
  for (const trap of ['<!channel>', '<script>', "=cmd|'", '\\r\\nBcc:', '\u202E', '<mark>']) {
    expect(text).toContain(trap)
  }
})

test('what is given holds, and the data fit a given type', () => {
  const event = createGenerator(5).make(group, nowMs, { type: 'ransomleak', severity: 'low' })
  expect(event).toMatchObject({ type: 'ransomleak', severity: 'low', override: null })
  expect(event.data).toHaveProperty('victim_information')
})

test('chance is even: means of a thousand draws are near what they should be', () => {
  const random = createRandom(9)
  const draws = Array.from({ length: 1000 }, () => random.next())
  const gaps = Array.from({ length: 1000 }, () => random.exponential(20))
  expect(draws.reduce((sum, draw) => sum + draw) / 1000).toBeCloseTo(0.5, 1)
  expect(gaps.reduce((sum, gap) => sum + gap) / 1000).toBeGreaterThan(17)
  expect(gaps.reduce((sum, gap) => sum + gap) / 1000).toBeLessThan(23)
})
