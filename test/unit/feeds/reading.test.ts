/** Reading needs a uid alone: whatever else the service changes keeps no event back, and is said. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { severityRank, type ThreatEvent } from '../../../src/event.ts'
import type { PolledFeed } from '../../../src/feeds/types/polled-feed.ts'
import { sortPage } from '../../../src/feeds/parse.ts'
import { unreadableFields } from '../../../src/lib/metrics/unreadable-fields.ts'
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
    [
      'identifiers',
      'identifiers',
      [{ name: 'acme' }, 'x'],
      { identifiers: [{ id: 0, name: 'acme' }] },
    ],
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

  test('and of a secret that comes in parts no part is shown', () => {
    const hash = { value: ['Pangolin-77', { salt: 'Quagga-88' }] }
    const event = asCredential({ ...searchCredential, hash, domain: 'Quagga-88.example' })
    expect(event.unread).toEqual(['hash'])
    expect(JSON.stringify(event)).not.toMatch(/Pangolin-77|Quagga-88/)
  })
})
