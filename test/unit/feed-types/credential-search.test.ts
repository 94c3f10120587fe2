import { expect, test } from 'vitest'
import { credentialSearchFeed } from '../../../src/feed-types/credential-search.ts'
import type { Scan } from '../../../src/store/feed-state.ts'
import { aCredentialSearch, aFeedState } from '../../support/feeds.ts'

const fromMs = Date.UTC(2026, 10, 1)
const scan: Scan = {
  fingerprint: 'f',
  body: {},
  span: { fromMs },
  cursor: null,
  reason: 'again',
  startedAtMs: fromMs,
}

test.each([
  [1_001, true],
  [1_000, false], // a service may round times to seconds
])(
  'a service that shows what was imported %i ms before the window ignores its times: %s',
  (earlierMs, isUnfiltered) => {
    const items = [{ imported_at: new Date(fromMs - earlierMs).toISOString() }]
    const read = { isEnd: true, limitMs: Infinity }
    const notes = credentialSearchFeed.unordered?.note?.(scan, { items, next: null }, read)
    expect(notes).toMatchObject({ isUnfiltered })
  },
)

test('a window reads what was imported ahead of now, too', () => {
  const nowMs = Date.UTC(2026, 10, 1)
  const read = { ...scan, notes: { hasCompleted: true } }
  const state = { ...aFeedState({ nowMs }), scan: read, isEnded: true }
  const { span } = credentialSearchFeed.unordered!.nextScan(state, aCredentialSearch())
  expect(span?.toMs).toBeGreaterThan(nowMs + 50 * 365 * 86_400_000)
})
