/** What stands between ⟦ and ⟧ is found in the text without them, and nothing else. */
import { expect, test } from 'vitest'
import { shapeSpans } from '../../../src/feeds/secret-shapes.ts'
import { markSpans } from '../../support/marked-spans.ts'

test.each([
  'paid ⟦4556 7375 8689 9855⟧ now',
  '⟦4556-7375-8689-9855⟧',
  '4556 7375-8689 9855',
  '4556 7375 8689 9856',
  'card: ⟦4556737586899855⟧',
  'card number = "⟦5500000000000004⟧"',
  'cc: ⟦371449635398431⟧',
  'card: 455673758689985',
  '⟦4111111111111111⟧|12|2026|⟦123⟧',
  '⟦4111111111111111⟧ 12/26 ⟦1234⟧',
  '14111111111111111111111|12|26|123',
  '4111111111111111|12|26|12345',
  '⟦4111111111111⟧|1|26|⟦123⟧',
])('a payment card is one by its sum, its groups or what follows: %j', (text) => {
  expect(markSpans(shapeSpans, text)).toBe(text)
})

test.each([
  '-----BEGIN RSA PRIVATE KEY-----⟦\nMIIE\n⟧-----END RSA PRIVATE KEY-----\nx',
  '-----BEGIN RSA PRIVATE KEY-----⟦\nMIIE⟧',
  'a -----BEGIN RSA PRIVATE KEY-----⟦x⟧-----END RSA PRIVATE KEY----- b -----BEGIN RSA PRIVATE KEY-----⟦y⟧-----END RSA PRIVATE KEY----- c',
  '⟦MIIE\nABCD\n⟧-----END RSA PRIVATE KEY----- x',
  'the words\n⟦MIIE\nABCD=\n⟧-----END RSA PRIVATE KEY-----',
  '⟦MI⟧-----END RSA PRIVATE KEY-----',
  '-----BEGIN RSA PRIVATE KEY-----⟦\na\n-----BEGIN RSA PRIVATE KEY-----\nb\n-----END RSA PRIVATE KEY----- x ⟧-----END RSA PRIVATE KEY-----',
  'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n⟦ABCD\n⟧-----END RSA PRIVATE KEY-----',
  '⟦AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\nABCD\n⟧-----END RSA PRIVATE KEY-----',
  '-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----',
  'Private-Lines: 2\n⟦AAAA\nBBBB\n⟧Private-MAC: x',
  'Private-Lines: 2\r\n⟦AAAA\nBBBB⟧',
  String.raw`Private-Lines: 2\n⟦AA\n⟧Private-MAC`,
])('a private key is hidden as far as the text shows it: %j', (text) => {
  expect(markSpans(shapeSpans, text)).toBe(text)
})

test.each([
  '⟦ghp_abcdefghijkl⟧ x',
  'xghp_abcdefghijkl',
  '⟦AKIAABCDEFGHIJKL⟧',
  'https://api.telegram.org/bot⟦12345678:abc⟧',
])('a token is known by its prefix: %j', (text) => {
  expect(markSpans(shapeSpans, text)).toBe(text)
})

test('of a key, and of nothing else, no character is shown', () => {
  const hidden = (text: string): unknown[] => shapeSpans(text).map((span) => span.hidden)
  const [begin, end] = ['-----BEGIN PRIVATE KEY-----', '-----END PRIVATE KEY-----']
  expect(hidden(`${begin}x${end} ${begin}`)).toEqual([true, true])
  expect(hidden(`AB\n${end}`)).toEqual([true])
  expect(hidden('Private-Lines: 2\nAAAA')).toEqual([true])
  expect(hidden('4111111111111111|12|26|123')).toEqual([undefined, undefined])
})
