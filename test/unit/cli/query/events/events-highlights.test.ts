import { expect, test } from 'vitest'
import { highlightLines } from '../../../../../src/cli/api/events-search.ts'
import { maskHighlights } from '../../../../../src/masking/masking.ts'

const terminal = { paint: (_style: string, text: string) => `[${text}]` } as Parameters<
  typeof highlightLines
>[0]

function linesOf(received: Record<string, string[]>): string[] {
  return highlightLines(terminal, received, maskHighlights(received, true))
}

test('marked terms are bold, the tags gone', () => {
  expect(linesOf({ content: ['a <mark>bank</mark> and another <mark>bank</mark>'] })).toEqual([
    'content: a [bank] and another [bank]',
  ])
})

test('there are two lines at most, on one line each', () => {
  const lines = linesOf({ title: ['one\r\n<mark>two</mark>', 'three'], content: ['four'] })
  expect(lines).toEqual(['title: one [two]', 'title: three'])
})

test('a term far back is within the line', () => {
  const text = `${'word '.repeat(100)}<mark>bank</mark>${' more'.repeat(100)}`
  const [line = ''] = linesOf({ content: [text] })
  expect(line).toMatch(/^content: … (word )+\[bank\] more/)
  expect(line.length).toBeLessThan(160)
})

test('a marked secret is masked, not bold', () => {
  expect(
    linesOf({ content: ['password: <mark>hush-hush</mark>'], password: ['s3cret-word'] }),
  ).toEqual(['content: password: h••••h', 'password: s••••d'])
})

test('what would move the cursor is taken out', () => {
  const lines = linesOf({ '\u001B[2Jtitle': ['\u001B[31m<mark>red\u001B[0m</mark>\u202E'] })
  expect(lines).toEqual(['[2Jtitle: [31m[red[0m]'])
})

test('an event without highlights has no lines', () => {
  expect(highlightLines(terminal, null, undefined)).toEqual([])
})
