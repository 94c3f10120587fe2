import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fullMask, maskSecret } from '../../../src/masking/mask-secret.ts'
import {
  cut,
  maskIdentity,
  maskKnown,
  withheldText,
  withholdIn,
} from '../../../src/masking/masking.ts'

const secretKeys = [
  'password',
  'Passwd',
  'PASSWORD',
  'pwd',
  'pass',
  'passphrase',
  'hash',
  'credential_hash',
  'credentialHash',
  'plaintext',
  'hash_cleartext',
  'secret',
  'client_secret',
  'token',
  'accessToken',
  'api_key',
  'apiKey',
  'API-KEY',
  'private_key',
  'authorization',
  'session_id',
  'cvv',
  'pin',
  'credentials.password',
  'data.credentials.0.password',
  'password.keyword',
  'cookies.value',
  'cookie',
  'Set-Cookie',
]

/** Long enough that it stands nowhere by chance. */
const plantedSecret = fc.stringMatching(/^[a-zA-Z0-9!$%&*+?@#~]{12,40}$/)
const innocent = fc.constantFrom('url', 'name', 'victim', 'items', 'data', 'a.b', 'value', 'list')

/** A secret under a telling key, wrapped in objects and lists. */
const planted = fc
  .record({
    secret: plantedSecret,
    key: fc.constantFrom(...secretKeys),
    shape: fc.constantFrom('text', 'list', 'object'),
    path: fc.array(fc.oneof(innocent, fc.constant(0)), { maxLength: 12 }),
  })
  .map(({ secret, key, shape, path }) => {
    const held = { text: secret, list: ['x', secret], object: { of: { it: secret } } }[shape]
    const value = path.reduceRight<unknown>(
      (inner, step) => (typeof step === 'number' ? [1, inner] : { before: 'x', [step]: inner }),
      { [key]: held },
    )
    return { secret, value }
  })

describe('a secret under a telling key', () => {
  test('never survives, at whatever depth and in whatever shape', () => {
    fc.assert(
      fc.property(planted, ({ secret, value }) => {
        expect(JSON.stringify(withholdIn({ value }))).not.toContain(secret)
      }),
      { numRuns: 500 },
    )
  })

  test('keeps its first and last character, a short one nothing', () => {
    expect(withholdIn({ password: 'hunter22' })).toEqual({ password: 'h••••2' })
    expect(withholdIn({ password: ' hunter22\n' })).toEqual({ password: 'h••••2' })
    expect(withholdIn({ password: ' abcde ' })).toEqual({ password: fullMask })
    expect(withholdIn({ password: 'abc', pin: 1234 })).toEqual({
      password: fullMask,
      pin: fullMask,
    })
  })

  test('masking twice is masking once', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (secret) => {
        expect(maskSecret(maskSecret(secret))).toBe(maskSecret(secret))
      }),
    )
  })

  test('is found where a form names it beside its value', () => {
    expect(withholdIn({ autofill: [{ name: 'password', value: 'hunter22' }] })).toEqual({
      autofill: [{ name: 'password', value: 'h••••2' }],
    })
  })
})

describe('no field gives a secret away', () => {
  test.each([
    ['a number as a cookie', { cookies: { sid: 12345678 } }, { cookies: { sid: fullMask } }],
    ['numbers in a list of cookies', { cookies: [12345678] }, { cookies: [fullMask] }],
    ['a number as a token', { access_token: 12345678 }, { access_token: fullMask }],
    ['a number within a secret', { secret: { a: [7] } }, { secret: { a: [fullMask] } }],
    [
      'a label beside its value',
      { label: 'password', value: 'hunter22' },
      { label: 'password', value: 'h••••2' },
    ],
    ...['name', 'key', 'field', 'label', 'type', 'id', 'title'].flatMap((naming) =>
      ['value', 'val', 'content', 'text', 'data', 'answer'].map(
        (holding): [string, Record<string, string>, Record<string, string>] => [
          `what ${naming} and ${holding} make of it`,
          { [naming]: 'password', [holding]: 'hunter22' },
          { [naming]: 'password', [holding]: 'h••••2' },
        ],
      ),
    ),
    [
      'a number beside the name of a secret',
      { name: 'password', value: 12345678 },
      { name: 'password', value: fullMask },
    ],
    [
      "a number among a cookie's own fields",
      { cookies: [{ name: 'sid', value: 12345678 }] },
      { cookies: [{ name: 'sid', value: fullMask }] },
    ],
    [
      'a label in capitals beside a number',
      { Field: 'PIN', Content: 1234 },
      { Field: 'PIN', Content: fullMask },
    ],
    ['a name in camel case', { secretAccessKey: 'abc def' }, { secretAccessKey: 'a••••f' }],
    ['a name that ends in _KEY', { STRIPE_KEY: 'abcdef' }, { STRIPE_KEY: 'a••••f' }],
    ['another language', { contraseña: 'hunter22' }, { contraseña: 'h••••2' }],
    ['another script', { 登录密码: 'hunter22' }, { 登录密码: 'h••••2' }],
    ['a list that became keys', { 'joe@acme.example:hunter22': 1 }, { [withheldText]: 1 }],
  ])('as %s', (_name, data, masked) => {
    expect(withholdIn(data)).toEqual(masked)
  })

  test('but keys that open nothing, and who and where, stay', () => {
    const data = {
      primary_key: 12,
      sid: 'S-1-5-21-1-2',
      auth_domains: ['vpn.acme.example'],
      secretary: 'Ann',
      label: 'user',
      value: 'joe',
    }
    expect(withholdIn(data)).toEqual(data)
  })
})

