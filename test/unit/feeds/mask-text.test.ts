import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cut, maskIdentity, maskTag, maskText } from '../../../src/feeds/masking.ts'

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

describe('whoever and wherever stays readable', () => {
  test.each([
    ['login: x password: y z host: w', 'login: x password: •••• host: w'],
    [
      '{"user":"joe","password":"a b","host":"db1"}',
      '{"user":"joe","password":"••••","host":"db1"}',
    ],
    [
      'Server=db1;User Id=sa;Password=hun ter 2;Database=x',
      'Server=db1;User Id=sa;Password=h••••2;Database=x',
    ],
    ['PGPASSWORD=hunter22 psql -h db1 -U joe', 'PGPASSWORD=h••••2 psql -h db1 -U joe'],
    ['postgres://joe:p@ss/word@db.example:5432/x', 'postgres://joe:p••••d@db.example:5432/x'],
    ['redis://:hunter22@cache:6379', 'redis://:h••••2@cache:6379'],
    ['1.2.3.4:8080:joe:hunter22', '1.2.3.4:8080:joe:h••••2'],
    [
      '-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nof joe',
      '-----BEGIN PRIVATE KEY-----••••-----END PRIVATE KEY-----\nof joe',
    ],
    ['user,password\njoe,hunter22\n\nhost db1', 'user,password\njoe,h••••2\n\nhost db1'],
    ['User SID: S-1-5-21-36238110-1000', 'User SID: S-1-5-21-36238110-1000'],
  ])('%j', (text, masked) => {
    expect(maskText(text)).toBe(masked)
  })
})

test.each([
  ['Password: Tr0ub4dor&3-horse,ZEBRA', 'Password: T••••A'],
  ['alice@example.com:pass word 123', 'alice@example.com:p••••3'],
  ['Password: "say "hi" bob"', 'Password: "s••••b"'],
  ["password='it''s a secret'", "password='i••••t'"],
  ['?password=a&b=c', '?password=••••&b=c'],
  ['pass\u00ADword: hunter22', 'password: h••••2'],
  ['<mark>pass</mark>word: hun<mark>ter</mark>22', 'password: h••••2'],
])('a password leaves no tail: %j', (text, masked) => {
  expect(maskText(text)).toBe(masked)
})

/** Pieces of what the masks look for, in any order. */
const pieces =
  'password|: |=|=>| |\n|"|\'|&|?|joe|@acme.example|:|hunter22|Tr0ub4dor&3|<mark>|</mark>|{|}|(|)|,|;|\t|login: |token|api key|ghp_abcdefghijklmnopqrst|://|-----BEGIN PRIVATE KEY-----|-----END PRIVATE KEY-----|<b>|is |пароль|密码|••••|h••••2|\\"|12345|cookie: |Authorization: |Bearer |user,password|curl -u |values (|insert into a (password) |"name":"password"|"value":|…'.split(
    '|',
  )
const anyText = fc.oneof(
  fc.array(fc.constantFrom(...pieces), { maxLength: 14 }).map((parts) => parts.join('')),
  fc.string({ unit: 'binary', maxLength: 60 }),
)

test.each(
  Object.entries({
    maskText,
    maskDump: (text: string) => maskText(text, true),
    maskTag,
    maskIdentity,
  }),
)(
  'what is masked on its way into Redis is not masked again on its way out: %s is idempotent, and never throws',
  (_name, mask) => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(mask(mask(text))).toBe(mask(text))
      }),
      { numRuns: 1_000 },
    )
  },
)

test('a text that is cut before or after it is masked shows nothing of the secret', () => {
  const secret = fc.stringMatching(/^[a-z]{4}[ &,'"#][A-Z]{4}[0-9]{4}$/)
  const before = fc.constantFrom(
    'Password: ',
    'joe@acme.example:',
    'пароль=',
    'https://joe:',
    'pwd="',
  )
  fc.assert(
    fc.property(secret, before, fc.nat(40), (planted, label, at) => {
      const hidden = planted
        .replaceAll(label.startsWith('http') ? / /g : /$^/g, '_')
        .replaceAll(/["'#]/g, '.')
      const text = `${label}${hidden}${label.startsWith('http') ? '@acme.example/' : ''}`
      for (const shown of [maskText(cut(text, at)), cut(maskText(text), at)]) {
        for (let from = 0; from + 4 <= hidden.length; from += 1) {
          expect(shown).not.toContain(hidden.slice(from, from + 4))
        }
      }
    }),
  )
})

test('a megabyte of text holds the daemon for a moment: the work grows with the length, not with its square', () => {
  const units = [
    'a',
    'a.',
    'a@',
    'a:',
    '@:',
    'pass',
    'a.b:',
    'a:b\n',
    "insert into t (password) values ('a'),('b');",
    '://a:',
    '\t',
    'x@y:',
    'password: "a ',
    'token:" "a ',
    '密码是',
    'Joe wrote: a lovely day. ',
  ]
  const slow: string[] = []
  for (const unit of units) {
    const quarter = cpuMsOf(unit, 250_000)
    const whole = cpuMsOf(unit, 1_000_000)
    process.stdout.write(
      `1 MB of ${JSON.stringify(unit)}: ${Math.round(whole)} ms of CPU, ${(whole / quarter).toFixed(1)} times 250 kB\n`,
    )
    if (whole > 8 * Math.max(quarter, 20)) slow.push(unit)
  }
  expect(slow).toEqual([])
}, 120_000)

/** Time of the processor, the least of two: others on the machine do not count. */
function cpuMsOf(unit: string, length: number): number {
  const text = unit.repeat(Math.ceil(length / unit.length))
  const measured = [1, 2].map(() => {
    const before = process.cpuUsage()
    maskText(text, true)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1_000
  })
  return Math.min(...measured)
}
