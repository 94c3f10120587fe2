import { expect, test } from 'vitest'
import { parseShortText } from '../../../src/cli/terminal.ts'

test('a short text in one line is taken, without the space around it', () => {
  expect(parseShortText(' mail server moves ')).toBe('mail server moves')
  expect(parseShortText('x'.repeat(200))).toHaveLength(200)
})

test.each(['', '  ', 'x'.repeat(201), 'two\nlines', 'a\u001B[2Jb'])('%j is refused', (text) => {
  expect(() => parseShortText(text)).toThrow('Write up to 200 characters, in one line.')
})
