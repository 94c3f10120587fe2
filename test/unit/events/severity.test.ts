import { expect, test } from 'vitest'
import { isKnownSeverity, severityRank } from '../../../src/event.ts'

test('the five severities rank from info to critical', () => {
  expect(['info', 'low', 'medium', 'high', 'critical'].map(severityRank)).toEqual([1, 2, 3, 4, 5])
})

test('an unknown severity ranks as critical, so that it never hides an event', () => {
  expect(isKnownSeverity('apocalyptic')).toBe(false)
  expect(severityRank('apocalyptic')).toBe(severityRank('critical'))
})
