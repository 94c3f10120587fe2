/** Reading needs a uid alone: whatever else the service changes keeps no event back, and is said. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { severityRank, type ThreatEvent } from '../../../src/event.ts'
import type { PolledFeed } from '../../../src/feed-types/feed-type.ts'
import { sortPage } from '../../../src/feeds/page.ts'
import { unreadableFields } from '../../../src/lib/unreadable-fields.ts'
import { feedCredential, searchCredential, searchItem } from '../../fixtures/documented-items.ts'
import { aCredentialFeed, aCredentialSearch, aFeed } from '../../support/feeds.ts'
import { runs } from '../../support/runs.ts'

type Json = Record<string, unknown>
interface Reading {
  item: Json
  /** Paths that hold the uid: nothing else may be needed. */
  uids: string[]
  read: (item: unknown) => ThreatEvent
}

const asEvent = (item: unknown): ThreatEvent => readBy(aFeed(), item)

function readBy(feed: PolledFeed, item: unknown): ThreatEvent {
  const sorting = {
    feed,
    startBoundMs: 0,
    readsBaseline: true,
    plan: () => ({ decisions: [], items: [] }),
  }
  const never = { pairDigest: () => undefined, sealSecret: () => undefined }
  const { events, malformed } = sortPage([item], { ...sorting, ...never })
  expect(malformed).toEqual([])
  return events[0]!.event
}

const readings: Record<string, Reading> = {
  'a search item': { item: searchItem, uids: ['metadata', 'metadata.uid'], read: asEvent },
  'a credential of a search': {
    item: searchCredential,
    uids: ['id'],
    read: (item) => readBy(aCredentialSearch(), item),
  },
  'a credential of a feed': {
    item: feedCredential,
    uids: ['id'],
    read: (item) => readBy(aCredentialFeed(), item),
  },
}

/** Every path of the item, `tenant_metadata.severity.override` among them, but those with the uid. */
function pathsOf(value: unknown, before: string[] = []): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    const path = [...before, key]
    return [path.join('.'), ...pathsOf(inner, path)]
  })
}

function changed(item: unknown, path: string, value: unknown): unknown {
  const copy = structuredClone(item) as Json
  const keys = path.split('.')
  const last = keys.pop() ?? ''
  const holder = keys.reduce((inner, key) => inner[key] as Json, copy)
  holder[last] = value
  return copy
}

describe('any JSON value in any field but the uid keeps no event back', () => {
  test.each(Object.entries(readings))('of %s', (_name, { item, uids, read }) => {
    const { uid } = read(item)
    const paths = pathsOf(item).filter((path) => !uids.includes(path))
    const change = fc.tuple(fc.constantFrom(...paths), fc.jsonValue())
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), (changes) => {
        let odd: unknown = item
        for (const [path, value] of changes.toSorted(([a], [b]) => b.length - a.length)) {
          odd = changed(odd, path, value)
        }
        const event = read(odd)
        expect(event.uid).toBe(uid)
        expect(event.severity).not.toBe('')
        expect(severityRank(event.severity)).toBeGreaterThan(0)
        for (const field of event.unread ?? []) expect(unreadableFields).toContain(field)
        const { createdAtMs, matchedAtMs, ignoredAtMs, remediatedAtMs } = event
        for (const atMs of [createdAtMs, matchedAtMs, ignoredAtMs, remediatedAtMs]) {
          expect(new Date(atMs ?? Date.now()).getUTCFullYear()).toBeGreaterThan(1989)
        }
        expect(JSON.stringify(event)).not.toContain('Pangolin-77')
      }),
      { numRuns: runs({ short: 60, long: 300 }) },
    )
  })
})

