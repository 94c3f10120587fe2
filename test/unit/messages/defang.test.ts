import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { defang, isolate, refang } from '../../../src/messages/sanitize.ts'
import { anyUnicode, linkable } from './any-unicode.ts'

describe('what a client would link is defanged', () => {
  test.each([
    ['https://evil.com/a?b=c.d', 'hxxps://evil[.]com/a?b=c.d'],
    ['HTTP://EVIL.COM', 'hxxp://EVIL[.]COM'],
    ['http://localhost/x', 'hxxp://localhost/x'],
    ['http://a/x https://b/x tg://c ftp://d', 'hxxp://a/x hxxps://b/x tg[:]//c ftp[:]//d'],
    ['HXXPS://HOST/share', 'HXXPS://HOST/share'],
    ['WWW.1', 'WWW[.]1'],
    ['tel:1 sms:2', 'tel[:]1 sms[:]2'],
    ['\\\\a\\b \\\\c\\d //e/f //g/h', '[\\\\]a\\b [\\\\]c\\d [//]e/f [//]g/h'],
    ['tg://resolve?domain=x', 'tg[:]//resolve?domain=x'],
    ['write to joe@acme.co.uk.', 'write to joe@acme[.]co[.]uk.'],
    ['10.0.0.1:8080', '10[.]0[.]0[.]1:8080'],
    ['пример.рф and 例え。テスト', 'пример[.]рф and 例え[.]テスト'],
    ['a.xn--p1ai', 'a[.]xn--p1ai'],
    ['evil．com', 'evil[.]com'],
    ['call tel:+41445556677 now', 'call tel[:]+41445556677 now'],
    ['SMS:+41445556677?body=yes', 'SMS[:]+41445556677?body=yes'],
    ['mailto:joe@localhost?subject=x', 'mailto[:]joe@localhost?subject=x'],
    ['<mailto:joe@acme.com>', '<mailto[:]joe@acme[.]com>'],
    ['étel:117', 'étel[:]117'],
    ['javascript:alert(1)', 'javascript[:]alert(1)'],
    ['ms-word:ofe|u|https://evil.com/a', 'ms-word[:]ofe|u|hxxps://evil[.]com/a'],
    ['search-ms:query=x', 'search-ms[:]query=x'],
    ['file:/etc/passwd', 'file[:]/etc/passwd'],
    ['file:///etc/passwd', 'file[:]///etc/passwd'],
    ['file:\\\\host\\share', 'file[:][\\\\]host\\share'],
    ['see \\\\host\\share', 'see [\\\\]host\\share'],
    ['(\\\\10.0.0.1\\c$)', '([\\\\]10[.]0[.]0[.]1\\c$)'],
    ['\\\\?\\UNC\\host\\share', '[\\\\]?\\UNC\\host\\share'],
    ['//host/share', '[//]host/share'],
    ['"//host/share"', '"[//]host/share"'],
    ['http:\\\\localhost\\x', 'hxxp:[\\\\]localhost\\x'],
    ['\\\\//host/share', '[\\\\][//]host/share'],
  ])('%j becomes %j', (text, defanged) => {
    expect(defang(text)).toBe(defanged)
    expect(defang(defanged)).toBe(defanged)
  })

  test('of any text nothing linkable remains, and twice is once', () => {
    fc.assert(
      fc.property(anyUnicode, (text) => {
        expect(defang(text)).not.toMatch(linkable)
        expect(defang(defang(text))).toBe(defang(text))
      }),
      { numRuns: 2000 },
    )
  })
})

test.each([
  '12.50 USD',
  'nginx 1.18.0',
  'e.g. this',
  'Mr. Smith... no',
  'OpenSSH_8.2p1',
  'joe:H••••1',
  'Tel: 044 555 66 77',
  'hotel:7',
  'at 12:30:05',
  'C:\\Users\\joe',
  'C:\\\\Users\\\\joe',
  'x = 1 // the sum',
  '//TODO',
  'a//b/c',
  '::1',
])('what nobody links stays: %j', (text) => {
  expect(defang(text)).toBe(text)
})

test.each([
  'https://evil.com/a',
  'domain/flare/evil.com',
  'tg://x',
  'joe@acme.com',
  'tel:117',
  '\\\\host\\share',
  '//host/share',
  'http://a.b.example and https://c.d.example, ftp://e and tg://f',
])('refang gives %j back', (text) => {
  expect(refang(defang(text))).toBe(text)
})

test('refang leaves out what isolates text from right to left, which is copied with it unseen', () => {
  expect(refang(isolate('a/b[.]com/שלום'))).toBe('a/b.com/שלום')
})
