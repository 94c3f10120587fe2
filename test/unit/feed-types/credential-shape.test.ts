import fc from 'fast-check'
import { expect, test } from 'vitest'
import { maskMalformedCredential, parseCredential } from '../../../src/feed-types/credentials.ts'
import { canonicalJson } from '../../../src/feed-types/field-reader.ts'
import { withheldText } from '../../../src/masking/masking.ts'

test('a malformed credential keeps its id, times and source, of the rest type and length', () => {
  const raw = {
    id: 12,
    source_id: 'combolists',
    imported_at: '2026-01-05T16:30:37Z',
    identity_name: ['joe', 'Pangolin'],
    hash: { value: 'Pangolin-1' },
    hash_type: null,
    domain: true,
    known_password_id: 77,
    remediated_at: 'Pangolin-2',
    source: { id: 's', name: 'Combo of 2026', breached_at: 7, pii_tags: ['x'], 'Pangolin-3': 1 },
    'Pangolin-4': 'Pangolin-5',
    more: 1,
  }
  expect(maskMalformedCredential(raw)).toEqual({
    id: 12,
    source_id: 'combolists',
    imported_at: '2026-01-05T16:30:37Z',
    identity_name: 'list of 2',
    hash: 'object of 1',
    hash_type: null,
    domain: 'boolean',
    known_password_id: 'number',
    remediated_at: 'text of 10',
    source: {
      id: 's',
      name: 'Combo of 2026',
      breached_at: 'number',
      pii_tags: 'list of 1',
      'other keys': 1,
    },
    'other keys': 2,
  })
})

test.each([
  ['joe:Pangolin', 'text of 12'],
  [['Pangolin'], 'list of 1'],
  [null, null],
  [12, 'number'],
])('%j, no record at all, is told as %j', (raw, shape) => {
  expect(maskMalformedCredential(raw)).toBe(shape)
})

test('times stay, where they are times and stand where times do', () => {
  const time = '2026-01-05T16:30:37Z'
  const all = ['imported_at', 'remediated_at', 'ignored_at', 'breached_at', 'leaked_at']
  const times = Object.fromEntries([...all, 'domain', 'pii_tags'].map((name) => [name, time]))
  expect(maskMalformedCredential({ ...times, source: times })).toEqual({
    imported_at: time,
    remediated_at: time,
    ignored_at: time,
    domain: 'text of 20',
    'other keys': 3,
    source: { breached_at: time, leaked_at: time, pii_tags: 'text of 20', 'other keys': 4 },
  })
})

test('a source in words and an id in words are told as any text', () => {
  expect(maskMalformedCredential({ id: 'Pangolin', source: 'Pangolin' })).toEqual({
    id: 'text of 8',
    source: 'text of 8',
  })
})

test('the name of a source may hold a line of a dump, and is cut', () => {
  const source = { id: 'joe:Pangolin-1', name: 'ann:Pangolin-2' }
  expect(maskMalformedCredential({ source_id: 'bob:Pangolin-3', source })).toEqual({
    source_id: withheldText,
    source: { id: withheldText, name: withheldText },
  })
  expect(
    maskMalformedCredential({ source_id: 'x y '.repeat(100), source: { id: 7, name: true } }),
  ).toEqual({
    source_id: `${'x y '.repeat(50)}…`,
    source: { id: 7, name: 'boolean' },
  })
})

test('a password that is in the clear anywhere in a malformed record is nowhere in what is kept', () => {
  const secret = fc.stringMatching(/^[a-zA-Z0-9!$%&*+?#~]{12,40}$/)
  const places = fc.constantFrom(
    (hash: string) => ({ identity_name: `joe@acme.com|${hash}`, hash }),
    (hash: string) => ({ identity_name: `joe ${hash}`, domain: hash, auth_domains: [hash] }),
    (hash: string) => ({ hash: [hash], source: { id: hash, name: `list with ${hash}` } }),
    (hash: string) => ({ hash: { value: hash }, source_id: hash, imported_at: hash }),
    (hash: string) => ({ [hash]: 1, deep: { [hash]: { password: hash } } }),
    (hash: string) => ({ id: hash, hash: null }),
  )
  fc.assert(
    fc.property(secret, places, (hash, place) => {
      const raw = { id: null, ...place(hash) }
      expect(parseCredential(raw, 'high')).toMatchObject({ ok: false })
      expect(canonicalJson(maskMalformedCredential(raw))).not.toContain(hash)
    }),
  )
})
