import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { maskText } from '../../../src/feeds/mask-text.ts'

describe('a secret in free text is masked', () => {
  test.each([
    ['joe@example.com:hunter22', 'joe@example.com:h••••2'],
    ['joe@example.com:ab', 'joe@example.com:••••'],
    ['joe@example.com | hunter22', 'joe@example.com | h••••2'],
    ['joe@example.com,hunter22', 'joe@example.com,h••••2'],
    ['joe@example.com\thunter22', 'joe@example.com\th••••2'],
    ['https://site.example/login:joe:hunter22', 'https://site.example/login:joe:h••••2'],
    ['https://site.example:8443/a:joe:hunter22', 'https://site.example:8443/a:joe:h••••2'],
    ['site.example:joe:hunter:22', 'site.example:joe:h••••2'],
    ['site.example/in:joe@example.com:hunter22', 'site.example/in:joe@example.com:h••••2'],
    ['ftp://joe:hunter22@files.example/x', 'ftp://joe:h••••2@files.example/x'],
    ['Username: joe Password: hunter22', 'Username: joe Password: h••••2'],
    ['{"pass":"hunter22","x":1}', '{"pass":"h••••2","x":1}'],
    ['https://x.example/?a=1&token=abcdefgh&b=2', 'https://x.example/?a=1&token=a••••h&b=2'],
    ['Authorization: Bearer abcdefgh', 'Authorization: Bearer a••••h'],
    ['Set-Cookie: sid=abcdefgh; Path=/', 'Set-Cookie: ••••'],
    ['joe:hunter22\nann:letmein1', 'joe:h••••2\nann:l••••1'],
  ])('%j', (text, masked) => {
    expect(maskText(text)).toBe(masked)
  })

  test('in a dump, one plain line is enough', () => {
    expect(maskText('joe:hunter22', true)).toBe('joe:h••••2')
    expect(maskText('joe:hunter22')).toBe('joe:hunter22')
  })

  test('in every line of a combolist', () => {
    const secret = fc.stringMatching(/^[a-zA-Z0-9!$%&*+?@#~]{12,20}$/)
    const entry = fc.record({ name: fc.stringMatching(/^[a-z]{1,8}$/), secret })
    fc.assert(
      fc.property(fc.array(entry, { minLength: 1, maxLength: 8 }), (entries) => {
        const text = entries.map((one) => `${one.name}@mail.example:${one.secret}`).join('\r\n')
        const masked = maskText(text)
        for (const one of entries) {
          expect(masked).not.toContain(one.secret)
          expect(masked).toContain(`${one.name}@mail.example:`)
        }
      }),
    )
  })
})

test.each([
  'seen at 12:30 and 2026-01-05T12:30:45Z',
  'open ports\n10.0.0.1:8080\nvpn.example.com:443',
  'see https://example.com/a?b=c, or write to joe@example.com, please',
  'https://one.example\nhttps://two.example',
  'the token economy; a secret garden',
])('what holds no secret stays: %j', (text) => {
  expect(maskText(text)).toBe(text)
})

test('long hostile text is read in linear time', () => {
  const texts = ['a', 'a.', 'a@', 'a:', '@:', 'pass', 'a.b:', '://a:', '\t', 'x@y:'].map((unit) =>
    unit.repeat(Math.ceil(20_000 / unit.length)),
  )
  const startedAt = performance.now()
  for (const text of texts) maskText(text, true)
  expect(performance.now() - startedAt).toBeLessThan(2000)
})
