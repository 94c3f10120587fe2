import { expect, test } from 'vitest'
import { buildBeginAlert, buildEndAlert } from '../../../../src/operator/alerts/self-alerts.ts'

const minute = 60_000
const brand = { kind: 'feed-stalled', name: 'brand' } as const
const sinceMs = Date.UTC(2026, 10, 21, 8)

test('what is said at once says no span, and what has no cause none', () => {
  const account = { kind: 'account-refused', name: 'main' } as const
  const noted = { sinceMs, seenMs: sinceMs, dueMs: sinceMs + 59_999 }
  const { severity, highlights } = buildBeginAlert(account, noted, null)
  expect(severity).toBe('critical')
  expect(highlights['headline']).toEqual(['account main: key refused by the service'])
  expect(highlights).not.toHaveProperty('cause')
})

test('of many of a kind a notice says so, with the severity that each of them has', () => {
  const many = { kind: 'many', name: 'account-refused' } as const
  const noted = { sinceMs, seenMs: sinceMs, dueMs: sinceMs }
  expect(buildBeginAlert(many, noted, 'a, b, c and 8 others by now')).toMatchObject({
    uid: `notice/tocsin/many-account-refused-${sinceMs}-begin`,
    severity: 'critical',
    highlights: {
      headline: ['many accounts: key refused by the service'],
      cause: ['a, b, c and 8 others by now'],
      what_to_do: ['give the account a valid key, then: tocsin doctor'],
    },
  })
  expect(buildEndAlert(many, noted, sinceMs + minute)).toMatchObject({
    highlights: { headline: ['over after 1 min: many accounts: key refused by the service'] },
  })
})

test('the end says after how long, counted to when it was over and not to when that is said', () => {
  const noted = { sinceMs, seenMs: sinceMs, goneMs: sinceMs + 31 * minute }
  expect(buildEndAlert(brand, noted, sinceMs + 41 * minute)).toMatchObject({
    uid: `notice/tocsin/feed-stalled-brand-${sinceMs}-end`,
    severity: 'info',
    highlights: { headline: ['over after 31 min: feed brand: not read to the end'] },
  })
})
