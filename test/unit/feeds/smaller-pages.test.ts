import { describe, expect, test } from 'vitest'
import { advance, tailScan, shrinkPages, skipPage } from '../../../src/feeds/scan.ts'
import { UpstreamError } from '../../../src/upstream/error.ts'
import { aFeed, aFeedState } from '../../support/feeds.ts'

const nowMs = Date.UTC(2026, 10, 1)
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const feed = aFeed({ startMs: 3 * dayMs, rescan: { everyMs: hourMs, backMs: dayMs } })

const tooLarge = new UpstreamError('contract', 'an answer of 2 MiB', { fault: 'too_large' })

test('a page that cannot be read is asked for in tenths, down to one item and no further', () => {
  const walk = { ...tailScan(feed, aFeedState({ nowMs })), body: { size: 10 } }
  const one = shrinkPages(walk, tooLarge)
  expect(one).toMatchObject({ body: { size: 1 }, small: { usual: 10, left: 10 } })
  expect(shrinkPages(one!, tooLarge)).toBeUndefined()
  const sizes: unknown[] = []
  let next = one!
  for (let page = 0; page < 11; page += 1) {
    sizes.push(next.body['size'])
    next = advance(next, { items: [{}], next: `c${page}` }).scan
  }
  expect(sizes).toEqual([...Array.from({ length: 10 }, () => 1), 10])
  const two = shrinkPages({ ...walk, body: { size: 25 } }, tooLarge)
  expect(two).toMatchObject({ body: { size: 2 }, small: { usual: 25, left: 13 } })
  expect(shrinkPages(two!, tooLarge)).toMatchObject({
    body: { size: 1 },
    small: { usual: 25, left: 2 },
  })
})

describe('a tail that goes round a page leaves to the rescan', () => {
  const oldFloorMs = nowMs - 3 * dayMs
  const first = tailScan(feed, aFeedState({ nowMs: nowMs - dayMs, startBoundMs: oldFloorMs }))
  const read = {
    nowMs,
    startBoundMs: oldFloorMs,
    scan: { ...first, cursor: 'c1' },
    newestMs: nowMs - hourMs,
    rescans: { ...aFeedState({ nowMs }).rescans, snapshotId: first.behind?.id },
  }

  test('what it had not read yet itself, and no more', () => {
    expect(skipPage(feed, aFeedState(read))).toMatchObject({
      span: { fromMs: nowMs },
      behind: { fromMs: nowMs - hourMs - 600_000, toMs: nowMs },
    })
  })

  test('all that an operator asked to be read again', () => {
    const rewound = aFeedState({ ...read, isRewound: true, startBoundMs: nowMs - 9 * dayMs })
    expect(skipPage(feed, rewound).behind).toMatchObject({ fromMs: nowMs - 9 * dayMs, toMs: nowMs })
  })
})

test('a tail that goes round a page, and that nothing reads again, reads from an hour before the newest event', () => {
  const alone = aFeed({ rescan: undefined })
  const walk = { ...tailScan(alone, aFeedState({ nowMs: nowMs - dayMs })), cursor: 'c1' }
  const past = skipPage(alone, aFeedState({ nowMs, scan: walk, newestMs: nowMs - hourMs }))
  expect(past).toMatchObject({ reason: 'page_too_large', span: { fromMs: nowMs - 2 * hourMs } })
  expect(past).not.toHaveProperty('behind')
})
