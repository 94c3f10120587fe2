import { expect, test } from 'vitest'
import { isKnownSeverity, severityRank } from '../../../src/event.ts'

test('an unknown severity ranks as critical, so that it never hides an event', () => {
  expect(isKnownSeverity('apocalyptic')).toBe(false)
  expect(severityRank('apocalyptic')).toBe(severityRank('critical'))
})
