import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseCredential } from '../../../../src/feeds/types/credentials.ts'
import { withheldText } from '../../../../src/masking/masking.ts'

const record = {
  id: 406_285_232_303,
  source_id: 'combolists',
  imported_at: '2026-01-05T16:30:37.589388+00:00',
  identity_name: 'joe@acme.com',
  hash: 'hunter2-of-joe',
  hash_type: null,
  domain: 'acme.com',
  auth_domains: ['vpn.acme.com', 'mail.acme.com'],
  known_password_id: 12,
  source: {
    id: 'combolists',
    name: 'Combo of 2026',
    description_en: 'Many lists.',
    description_fr: 'Bien des listes.',
    breached_at: '2025-12-01T00:00:00',
    leaked_at: null,
    is_alert_enabled: true,
    pii_tags: ['email', 'password'],
  },
  remediated_at: null,
  ignored_at: '2026-01-06T00:00:00Z',
}

const feed = { severity: 'high' } as const

function parsed(changes: Record<string, unknown> = {}) {
  const credential = parseCredential({ ...record, ...changes }, feed)
  if (!credential.ok) throw new Error(credential.problem)
  return credential
}

test('a record becomes an event of the severity of its feed, the secret apart', () => {
  expect(parsed()).toEqual({
    ok: true,
    secret: 'hunter2-of-joe',
    pair: { parts: ['acme.com', 'joe@acme.com', 'hunter2-of-joe'], source: 'combolists' },
    event: {
      uid: 'credential/406285232303',
      kind: 'credential',
      type: 'credential',
      source: 'combolists',
      severity: 'high',
      originalSeverity: null,
      createdAtMs: Date.UTC(2026, 0, 5, 16, 30, 37, 589),
      matchedAtMs: null,
      ignoredAtMs: Date.UTC(2026, 0, 6),
      remediatedAtMs: null,
      url: null,
      tags: [],
      notes: null,
      identifiers: [],
      highlights: {
        identity_name: ['joe@acme.com'],
        domain: ['acme.com'],
        'source.name': ['Combo of 2026'],
        imported_at: ['2026-01-05T16:30:37.589388+00:00'],
        password: ['h••••e'],
        'source.breached_at': ['2025-12-01T00:00:00'],
        auth_domains: ['vpn.acme.com', 'mail.acme.com'],
        'source.pii_tags': ['email', 'password'],
      },
    },
  })
})

test('a record with nothing but an id becomes an event', () => {
  const { event, ...rest } = parsed(
    Object.fromEntries(Object.keys(record).map((key) => [key, key === 'id' ? 7 : null])),
  )
  expect(rest).toEqual({ ok: true, secret: null, pair: null })
  expect(event).toMatchObject({ uid: 'credential/7', source: '', createdAtMs: null })
  expect(event.highlights).toEqual({})
  expect(parseCredential({ id: 7 }, feed)).toEqual({ ...rest, event })
})

test('a secret in parts is masked elsewhere as far as a hundred parts and ten levels', () => {
  const parts = Array.from({ length: 101 }, (_, n) => `part-${1_000 + n}x`)
  const shownOf = (hash: unknown, text: string) =>
    parsed({ hash, source: { name: text } }).event.highlights['source.name']
  expect(shownOf(parts, `in ${parts[99]} within`)).toEqual(['in p••••x within'])
  expect(shownOf(parts, `in ${parts[100]} within`)).toEqual([`in ${parts[100]} within`])
  expect(shownOf([parts.slice(0, 60), parts.slice(60)], `in ${parts[99]} within`)).toEqual([
    'in p••••x within',
  ])
  const nested = (levels: number): unknown =>
    levels === 0 ? 'part-deep' : { [`x${levels}`]: nested(levels - 1) }
  expect(shownOf(nested(10), 'in part-deep within')).toEqual(['in p••••p within'])
  expect(shownOf(nested(11), 'in part-deep within')).toEqual(['in part-deep within'])
  expect(parsed({ hash: parts }).event.unread).toEqual(['hash'])
  expect(parsed({ hash: parts }).secret).toBeNull()
})

test('what repeats the secret is masked in a domain, and what holds a pair is withheld', () => {
  const hash = '2026-01-05T16:30:37Z'
  const { highlights } = parsed({ hash, domain: hash, source: { name: 'ann:hunter22' } }).event
  expect(highlights).toMatchObject({ domain: ['2••••Z'], 'source.name': [withheldText] })
  expect(parsed({ hash_type: ' ' }).event.highlights).not.toHaveProperty('hash_type')
})

describe('without an id it is no credential', () => {
  test.each([
    ['no object', 'joe:hunter2', 'item: '],
    ['without an id', {}, 'id: '],
    ['an id in words', { ...record, id: 'hunter2' }, 'id: '],
    ['an id of 2^53', { ...record, id: 2 ** 53 }, 'id: '],
    ['an id below zero', { ...record, id: -1 }, 'id: '],
    ['an id with a fraction', { ...record, id: 1.5 }, 'id: '],
  ])('%s', (_what, raw, problem) => {
    const credential = parseCredential(raw, feed)
    expect(credential).toEqual({
      ok: false,
      uid: null,
      problem: expect.stringContaining(problem),
    })
    expect(JSON.stringify(credential)).not.toContain('hunter2')
  })
})

