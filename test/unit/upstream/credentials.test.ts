import { expect, test } from 'vitest'
import { secretFromText, createSecret } from '../../../src/lib/config/secret.ts'
import { createAccountKey, type AccountKey } from '../../../src/upstream/access/tokens.ts'

test('a sealed token opens under its key only', () => {
  const mine = credentialsFor('fw_one')
  const sealed = mine.seal('a-token')
  expect(mine.open(sealed)).toBe('a-token')
  expect(credentialsFor('fw_two').open(sealed)).toBeNull()
  expect(credentialsFor('fw_one', 7).open(sealed)).toBeNull()
})

test('a sealed token that was changed does not open', () => {
  const mine = credentialsFor('fw_one')
  const sealed = mine.seal('a-token')
  const changed = sealed[10] === 'A' ? 'B' : 'A'
  expect(mine.open(sealed.slice(0, 10) + changed + sealed.slice(11))).toBeNull()
  expect(mine.open('')).toBeNull()
  expect(mine.open('garbage')).toBeNull()
})

test('neither the sealed token nor the fingerprint tells token or key', () => {
  const mine = credentialsFor('fw_secret_key')
  const sealed = mine.seal('tell-tale')
  const seen = Buffer.from(sealed, 'base64url').toString('latin1') + sealed + mine.fingerprint
  expect(seen).not.toContain('tell-tale')
  expect(seen).not.toContain('secret_key')
  expect(mine.seal('tell-tale')).not.toBe(sealed)
})

test('another key, tenant or base URL has another fingerprint', () => {
  const prints = [credentialsFor('fw_one'), credentialsFor('fw_two'), credentialsFor('fw_one', 7)]
  expect(new Set(prints.map(({ fingerprint }) => fingerprint)).size).toBe(3)
  expect(credentialsFor('fw_one').fingerprint).toBe(prints[0]!.fingerprint)
})

test('a key that changes in its file is used at once', () => {
  let key = 'fw_one'
  const read = createAccountKey({
    apiKey: createSecret(() => key),
    tenantId: undefined,
    baseUrl: 'https://api.example.com',
  })
  const before = read().fingerprint
  key = 'fw_two'
  expect(read().fingerprint).not.toBe(before)
})

test.each(['', 'with space', 'line\nbreak'])('the key %j is refused without being told', (key) => {
  expect(() => credentialsFor(key)).toThrow(/the API key is empty or holds characters/)
})

function credentialsFor(key: string, tenantId?: number): AccountKey {
  const baseUrl = 'https://api.example.com'
  return createAccountKey({ apiKey: secretFromText(key), tenantId, baseUrl })()
}
