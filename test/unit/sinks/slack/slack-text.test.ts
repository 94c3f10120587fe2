import fc from 'fast-check'
import { expect, test } from 'vitest'
import { escapeWithin, mrkdwnText, plainText } from '../../../../src/sinks/slack/slack-message.ts'

test('exactly three characters are escaped', () => {
  expect(escapeWithin(`<!channel> & "it's" *bold*`, 100)).toBe(
    `&lt;!channel&gt; &amp; "it's" *bold*`,
  )
})

test('the length counts after escaping, and no entity is cut in two', () => {
  expect(escapeWithin('&&&', 15)).toBe('&amp;&amp;&amp;')
  expect(escapeWithin('&&&', 14)).toBe('&amp;&amp;…')
  expect(escapeWithin('&&&', 10)).toBe('&amp;…')
})

test('a cut falls between code points', () => {
  expect(escapeWithin('😀😀😀', 4)).toBe('😀…')
})

test('whatever the text, it fits, and what was not cut comes back whole', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 300 }), (text, max) => {
      const escaped = escapeWithin(text, max)
      expect(escaped.length).toBeLessThanOrEqual(max)
      const decoded = escaped
        .replaceAll('&lt;', '<')
        .replaceAll('&gt;', '>')
        .replaceAll('&amp;', '&')
      const isCut = decoded !== text
      expect(text.startsWith(isCut ? decoded.slice(0, -1) : decoded)).toBe(true)
    }),
  )
})

test.each([
  ['```x`', "'''x'"],
  [':skull: of :+1::joy:', '[:]skull: of [:]+1:[:]joy:'],
  ['a:b:c', 'a[:]b:c'],
  [':日本:', '[:]日本:'],
  [':8ball:', '[:]8ball:'],
  ['Digest 08:00: 3 events at 12:30:05', 'Digest 08:00: 3 events at 12:30:05'],
  ['TLS: none', 'TLS: none'],
  ['https://app.example.com/a:b:c', 'https://app.example.com/a:b:c'],
])('where Slack reads back-ticks and names of emoji, %j is %j', (text, shown) => {
  expect(mrkdwnText(text, 100)).toBe(shown)
})

test('no text is empty, for Slack refuses that', () => {
  expect(plainText('', 10)).toEqual({ type: 'plain_text', text: '-', emoji: false })
  expect(mrkdwnText('', 10)).toBe('-')
})

test('a cut leaves no isolate open', () => {
  const text = 'ours \u2068שלום\u2069 ours'
  expect([7, 9, 11, 12].map((max) => escapeWithin(text, max))).toEqual([
    'ours …',
    'ours \u2068ש\u2069…',
    'ours \u2068שלו\u2069…',
    'ours \u2068שלום\u2069…',
  ])
})
