import fc from 'fast-check'
import { expect, test } from 'vitest'
import { plainText } from '../../../../../src/cli/api/report-text.ts'
import { wrapText } from '../../../../../src/lib/text-width.ts'

const look = { width: 30, strong: (text: string) => `<${text}>` }

test('Markdown becomes text: headings, paragraphs, lists and tables, without their marks', () => {
  const markdown = `# A **title**

One paragraph that is
written on two lines.
- first \`code\`
- second, which is longer than a line is
  and goes on
  1. inner

| Kind | Events |
|---|---:|
| leak | 3 |
| stealer_log | 12 |
See [the page](https://a.example/x).`
  expect(plainText(markdown, look)).toEqual([
    '<A title>',
    '',
    'One paragraph that is written',
    'on two lines.',
    '',
    '• first code',
    '• second, which is longer than',
    '  a line is and goes on',
    '  1. inner',
    '',
    'Kind         Events',
    'leak         3',
    'stealer_log  12',
    '',
    'See the page',
    '(https://a.example/x).',
  ])
})

test('nothing is left out, and no line is wider than asked for but by one long word', () => {
  const word = fc.stringMatching(/^[a-z0-9漢é]{1,40}$/)
  fc.assert(
    fc.property(
      fc.array(word, { minLength: 1 }),
      fc.integer({ min: 5, max: 40 }),
      (words, width) => {
        const lines = wrapText(words.join(' '), width, { first: '• ', rest: '  ' })
        expect(lines.join(' ').split(/ +/).slice(1)).toEqual(words)
        for (const line of lines) {
          const isOneWord = line.trim().replace(/^• /, '').split(' ').length === 1
          expect(isOneWord || line.length <= width).toBe(true)
        }
      },
    ),
  )
})

test('any text is told with all its words, and cannot move a cursor', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const lines = plainText(text, { width: 40, strong: (same) => same })
      expect(lines.join('')).not.toMatch(/[\p{Cc}]/u)
    }),
  )
})
