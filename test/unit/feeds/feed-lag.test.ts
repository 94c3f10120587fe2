import { expect, test } from 'vitest'
import { feedLagMs } from '../../../src/store/feed-state.ts'
import { tailScan } from '../../../src/feeds/scan.ts'
import { aFeed, aFeedState } from '../../support/feeds.ts'

const nowMs = Date.UTC(2026, 10, 1)

test('a feed lags since it was read to its end, before that since its first poll, at worst since its walk began', () => {
  const { rescans } = aFeedState({ nowMs })
  const walk = { ...tailScan(aFeed(), aFeedState({ nowMs })), startedAtMs: nowMs - 70_000 }
  const polled = { ...rescans, firstPollMs: nowMs - 90_000 }
  const lag = (lastCaughtUpMs: number | undefined, since: typeof rescans = polled) =>
    feedLagMs({ nowMs, lastCaughtUpMs, rescans: since, scan: walk })
  expect(lag(nowMs - 10_000)).toBe(10_000)
  expect(lag(undefined)).toBe(90_000)
  expect(lag(undefined, rescans)).toBe(70_000)
  expect(lag(nowMs + 10_000)).toBe(0) // clocks differ
  expect(feedLagMs({ nowMs, lastCaughtUpMs: undefined, rescans, scan: undefined })).toBe(0)
})
