import { expect, test } from 'vitest'
import { credentialSearchFeed } from '../../../../src/feeds/types/credential-search.ts'
import type { Scan } from '../../../../src/store/feed-state.ts'
import { aCredentialSearch, aFeedState } from '../../../support/feeds.ts'

const fromMs = Date.UTC(2026, 10, 1)
const scan: Scan = {
  fingerprint: 'f',
  body: {},
  span: { fromMs },
  cursor: null,
  reason: 'again',
  startedAtMs: fromMs,
}

test('a window reads what was imported ahead of now, too', () => {
  const nowMs = Date.UTC(2026, 10, 1)
  const read = { ...scan, notes: { hasCompleted: true } }
  const state = { ...aFeedState({ nowMs }), scan: read, isEnded: true }
  const { span } = credentialSearchFeed.unordered!.nextScan(state, aCredentialSearch())
  expect(span?.toMs).toBeGreaterThan(nowMs + 50 * 365 * 86_400_000)
})