describe('a field of another form is read as far as it goes', () => {
  const tenant = (severity: unknown) => ({ severity })
  test.each([
    ['an identifier whose id is text', 'identifiers', [{ id: '77', name: 'acme' }], {}],
    ['one identifier without a list', 'identifiers', { id: 77, name: 'acme' }, {}],
  ])('%s', (_what, path, value, more) => {
    const event = asEvent(changed(searchItem, path, value))
    expect(event).toMatchObject({ identifiers: [{ id: 77, name: 'acme' }], ...more })
    expect(event).not.toHaveProperty('unread')
  })

  test.each<[string, string, unknown, Partial<ThreatEvent>]>([
    ['a name of null', 'identifiers.0.name', null, { identifiers: [{ id: 12, name: '12' }] }],
    ['tags as objects', 'tenant_metadata.tags', [{ name: 'vip' }, 'x'], { tags: ['vip', 'x'] }],
    ['one tag', 'tenant_metadata.tags', 'vip', { tags: ['vip'] }],
    ['notes as a list', 'tenant_metadata.notes', ['a', 'b'], { notes: 'a\nb' }],
    ['an override as a word', 'tenant_metadata', tenant('low'), { severity: 'low' }],
    ['an override as a number', 'tenant_metadata', tenant(2), { severity: 'low' }],
    ['a numeric override', 'tenant_metadata.severity.override', 4, { severity: 'high' }],
    ['a severity in digits', 'tenant_metadata.severity.override', '3', { severity: 'medium' }],
    ['an extract without a list', 'highlights.title', 'acme', {}],
    [
      'seconds since 1970',
      'metadata.matched_at',
      1_761_955_200,
      { matchedAtMs: 1_761_955_200_000 },
    ],
    ['milliseconds', 'metadata.matched_at', 1_761_955_200_000, { matchedAtMs: 1_761_955_200_000 }],
    ['seconds as text', 'metadata.matched_at', '1761955200.5', { matchedAtMs: 1_761_955_200_500 }],
    ['no zone', 'metadata.matched_at', '2025-11-01T00:00:00', { matchedAtMs: 1_761_955_200_000 }],
  ])('%s', (_what, path, value, expected) => {
    const event = asEvent(changed(searchItem, path, value))
    expect(event).toMatchObject(expected)
    expect(event).not.toHaveProperty('unread')
  })

  test('and a credential’s id in digits or as a UUID names it', () => {
    const read = (id: unknown): string =>
      readBy(aCredentialSearch(), { ...searchCredential, id }).uid
    expect(read('406285232303')).toBe(asCredential(searchCredential).uid)
    expect(read('0F8FAD5B-D9CB-469F-A165-70867728950E')).toMatch(/^credential\/0f8fad5b-/)
  })

  test('and a numeric secret is one, masked like any other', () => {
    const event = asCredential({ ...searchCredential, hash: 12345678 })
    expect(event.highlights['password']).toEqual(['1••••8'])
    expect(event).not.toHaveProperty('unread')
  })
})

const asCredential = (item: unknown): ThreatEvent => readBy(aCredentialSearch(), item)

describe('what cannot be read is named, and the rest counts', () => {
  test.each<[string, string, unknown, Partial<ThreatEvent>]>([
    ['type', 'metadata.type', { a: 1 }, { type: 'listing' }],
    ['estimated_created_at', 'metadata.estimated_created_at', 'yesterday', { createdAtMs: null }],
    ['estimated_created_at', 'metadata.estimated_created_at', 0, { createdAtMs: null }],
    [
      'estimated_created_at',
      'metadata.estimated_created_at',
      '0001-01-01T00:00:00Z',
      { createdAtMs: null },
    ],
    ['flare_url', 'metadata.flare_url', 'javascript:alert(1)', { url: null }],
    ['tenant_metadata', 'tenant_metadata', 'odd', { severity: 'critical', tags: [] }],
    ['tags', 'tenant_metadata.tags', ['vip', { odd: true }], { tags: ['vip'] }],
    ['identifiers', 'identifiers', ['acme', {}], { identifiers: [{ id: 0, name: 'acme' }] }],
    [
      'highlights',
      'highlights',
      { title: { odd: 1 }, body: ['x'] },
      { highlights: { body: ['x'] } },
    ],
  ])('%s', (field, path, value, expected) => {
    expect(asEvent(changed(searchItem, path, value))).toMatchObject({
      ...expected,
      unread: [field],
    })
  })

  test.each([0, 6, 3.5, -1, true, [], {}, '17', [{}], { odd: 1 }])(
    'and where the severity that counts is %j, it is unknown, which ranks as critical',
    (odd) => {
      const event = asEvent(changed(searchItem, 'tenant_metadata.severity.override', odd))
      const isNothing = Array.isArray(odd) && odd.length === 0
      expect(event.severity).toBe(isNothing ? 'low' : 'unknown')
      expect(event.unread).toEqual(isNothing ? undefined : ['severity'])
      expect(severityRank('unknown')).toBe(severityRank('critical'))
    },
  )

  test('and of a secret that comes in parts no part is shown', () => {
    const hash = { value: ['Pangolin-77', { salt: 'Quagga-88' }] }
    const event = asCredential({ ...searchCredential, hash, domain: 'Quagga-88.example' })
    expect(event.unread).toEqual(['hash'])
    expect(JSON.stringify(event)).not.toMatch(/Pangolin-77|Quagga-88/)
  })
})
