import { expect, test } from 'vitest'
import { createCredentialGenerator } from '../../../src/sandbox/credentials/generator.ts'
import { toFeedItem } from '../../../src/sandbox/credentials/requests.ts'
import type { SandboxCredential } from '../../../src/sandbox/credentials/history.ts'
import { wireCredential } from '../../../src/upstream/resources/credentials.ts'

const nowMs = Date.UTC(2026, 10, 1, 12, 0, 0, 123)
const identifiers = [
  { id: 77, name: 'example.com' },
  { id: 78, name: 'Example Bank' },
]

function history(seed: number, count: number): SandboxCredential[] {
  const generator = createCredentialGenerator(seed)
  return Array.from({ length: count }, (_, n) => generator.make(identifiers[n % 2]!, nowMs))
}

const many = history(1, 1000)

test('the same seed tells the same credentials, another seed others', () => {
  expect(history(1, 50)).toEqual(many.slice(0, 50))
  expect(history(2, 50)).not.toEqual(many.slice(0, 50))
})

test('ids grow, beyond 32 bits, and every record is one that the wire format describes', () => {
  const ids = many.map(({ id }) => id)
  expect(ids).toEqual(ids.toSorted((a, b) => a - b))
  expect(new Set(ids).size).toBe(many.length)
  expect(ids[0]).toBeGreaterThan(2 ** 32)
  for (const credential of many) wireCredential.parse(toFeedItem(credential))
})

test('now and then a pair comes again from another source, and for the same identifier', () => {
  const seen = new Map<string, Set<string>>()
  let again = 0
  for (const { identityName, hash, domain, identifierIds, source } of many) {
    const pair = JSON.stringify([identityName, hash, domain, identifierIds])
    const sources = seen.get(pair) ?? new Set()
    if (seen.has(pair)) again += 1
    seen.set(pair, sources.add(source!.id))
  }
  expect(again).toBeGreaterThan(50)
  expect(again).toBeLessThan(200)
  const sourceCounts = [...seen.values()].map(({ size }) => size)
  expect(sourceCounts.filter((count) => count > 1).length).toBeGreaterThan(30)
})

test('secrets come in clear and hashed, a few not at all', () => {
  const types = new Set(many.map(({ hashType }) => hashType))
  expect(types).toEqual(new Set([null, 'md5', 'sha256', 'bcrypt']))
  expect(many.filter(({ hash }) => hash === null).length).toBeGreaterThan(10)
  expect(many.filter(({ hash }) => hash?.startsWith('Pa55-')).length).toBeGreaterThan(500)
  expect(many.some(({ domain }) => domain === null)).toBe(true)
})

test('what is given holds', () => {
  const given = { id: 5, hash: 'x', importedAtMs: 7, identifierIds: [1, 2] }
  const made = createCredentialGenerator(1).make(identifiers[0]!, nowMs, given)
  expect(made).toMatchObject({ ...given, arrivedAtMs: nowMs })
})
