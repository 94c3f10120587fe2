import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  withheldText,
  withhold,
  withholdName,
  withholds,
  withholdTag,
} from '../../../src/masking/masking.ts'
import { signs } from '../../../src/masking/signs.ts'

test.each(signs.map(({ name, example }) => [name, example]))(
  'the sign "%s" is found in %j, and no sign before it',
  (name, example) => {
    expect(withholds(example)?.name).toBe(name)
  },
)

/** Each beside a text that has the sign: what differs is no more than the secret. */
test.each([
  'The password policy requires twelve characters.',
  'Forgot password? Click here',
  'Passwords: 120, Cookies: 40',
  'password: string;',
  'password: ${DB_PASSWORD}',
  'const token = os.environ["TOKEN"]',
  'see https://acme.example/a?b=c, or write to joe@acme.example, please',
  'https://acme.example:8443/login',
  'mailto:joe@acme.example',
  'seen at 12:30 and 2026-01-05T12:30:45Z',
  'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  'MD5: d41d8cd98f00b204e9800998ecf8427e',
  'request 4f6d1c1e-8f0b-4c55-9d5b-2f0f6f3f7c11 of APT29 used CVE-2024-3400',
  String.raw`C:\Users\joe\AppData\Local\Temp\build.exe`,
  '00:1A:2B:3C:4D:5E',
  'fe80::1ff:fe23:4567:890a',
  'open ports\n10.0.0.1:8080\nvpn.example.com:443',
  'git@acme.example:team/repo.git',
  'IBAN: DE89 3704 0044 0532 0130 00',
  'joe@acme.example - CEO of ACME since 2019',
  'wallet bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq',
  'primary_key: 12',
  'User SID: S-1-5-21-3623811015-3361044348',
  '<script>alert(1)</script> <!channel> <@U012AB3CD> <!subteam^S1> <https://evil.example|click>',
  'SSH-2.0-OpenSSH_8.9p1 Ubuntu-3ubuntu0.6',
  'getElementById, GitHub and LummaC2 on Windows11',
  'Your password stays the same until Monday.',
  'The password came up: nobody in the team knew the one of the server.',
  'password: process.env.DB_PASSWORD,',
  'Authorization: Bearer $API_TOKEN',
  'password: ${{ secrets.NPM_TOKEN }}',
  'API_KEY=YOUR_API_KEY\nDEBUG=false',
  'DB_PASSWORD=\nDB_HOST=localhost',
  'https://acme.example/login | jo*****@acme.example | ********',
  'login(user: string, password: string): Promise<Session>',
  'if (form.password !== user.password) { return }',
  'connect(host, password=password)',
  '"integrity": "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg=="',
  'src="data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"',
  'at com.acme.TokenFilter.doFilter(TokenFilter.java:41)',
])('no sign is found in %j', (text) => {
  expect(withholds(text)).toBeNull()
})

test.each([
  ['an invisible character', 'pass\u00ADword: hunter22'],
  ['another width', 'ｐａｓｓｗｏｒｄ：ｈｕｎｔｅｒ'],
  ['mark tags', '<mark>pass</mark>word: hun<mark>ter</mark>22'],
  ['tags of HTML', '<td>Password</td><td>hunter</td>'],
  ['a tag called so', '<password>hunter</password>'],
  ['a word of a format', 'password: user'],
  ['a dash', 'password: -hunter'],
  ['what looks like a call', 'password: Summer(2024)'],
  ['the mask itself', `password: ${withheldText} hunter22`],
  ['brackets', '(your new password: tangerine)'],
  ['stars', 'password: ***hunter***'],
  ['a default of a variable', 'password: ${DB_PASSWORD:-tangerine}'],
  ['a label cut at its start', 'ssword: "tangerine dream"'],
  ['a question in the line before', "Ann: what's the wifi password?\nBob: tangerine dream"],
  ['what it was changed to', 'I changed my password to tangerine yesterday'],
  ['a word for typing', 'enter 70317 on the keypad'],
  ['the name of a column', 'Name,PIN\nAnn,4821'],
  ['more words', 'the phrase for the drive is in my passphrase: correct horse battery staple'],
  ['a call', 'client.login("joe", "tangerine")'],
  ['the end of an address', 'https://a.example/wp-login.php#admin@tangerine'],
  ['a word for a code word', 'кодовое слово: апельсин'],
])('a sign is found behind %s', (_what, text) => {
  expect(withholds(text)).not.toBeNull()
})

test.each([
  ['We sell <mark>Acme</mark> data', 'We sell Acme data'],
  ['joe@<mark>acme.com</mark>:hunter22', withheldText],
  ['<mark>joe@acme.com</mark>:hunter22', withheldText],
  ['<mark>acme.com</mark>, <mark>acme.com</mark>, pw: x', withheldText],
  ['password: <mark>My.Secret.Pass</mark>', withheldText],
  ['pwd <mark>sunny@flower.garden</mark>', withheldText],
  ['password: <mark>Summer2024!</mark>', withheldText],
  ['password: x<mark>acme.com</mark>22', withheldText],
  ['password: <mark>Acme</mark>-22', withheldText],
])('of %j is shown %j: what is marked may be the secret', (text, shown) => {
  expect(withhold(text)).toBe(shown)
})

test.each([
  ['jdoe_99', 'jdoe_99'],
  ['5f4dcc3b5aa765d61d8327deb882cf99', '5f4dcc3b5aa765d61d8327deb882cf99'],
  ['Größe & Söhne', 'Größe & Söhne'],
  ['joe:hunter2pw', withheldText],
  ['ghp_abcdefghijklmnopqrstuvwxyz0123456789', withheldText],
  ['password: hunter22', withheldText],
])('of the name %j is shown %j', (name, shown) => {
  expect(withholdName(name)).toBe(shown)
})

test.each([
  ['token:github', 'token:github'],
  ['pass:reset', 'pass:reset'],
  ['token:ghp_abcdefghijklmnop', withheldText],
  ['password: hunter22', withheldText],
  ['joe@acme.com:hunter22', withheldText],
])('of the tag %j is shown %j', (tag, shown) => {
  expect(withholdTag(tag)).toBe(shown)
})

/** Pieces of what the signs look for, in any order. */
const pieces =
  'password|: |=|=>| |\n|"|&|?|joe|@acme.example|:|hunter22|Tr0ub4dor&3|<mark>|</mark>|{|(|,|;|\t|login: |api key|://|-----BEGIN PRIVATE KEY-----|<b>|is |пароль|密码|••••|h••••2|12345|cookie: |Bearer |curl -u |…|acme.com'.split(
    '|',
  )
const anyText = fc.oneof(
  fc.array(fc.constantFrom(...pieces), { maxLength: 14 }).map((parts) => parts.join('')),
  fc.string({ unit: 'binary', maxLength: 60 }),
)

test.each(Object.entries({ withhold, withholdTag }))(
  '%s is idempotent and never throws',
  (_name, judge) => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(judge(judge(text))).toBe(judge(text))
      }),
      { numRuns: 1_000 },
    )
  },
)

test('a text that ends within a pair is withheld from the first character of the secret on', () => {
  for (const text of ['Password: hunter22', 'joe@acme.example:hunter22', 'пароль=hunter22'])
    for (let end = text.indexOf('h', 4) + 1; end <= text.length; end += 1)
      expect([text.slice(0, end), withhold(text.slice(0, end))]).toEqual([
        text.slice(0, end),
        withheldText,
      ])
})
