import fc from 'fast-check'
import { expect, test } from 'vitest'
import { shorten } from '../../../src/sinks/templates/event-data.ts'

const bounds = { maxCharacters: 5, maxEntries: 2 }

test('strings, keys, arrays and objects are cut at every depth; other values stay', () => {
  const value = { 'a long key': ['one more', 1, 'dropped'], b: { c: null, d: true, e: 0 }, f: 1 }
  expect(shorten(value, bounds)).toEqual({ 'a lon…': ['one m…', 1], b: { c: null, d: true } })
})

test('a string is cut between code points', () => {
  expect(shorten('\u{1F600}'.repeat(6), bounds)).toBe(`${'\u{1F600}'.repeat(5)}…`)
  expect(shorten('\u{1F600}'.repeat(5), bounds)).toBe('\u{1F600}'.repeat(5))
})

test('a well-formed string stays well-formed, within the bound, a prefix of what it was', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 20 }), (text, max) => {
      const cut = shorten(text, { maxCharacters: max, maxEntries: 1 })
      expect(cut.isWellFormed()).toBe(true)
      expect(Array.from(cut.replace(/…$/u, '')).length).toBeLessThanOrEqual(max)
      const kept = cut === text ? text : cut.slice(0, -1)
      expect(text.startsWith(kept)).toBe(true)
    }),
  )
})
