import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseLegacyItem } from '../../../src/feeds/parse-legacy-item.ts'

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

test('without a uid it is malformed, whatever else it is', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (raw) => {
      const parsed = parseLegacyItem(raw)
      expect(parsed.ok ? parsed.event.uid : parsed.problem).not.toBe('')
    }),
  )
  expect(parseLegacyItem({ header })).toMatchObject({ ok: false })
})
