import { describe, expect, test } from 'vitest'
import { type Filters, filterTest } from '../../../src/sandbox/api/filters.ts'
import { createGenerator } from '../../../src/sandbox/history/generator.ts'
import type { SandboxEvent } from '../../../src/sandbox/history/history.ts'

const group = { id: 1, name: 'one', tenantId: 1, identifiers: [{ id: 5, name: 'example.com' }] }

function anEvent(given: Partial<SandboxEvent>): SandboxEvent {
  return createGenerator(1).make(group, 1000, { severity: 'low', override: null, ...given })
}

function matches(filters: Filters, given: Partial<SandboxEvent>): boolean {
  return filterTest(filters, 'honoured')(anEvent(given))
}

describe('severity', () => {
  test.each<[string, Filters, string, boolean]>([
    ['a string means this', { severity: 'medium' }, 'medium', true],
    ['or higher', { severity: 'medium' }, 'critical', true],
    ['and not lower', { severity: 'medium' }, 'low', false],
    ['an array means exactly this', { severity: ['medium'] }, 'medium', true],
    ['and not higher', { severity: ['medium'] }, 'critical', false],
    ['an unknown word ranks highest for a string', { severity: 'critical' }, 'urgent', true],
    ['but is in no array', { severity: ['critical'] }, 'urgent', false],
  ])('%s', (_name, filters, severity, expected) => {
    expect(matches(filters, { severity })).toBe(expected)
  })

  test('the override is what counts', () => {
    expect(matches({ severity: ['critical'] }, { severity: 'low', override: 'critical' })).toBe(
      true,
    )
    expect(matches({ severity: ['low'] }, { severity: 'low', override: 'critical' })).toBe(false)
  })
})

test.each([
  ['illicit_networks', 'forum_post', true],
  ['illicit_networks', 'stealer_log', true],
  ['illicit_networks', 'paste', false],
  ['open_web', 'bucket_object', true],
  ['domains', 'lookalike', true],
  ['domain', 'lookalike', true],
  ['paste', 'paste', true],
  ['leaks', 'leak', true],
  ['leaks', 'mitigated_credential', true],
  ['leaks', 'leaked_credential', false],
  ['leaks', 'ransomleak', false],
])('the type filter %s on a %s: %s', (filter, type, expected) => {
  expect(matches({ type: [filter] }, { type })).toBe(expected)
})

test('a time filter without a zone is UTC, and its ends are in or out as they say', () => {
  const at = { createdAtMs: Date.UTC(2026, 0, 2, 3, 4, 5) }
  expect(matches({ estimated_created_at: { gte: '2026-01-02T03:04:05' } }, at)).toBe(true)
  expect(matches({ estimated_created_at: { gt: '2026-01-02T03:04:05Z' } }, at)).toBe(false)
  expect(matches({ estimated_created_at: { lt: '2026-01-02T05:04:06+02:00' } }, at)).toBe(true)
  expect(matches({ estimated_created_at: { lt: '2026-01-02' } }, at)).toBe(false)
})

test('false behaves as absent for ignored and remediated', () => {
  expect(matches({ is_remediated: false }, { remediatedAtMs: 5 })).toBe(true)
  expect(matches({ is_remediated: true }, { remediatedAtMs: null })).toBe(false)
  expect(matches({ is_ignored: true }, { ignoredAtMs: 5 })).toBe(true)
})

test('an item type that is no filter is refused', () => {
  expect(() => matches({ type: ['lookalike'] }, {})).toThrow('filters.type.0: not a type')
})