describe('a secret', () => {
  const secret = fc.stringMatching(/^[a-zA-Z0-9!$%&*+?#~]{12,40}$/)

  test('is nowhere in the event, also where the identity holds it', () => {
    fc.assert(
      fc.property(secret, fc.constantFrom('joe@acme.com:', 'joe:'), (hash, before) => {
        const { event } = parsed({ hash, identity_name: before + hash })
        expect(JSON.stringify(event)).not.toContain(hash)
      }),
    )
  })

  test('is nowhere in the event, whichever field repeats it', () => {
    fc.assert(
      fc.property(secret, fc.constantFrom('', ' ', '\t'), (hash, around) => {
        const repeated = `in ${hash} within`
        const { event } = parsed({
          hash: around + hash + around,
          identity_name: repeated,
          hash_type: repeated,
          domain: repeated,
          imported_at: repeated,
          auth_domains: [repeated, hash],
          source: {
            id: repeated,
            name: repeated,
            breached_at: hash,
            leaked_at: repeated,
            pii_tags: [repeated],
          },
        })
        expect(JSON.stringify(event)).not.toContain(hash)
      }),
    )
  })

  test.each(['hun<mark>ter2</mark>-of-joe', 'hun<m<mark>ark>ter2-of-joe'])(
    'is masked as well where mark tags split it: %s',
    (name) => {
      const { event } = parsed({ source: { name } })
      expect(event.highlights['source.name']).toEqual(['h••••e'])
    },
  )

  test.each([
    ['joe:hunter22', 'joe:h••••2'],
    ['joe|hunter22', 'joe|h••••2'],
    ['joe;hunter22', 'joe;h••••2'],
    ['joe,hunter22', 'joe,h••••2'],
    ['joe\thunter22', 'joe\th••••2'],
    ['joe hunter22', 'joe h••••2'],
    ['joe@acme.com | hunter22', 'joe@acme.com | h••••2'],
    ['joe:my own|secret words', 'joe:m••••s'],
    ['joe.doe:12345', 'joe.doe:••••'],
    ['https://acme.com/login|joe|hunter22', 'https://acme.com/login|joe|h••••2'],
    ['joe.doe@acme.com', 'joe.doe@acme.com'],
    ['https://acme.com/login', 'https://acme.com/login'],
    ['ACME\\joe', 'ACME\\joe'],
  ])('that is not stated, but stands behind the login: %j is kept as %j', (name, kept) => {
    const { highlights } = parsed({ hash: null, identity_name: name }).event
    expect(highlights['identity_name']).toEqual([kept])
  })

  test('that is longer than what is read of a text leaves no piece of it', () => {
    const long = Array.from({ length: 900 }, (_, i) => `word${i}`).join('-')
    const name = `${'a'.repeat(100)}${long} and more`
    const { event } = parsed({ hash: long, source: { name } })
    expect(JSON.stringify(event)).not.toContain('word1')
  })

  test('is in what is stored cut, however long', () => {
    const long = `A${'b'.repeat(20_000)}`
    const { pair, event } = parsed({ hash: long, identity_name: long })
    expect(pair?.parts.at(-1)).toBe(long)
    expect(event.highlights['password']).toEqual(['A••••…'])
    expect(JSON.stringify(event).length).toBeLessThan(2_000)
  })
})

test('any record parses or is refused, and nothing of it is unbounded', () => {
  const value = fc.oneof(fc.jsonValue(), fc.string(), fc.array(fc.string({ maxLength: 3000 })))
  const keys = fc.constantFrom(...Object.keys(record).filter((key) => key !== 'id'))
  fc.assert(
    fc.property(fc.dictionary(keys, value), (changes) => {
      const credential = parseCredential({ ...record, ...changes }, feed)
      if (!credential.ok) return
      expect(JSON.stringify(credential.event).length).toBeLessThan(100_000)
      for (const texts of Object.values(credential.event.highlights)) {
        for (const text of texts) expect(text.length).toBeLessThanOrEqual(501)
      }
    }),
  )
})

test('a source that holds a pair is withheld as any text', () => {
  const read = parseCredential({ id: 1, source_id: 'joe@acme.com:hunter2' }, feed)
  expect(read).toMatchObject({ event: { source: withheldText } })
})

test.each([
  ['login and site in any case', { identity_name: ' Joe@ACME.com', domain: 'Acme.com' }, true],
  ['another secret', { hash: 'hunter3' }, false],
  ['another login', { identity_name: 'ann@acme.com' }, false],
  ['another site', { domain: 'acme.org' }, false],
  ['no site', { domain: null }, false],
  ['parts moved into each other', { domain: null, identity_name: 'acme.comjoe@acme.com' }, false],
])('with %s, a credential is the same pair: %j %s', (_what, changes, isSame) => {
  const pairOf = (raw: unknown): unknown => {
    const item = parseCredential(raw, feed)
    return item.ok && item.pair?.parts
  }
  const [one, other] = [pairOf(record), pairOf({ ...record, ...changes })]
  expect(one).toEqual(['acme.com', 'joe@acme.com', 'hunter2-of-joe'])
  expect(JSON.stringify(other) === JSON.stringify(one)).toBe(isSame)
})

test.each([{ hash: null }, { identity_name: null }])(
  'with %j a credential is no pair',
  (changes) => {
    expect(parseCredential({ ...record, ...changes }, feed)).toMatchObject({
      pair: null,
    })
  },
)
