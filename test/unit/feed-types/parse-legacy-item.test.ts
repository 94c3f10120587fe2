import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseLegacyItem } from '../../../src/feed-types/legacy-search.ts'
import type { ThreatEvent } from '../../../src/event.ts'

const header = {
  title: 'Dump of acme',
  content_preview: 'ann@example.com:hunter2',
  risk: { score: 4 },
  timestamp: '2026-11-01T12:00:00.123456+00:00',
  tags: ['vip', 7],
  notes: 'look at it',
  remediated_at: '2026-11-02T00:00:00Z',
}

test('an item of the older shape becomes an event, its secrets masked', () => {
  const parsed = parseLegacyItem({
    metadata: { uid: 'paste/x/1', type: 'paste' },
    header,
    data: {},
  })
  if (!parsed.ok) throw new Error(parsed.problem)
  expect(parsed.event).toMatchObject({
    uid: 'paste/x/1',
    type: 'paste',
    severity: 'high',
    createdAtMs: Date.UTC(2026, 10, 1, 12, 0, 0, 123),
    remediatedAtMs: Date.UTC(2026, 10, 2),
    tags: ['vip', '7'],
    notes: 'look at it',
  })
  expect(parsed.event.highlights['title']).toEqual(['Dump of acme'])
  expect(JSON.stringify(parsed.event)).not.toContain('hunter2')
})

test('a severity that people changed counts', () => {
  const raw = { uid: 'paste/x/1', header: { ...header, user_risk_score: 1 } }
  expect(parseLegacyItem(raw)).toMatchObject({
    event: { severity: 'info', originalSeverity: 'high' },
  })
})

test.each([
  ['identifiers', { identifiers: [12, { id: 7, name: 'acme' }, { id: 'x' }] }],
  ['tenant metadata', { tenant_metadata: { tags: 'vip' } }],
  ['highlights', { highlights: { title: 7 } }],
  ['a score', { header: { ...header, risk: { score: 'high' } } }],
])('odd %s keep no event back', (_what, odd) => {
  const parsed = parseLegacyItem({ metadata: { uid: 'paste/x/1' }, header, ...odd })
  expect(parsed.ok).toBe(true)
})

test('today’s shape is read as it is', () => {
  const metadata = {
    uid: 'paste/x/1',
    severity: 'critical',
    estimated_created_at: '2026-11-01T12:00Z',
  }
  const tenant_metadata = { severity: { original: 'critical', override: 'low' } }
  expect(parseLegacyItem({ metadata, tenant_metadata })).toMatchObject({
    event: { severity: 'low', originalSeverity: 'critical' },
  })
})

type Json = Record<string, unknown>

/** With each of the values at its path. */
function itemWith(values: readonly (readonly [path: string, value: unknown])[]): Json {
  const item: Json = {}
  for (const [path, value] of values) {
    const keys = path.split('.')
    const last = keys.pop()!
    let at = item
    for (const key of keys) at = (at[key] ??= {}) as Json
    at[last] = value
  }
  return item
}

const day = (n: number): string => new Date(Date.UTC(2026, 10, n)).toISOString()
const atDay = (n: number): number => Date.UTC(2026, 10, n)
const severity = (n: number): string => ['low', 'medium', 'high', 'critical'][n - 1]!
const link = (n: number): string => `https://app.flare.io/${n}`

/** Where a field may stand, what stands there, and what an event then shows; the first place counts. */
const places: [
  field: keyof ThreatEvent,
  paths: string[],
  value: (n: number) => unknown,
  shown: (n: number) => unknown,
][] = [
  ['uid', ['header.uid', 'metadata.uid', 'uid', 'data.uid'], (n) => `u/v/${n}`, (n) => `u/v/${n}`],
  ['type', ['metadata.type', 'type', 'header.type'], (n) => `type${n}`, (n) => `type${n}`],
  ['severity', ['metadata.severity', 'header.risk.score'], severity, severity],
  ['severity', ['metadata.severity', 'header.risk'], severity, severity],
  ['severity', ['tenant_metadata.severity', 'header.user_risk_score'], severity, severity],
  ['createdAtMs', ['metadata.estimated_created_at', 'header.timestamp'], day, atDay],
  ['matchedAtMs', ['metadata.matched_at'], day, atDay],
  ['ignoredAtMs', ['tenant_metadata.ignored_at', 'header.ignored_at'], day, atDay],
  ['remediatedAtMs', ['tenant_metadata.remediated_at', 'header.remediated_at'], day, atDay],
  ['url', ['metadata.flare_url', 'data.metadata.flare_url'], link, link],
  ['tags', ['tenant_metadata.tags', 'header.tags'], (n) => [`tag${n}`], (n) => [`tag${n}`]],
  [
    'notes',
    ['tenant_metadata.notes', 'header.user_notes', 'header.notes'],
    (n) => `note ${n}`,
    (n) => `note ${n}`,
  ],
  [
    'identifiers',
    ['identifiers'],
    (n) => [{ id: n, name: 'acme' }],
    (n) => [{ id: n, name: 'acme' }],
  ],
  [
    'highlights',
    ['highlights', 'header.highlights', 'data.highlights'],
    (n) => ({ body: [`acme ${n}`] }),
    (n) => ({ body: [`acme ${n}`] }),
  ],
]

test.each(places)(
  'its %s is read from the first of %j that has one',
  (field, paths, value, shown) => {
    for (const first of paths.keys()) {
      const given = paths.slice(first).map((path, n) => [path, value(first + n + 1)] as const)
      const uid = field === 'uid' ? [] : ([['uid', 'u/v/0']] as const)
      const parsed = parseLegacyItem(itemWith([...uid, ...given]))
      if (!parsed.ok) throw new Error(parsed.problem)
      expect(parsed.event[field]).toEqual(shown(first + 1))
      expect(parsed.event.unread).toBeUndefined()
    }
  },
)

test('where nothing was matched it shows what a reader sees first, each of it, and no empty text', () => {
  const shown = {
    title: 'a title',
    content_preview: 'a preview',
    identity_name: 'ann',
    actor: 'actor of it',
    category_name: 'a category',
    victim_name: 'acme',
  }
  const nothing = { uid: 'u/v/0', highlights: {}, data: { highlights: {} } }
  const highlightsOf = (header: Json): unknown =>
    parseLegacyItem({ ...nothing, header: { highlights: {}, ...header } })
  const lists = Object.fromEntries(Object.entries(shown).map(([name, text]) => [name, [text]]))
  expect(highlightsOf(shown)).toMatchObject({ event: { highlights: lists } })
  const bare = { title: '', actor: 7, victim_name: 'acme' }
  const parsed = highlightsOf(bare) as { event: ThreatEvent }
  expect(parsed.event.highlights).toEqual({ victim_name: ['acme'] })
})

test('without a uid it is malformed, whatever else it is', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (raw) => {
      const parsed = parseLegacyItem(raw)
      expect(parsed.ok ? parsed.event.uid : parsed.problem).not.toBe('')
    }),
  )
  expect(parseLegacyItem({ header })).toMatchObject({ ok: false })
})
