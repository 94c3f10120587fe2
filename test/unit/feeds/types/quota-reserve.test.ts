import { expect, test } from 'vitest'
import { isReserveReached } from '../../../../src/feeds/types/polled-feed.ts'
import { aCredentialSearch, aFeed } from '../../../support/feeds.ts'

const nowMs = Date.UTC(2026, 10, 1)
const dayMs = 86_400_000
const careful = aCredentialSearch({ quotaReserve: 5 })

test.each([
  ['more than its reserve is left', careful, { remaining: 6, atMs: nowMs }, false],
  ['just its reserve is left', careful, { remaining: 5, atMs: nowMs }, true],
  ['that was said almost a day ago', careful, { remaining: 5, atMs: nowMs - dayMs + 1 }, true],
  ['that was said a day ago', careful, { remaining: 5, atMs: nowMs - dayMs }, false],
  ['no answer has said what is left', careful, undefined, false],
  [
    'nothing is left and it reserves nothing',
    aCredentialSearch(),
    { remaining: 0, atMs: nowMs },
    false,
  ],
  ['its pages cost nothing', aFeed(), { remaining: 0, atMs: nowMs }, false],
])('whether a feed leaves what is left to others where %s', (_when, feed, quota, isReached) => {
  expect(isReserveReached(feed, quota, nowMs)).toBe(isReached)
})
