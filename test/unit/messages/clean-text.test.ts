import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  cleanBlock,
  cleanLine,
  cutText,
  isolate,
  sanitizeLine,
} from '../../../src/messages/sanitize.ts'
import { anyUnicode, unseenCharacters } from './any-unicode.ts'

describe('one line', () => {
  test.each([
    ['a\r\nb\u2028c\u0085d\te', 'a b c d e'],
    ['a\tb\tc\u00A0d\u3000e', 'a b c d e'],
    ['\u202Egpj.exe\u2066', 'gpj.exe'],
    ['\u2068a\u2069b\u2069', 'ab'],
    ['pa\u200Bss\u0000wo\u00ADrd\uFEFF', 'password'],
    [`x${'\u{E0041}\u{E0042}'}y`, 'xy'],
    ['a\uFE0Fb\u{E0101}c', 'abc'],
    ['half \uD83D of a pair', 'half \uFFFD of a pair'],
    ['e\u0301' + '\u0301'.repeat(50), 'e' + '\u0301'.repeat(4)],
    [
      `a${'\u0301'.repeat(9)}o${'\u0301'.repeat(9)}`,
      `a${'\u0301'.repeat(4)}o${'\u0301'.repeat(4)}`,
    ],
    ['  naïve  Ünïcödé 日本 👍  ', 'naïve Ünïcödé 日本 👍'],
  ])('%j becomes %j', (text, line) => {
    expect(cleanLine(text, 100)).toBe(line)
  })

  test('of any text holds its promises', () => {
    fc.assert(
      fc.property(anyUnicode, fc.integer({ min: 1, max: 40 }), (text, max) => {
        const line = cleanLine(text, max)
        expect(Array.from(line).length).toBeLessThanOrEqual(max)
        expect(line).not.toMatch(unseenCharacters)
        expect(line).not.toContain('\n')
        expect(line.isWellFormed()).toBe(true)
        expect(cleanLine(line, max)).toBe(line)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('a block', () => {
  test('keeps single line breaks', () => {
    expect(cleanBlock('one\r\n\r\n\n two \u2028three', 100)).toBe('one\ntwo\nthree')
  })

  test('has single spaces within its lines: what they would push out of sight stays in it', () => {
    expect(cleanBlock('a  b  c\t d', 100)).toBe('a b c d')
    expect(cleanBlock(`paid${' '.repeat(300)}\t\u00A0never\nat all`, 100)).toBe(
      'paid never\nat all',
    )
  })

  test('of any text holds its promises', () => {
    fc.assert(
      fc.property(anyUnicode, fc.integer({ min: 1, max: 60 }), (text, max) => {
        const block = cleanBlock(text, max)
        expect(Array.from(block).length).toBeLessThanOrEqual(max)
        expect(block.replaceAll('\n', '')).not.toMatch(unseenCharacters)
        expect(block).not.toContain('\n\n')
        expect(block.isWellFormed()).toBe(true)
      }),
      { numRuns: 1000 },
    )
  })
})

test('a cut ends in an ellipsis and never in half a character', () => {
  expect(cutText('😀😀😀😀', 3)).toBe('😀😀…')
  expect(cutText('😀😀😀', 3)).toBe('😀😀😀')
})

test.each([
  ['exe\u202E', 'exe'],
  ['\u202Eexe', 'exe'],
  [' two  words ', 'two words'],
  ['two words', 'two words'],
  ['see https://a.example', 'see hxxps://a[.]example'],
])('of a line nothing is left that hides or links: %j', (text, line) => {
  expect(sanitizeLine(text, 100)).toBe(line)
})

test('words behind hundreds of characters that nobody sees are read, and a cut says so', () => {
  const unseen = '\u200B'
  expect(sanitizeLine(`${unseen.repeat(276)}word`, 10)).toBe('word')
  expect(sanitizeLine(`${unseen.repeat(276)}words`, 10)).toBe('word…')
  expect(sanitizeLine(`${unseen.repeat(276)}wor😀s`, 10)).toBe('wor…') // no half of a character
  expect(sanitizeLine(`word${unseen.repeat(277)}`, 10)).toBe('word…')
  expect(sanitizeLine(`\uD83Dy${unseen.repeat(277)}😀`, 10)).toBe('\uFFFDy…') // as where it is not cut
})

describe('a text that is written from right to left', () => {
  test.each(['שלום', 'Paste: مرحبا', 'ܫܠܡܐ', '\u{1E900}'])('%j is isolated', (text) => {
    expect(isolate(text)).toBe(`\u2068${text}\u2069`)
  })

  test.each(['', 'Paste: "hello" 12', 'Ünïcödé 日本 👍', 'привет'])('%j is not', (text) => {
    expect(isolate(text)).toBe(text)
  })

  test('stays isolated where it is cut', () => {
    fc.assert(
      fc.property(anyUnicode, anyUnicode, fc.integer({ min: 1, max: 60 }), (a, b, max) => {
        const [one, two] = [a, b].map((text) => isolate(cleanLine(`ש${text}`, 50)))
        const cut = cutText(`ours ${one} ours ${two} ours`, max)
        expect(Array.from(cut).length).toBeLessThanOrEqual(max)
        expect(cut.replaceAll(/\u2068[^\u2068\u2069]*\u2069/gu, '')).not.toMatch(/[\u2068\u2069]/u)
      }),
    )
  })
})
