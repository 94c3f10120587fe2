import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { defang, refang } from '../../../src/messages/defang.ts'
import { anyUnicode, linkable } from './any-unicode.ts'

describe('what a client would link is defanged', () => {
  test.each([
    ['https://evil.com/a?b=c.d', 'hxxps://evil[.]com/a?b=c.d'],
    ['HTTP://EVIL.COM', 'hxxp://EVIL[.]COM'],
    ['http://localhost/x', 'hxxp://localhost/x'],
    ['tg://resolve?domain=x', 'tg[:]//resolve?domain=x'],
    ['write to joe@acme.co.uk.', 'write to joe@acme[.]co[.]uk.'],
    ['10.0.0.1:8080', '10[.]0[.]0[.]1:8080'],
    ['пример.рф and 例え。テスト', 'пример[.]рф and 例え[.]テスト'],
    ['a.xn--p1ai', 'a[.]xn--p1ai'],
    ['evil．com', 'evil[.]com'],
  ])('%j becomes %j', (text, defanged) => {
    expect(defang(text)).toBe(defanged)
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

test.each(['12.50 USD', 'nginx 1.18.0', 'e.g. this', 'Mr. Smith... no', 'OpenSSH_8.2p1'])(
  'what nobody links stays: %j',
  (text) => {
    expect(defang(text)).toBe(text)
  },
)

test.each(['https://evil.com/a', 'domain/flare/evil.com', 'tg://x', 'joe@acme.com'])(
  'refang gives %j back',
  (text) => {
    expect(refang(defang(text))).toBe(text)
  },
)
