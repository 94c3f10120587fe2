import { describe, expect, test } from 'vitest'
import { credentialSearchFeed } from '../../../src/feed-types/credential-search.ts'
import type { FeedRequest } from '../../../src/feed-types/feed-type.ts'
import type { Scan } from '../../../src/store/feed-state.ts'
import { UpstreamError } from '../../../src/upstream/error.ts'
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

describe('whether the search costs quota', () => {
  /** Asked by a service that fails with `reason`. */
  async function isFree(reason: 'timeout' | 'unavailable' | 'rate_limited'): Promise<unknown> {
    const find = (): Promise<never> => Promise.reject(new UpstreamError(reason, 'no'))
    const { signal } = new AbortController()
    const request = { client: { capabilities: { find } }, scan, signal } as unknown as FeedRequest
    return credentialSearchFeed.isFree?.(request)
  }

  test.each(['timeout', 'unavailable'] as const)(
    'is not learned from a failure (%s), and holds no credential back',
    async (reason) => {
      expect(await isFree(reason)).toBe(false)
    },
  )

  test('waits while the service answers that it is asked too often', async () => {
    await expect(isFree('rate_limited')).rejects.toThrow(UpstreamError)
  })
})

test('a window reads what was imported ahead of now, too', () => {
  const nowMs = Date.UTC(2026, 10, 1)
  const read = { ...scan, notes: { hasCompleted: true } }
  const state = { ...aFeedState({ nowMs }), scan: read, isEnded: true }
  const { span } = credentialSearchFeed.unordered!.nextScan(state, aCredentialSearch())
  expect(span?.toMs).toBeGreaterThan(nowMs + 50 * 365 * 86_400_000)
})