test('only the index of a uid tells of a cookie: in other events a value is judged by its name', () => {
  for (const uid of ['cookie/live/1', 'Cookies/live/1']) {
    expect(withholdIn({ value: 'abcdef1234' }, uid)).toEqual({ value: fullMask })
    expect(withholdIn({ value: ['abcdef1234'] }, uid)).toEqual({ value: [fullMask] })
  }
  for (const uid of ['paste/cookies/1', 'recookie/live/1', 'cookies_list/live/1']) {
    expect(withholdIn({ value: 'abcdef1234' }, uid)).toEqual({ value: 'abcdef1234' })
  }
})

describe('what comes out is bounded', () => {
  test('of values are kept two hundred thousand characters: eight for a number, one more for each value and key', () => {
    const keptOf = (count: number, value: unknown): unknown[] =>
      withholdIn(Array.from({ length: count }, () => value)) as unknown[]
    expect(keptOf(30_000, 7)).toHaveLength(22_223)
    expect(keptOf(250_000, null)).toHaveLength(199_999)
    const named = Array.from({ length: 30_000 }, (_, n) => [`k${100_000_000 + n}`.slice(1), null])
    expect(Object.keys(withholdIn(Object.fromEntries(named)) as object)).toHaveLength(19_999)
    const words = 'a b '.repeat(5_000)
    const texts = keptOf(20, words) as string[]
    expect(texts.map(({ length }) => length)).toEqual([
      ...Array.from({ length: 9 }, () => 20_000),
      19_991,
    ])
    expect(keptOf(1, `${words}c`)).toEqual([`${words}…`])
  })

  test('sixty-four levels are kept', () => {
    const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`
    const ofObjects = (levels: number, inner: string): string =>
      `${'{"a":'.repeat(levels)}${inner}${'}'.repeat(levels)}`
    const shownOf = (json: string): string => JSON.stringify(withholdIn(JSON.parse(json)))
    expect(shownOf(nested(64))).toBe(nested(64))
    expect(shownOf(nested(66))).toBe(`${'['.repeat(64)}"…"${']'.repeat(64)}`)
    expect(shownOf(ofObjects(64, '1'))).toBe(ofObjects(64, '1'))
    expect(shownOf(ofObjects(65, '1'))).toBe(ofObjects(64, '"…"'))
  })
})

test('a text that may hold a secret is withheld in whatever field it stands', () => {
  const data = { credentials: [{ username: 'joe:hunter22!', url: 'https://sso.acme.example' }] }
  expect(withholdIn(data, 'stealer_log/lumma/1')).toEqual({
    credentials: [{ username: withheldText, url: 'https://sso.acme.example' }],
  })
  const leak = { description: 'Revenue:$45M' }
  expect(withholdIn(leak, 'ransomleak/lockbit/1')).toEqual(leak)
})

test('an id or a digest stays where its name says so, unless it holds more', () => {
  const ids = { id: 'A1b2C3d4E5', hwid: '7D4EC17D82F0AA', digest: `sha256:${'9f'.repeat(32)}` }
  expect(withholdIn(ids)).toEqual(ids)
  expect(withholdIn({ id: 'joe:hunter22', title: 'A1b2C3d4E5' })).toEqual({
    id: withheldText,
    title: withheldText,
  })
})

test.each([
  ['abc', 3, 'abc'],
  ['abcd', 3, 'abc…'],
  ['a😀b', 2, 'a…'],
  ['a😀b', 3, 'a😀…'],
  ['abc', 0, '…'],
  ['abc', -1, '…'],
  ['a\uD83D', 5, 'a\uFFFD'],
])('of %j are kept %i code units and no half of a character: %j', (text, most, kept) => {
  expect(cut(text, most)).toBe(kept)
})

test('a known secret of four characters and more is masked wherever it stands', () => {
  expect(maskKnown(['abc'])('abc abcd')).toBe('abc abcd')
  expect(maskKnown(['abcd'])('abc abcd')).toBe(`abc ${fullMask}`)
  expect(maskKnown([' hunter22 '])('(hunter22)')).toBe('(h••••2)')
  const nested = ['hunter', 'hunter22', 'hunter2'] // a longer one is no rest of a shorter one
  expect(maskKnown(nested)('hunter22 hunter2 hunter')).toBe('h••••2 h••••2 h••••r')
})

test('of known secrets that hold one another nothing stays, whichever is named first', () => {
  for (const secrets of [
    ['winter', 'winter2024!'],
    ['winter2024!', 'winter'],
  ]) {
    expect(maskKnown(secrets)('new: winter2024!, old: winter')).toBe('new: w••••!, old: w••••r')
  }
})

test.each([
  ['joe.doe@acme.com', 'joe.doe@acme.com'],
  [String.raw`ACME\jessica1994`, String.raw`ACME\jessica1994`],
  ['joe:hunter22', 'joe:h••••2'],
  ['https://acme.com/login|joe|hunter22', 'https://acme.com/login|joe|h••••2'],
  ['(http://a.example)\njoe:hunter22', withheldText],
])('of the identity %j is shown %j', (identity, shown) => {
  expect(maskIdentity(identity)).toBe(shown)
  expect(maskIdentity(maskIdentity(identity))).toBe(shown)
})

test('a mark is found in any case of letters, and however many other tags stand before it', () => {
  expect(withholdIn('blue<MARK>berry</MARK>')).toBe('blueberry')
  expect(withholdIn(`${'<i>'.repeat(300)}blue<mark>berry</mark>`)).toBe(
    `${'<i>'.repeat(300)}blueberry`,
  )
})
