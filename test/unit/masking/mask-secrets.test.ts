import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fullMask, maskSecret } from '../../../src/masking/mask-secret.ts'
import {
  cut,
  maskDetail,
  maskHighlights,
  maskIdentity,
  maskKnown,
  maskSecrets,
  maskText,
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
        expect(JSON.stringify(maskDetail({ value }))).not.toContain(secret)
        expect(JSON.stringify(maskSecrets(value))).not.toContain(secret)
      }),
      { numRuns: 500 },
    )
  })

  test('never survives in a highlight of that name', () => {
    fc.assert(
      fc.property(plantedSecret, fc.constantFrom(...secretKeys), (secret, field) => {
        const highlights = { [field]: [secret, `<mark>${secret}</mark>`], url: ['x'] }
        expect(JSON.stringify(maskHighlights(highlights))).not.toContain(secret)
      }),
    )
  })

  test('keeps its first and last character, a short one nothing', () => {
    expect(maskDetail({ password: 'hunter22' })).toEqual({ password: 'h••••2' })
    expect(maskDetail({ password: ' hunter22\n' })).toEqual({ password: 'h••••2' })
    expect(maskDetail({ password: ' abcde ' })).toEqual({ password: fullMask })
    expect(maskDetail({ password: 'abc', pin: 1234 })).toEqual({
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
    expect(maskDetail({ autofill: [{ name: 'password', value: 'hunter22' }] })).toEqual({
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
    [
      'a list that became keys',
      { 'joe@acme.example:hunter22': 1 },
      { 'joe@acme.example:h••••2': 1 },
    ],
  ])('as %s', (_name, data, masked) => {
    expect(maskDetail(data)).toEqual(masked)
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
    expect(maskDetail(data)).toEqual(data)
  })
})

test('only the index of a uid tells of a cookie: in other events a value is judged by its name', () => {
  for (const uid of ['cookie/live/1', 'Cookies/live/1']) {
    expect(maskDetail({ value: 'abcdef1234' }, uid)).toEqual({ value: fullMask })
    expect(maskHighlights({ value: ['abcdef1234'] }, false, uid)).toEqual({ value: [fullMask] })
  }
  for (const uid of ['paste/cookies/1', 'recookie/live/1', 'cookies_list/live/1']) {
    expect(maskDetail({ value: 'abcdef1234' }, uid)).toEqual({ value: 'abcdef1234' })
  }
})

describe('what comes out is bounded', () => {
  test('a text, a list and a whole detail are cut', () => {
    const long = 'word '.repeat(10_000)
    const masked = maskDetail({ one: long, many: Array.from({ length: 100 }, () => long) })
    expect(JSON.stringify(masked).length).toBeLessThan(250_000)
    expect(String(masked['one']).endsWith('…')).toBe(true)
  })

  test('of values are kept two hundred thousand characters: eight for a number, one more for each value and key', () => {
    const keptOf = (count: number, value: unknown): unknown[] =>
      maskSecrets(Array.from({ length: count }, () => value)) as unknown[]
    expect(keptOf(30_000, 7)).toHaveLength(22_223)
    expect(keptOf(250_000, null)).toHaveLength(199_999)
    const named = Array.from({ length: 30_000 }, (_, n) => [`k${100_000_000 + n}`.slice(1), null])
    expect(Object.keys(maskSecrets(Object.fromEntries(named)) as object)).toHaveLength(19_999)
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
    const shownOf = (json: string): string => JSON.stringify(maskSecrets(JSON.parse(json)))
    expect(shownOf(nested(64))).toBe(nested(64))
    expect(shownOf(nested(66))).toBe(`${'['.repeat(64)}"…"${']'.repeat(64)}`)
    expect(shownOf(ofObjects(64, '1'))).toBe(ofObjects(64, '1'))
    expect(shownOf(ofObjects(65, '1'))).toBe(ofObjects(64, '"…"'))
  })

  test('a depth bomb ends at the deepest level', () => {
    const bomb: unknown = JSON.parse('[{"a":'.repeat(5000) + '1' + '}]'.repeat(5000))
    expect(JSON.stringify(maskDetail({ bomb })).length).toBeLessThan(1000)
  })
})

test('a login that a stealer read badly shows no password in the full event either, which titles quote', () => {
  const data = { credentials: [{ username: 'joe:hunter22!', url: 'https://sso.acme.example' }] }
  expect(maskDetail(data, 'stealer_log/lumma/1')).toEqual({
    credentials: [{ username: 'joe:h••••!', url: 'https://sso.acme.example' }],
  })
  const leak = { description: 'Revenue:$45M' }
  expect(maskDetail(leak, 'ransomleak/lockbit/1')).toEqual(leak)
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

test('a line `login:secret` below an address in brackets is masked where a login should stand', () => {
  expect(maskIdentity('(http://a.example)\njoe:hunter22')).toBe('(http://a.example)\njoe:h••••2')
})

test('secrets are masked whichever way of finding them comes first', () => {
  const token = `ghp_${'aB3dE6gH9'.repeat(4)}`
  const text = `password: letmein1\nthen ${token}\npwd: hunter22`
  expect(maskText(text)).toBe('password: l••••1\nthen g••••9\npwd: h••••2')
})

test('of a cookie nothing is shown, though its value looks like another secret as well', () => {
  const cookie = 'acme.example\tTRUE\t/\tTRUE\t0\tsid\t'
  expect(maskText(`${cookie}password: hunter22`)).toMatch(/^acme\.example\t.*\t••••$/)
})
