import { expect, test } from 'vitest'
import { sortPage, type SortOptions } from '../../../src/feeds/parse.ts'
import { feedCredential } from '../../fixtures/documented-items.ts'
import { aCredentialFeed, aFeed } from '../../support/feeds.ts'

const floorMs = Date.UTC(2026, 10, 1)

function sorted(items: unknown[], given: Partial<SortOptions> = {}) {
  return sortPage(items, {
    feed: aFeed(),
    startBoundMs: floorMs,
    readsBaseline: true,
    plan: () => ({
      decisions: [{ route: 'root', path: ['root'], why: [] }],
      items: [{ sink: 'soc', destination: 'soc', routes: ['root'] }],
    }),
    pairDigest: (parts) => `digest of ${parts.length}`,
    sealSecret: (uid) => `seal for ${uid}`,
    ...given,
  })
}

function eventOf(raw: unknown, given: Partial<SortOptions> = {}) {
  const { events, malformed } = sorted([raw], given)
  expect(malformed).toEqual([])
  return events[0]!
}

function createdAt(ms: number | null): unknown {
  const estimated_created_at = ms === null ? null : new Date(ms).toISOString()
  return { metadata: { uid: 'paste/x/1', estimated_created_at } }
}

test('a malformed event shows kinds, and is known again by the whole of it', () => {
  const items = [
    { metadata: { severity: 3 }, password: 'hunter22' },
    { metadata: { severity: 3 }, password: 'hunter-2' },
    { password: 'hunter22', metadata: { severity: 3 } },
  ]
  const { events, malformed } = sorted(items, { pairDigest: () => undefined })
  expect(events).toEqual([])
  const [one, two, again] = malformed
  expect(one!.raw).toBe('{"metadata":{"severity":"number"},"other keys":1}')
  expect(two!.raw).toBe(one!.raw)
  expect(two!.identity).not.toBe(one!.identity)
  expect(again!.identity).toBe(one!.identity)
})

test.each([
  ['critical', true],
  ['medium', false],
  ['none', true],
  [null, true],
])(
  'of severity %j the full event is fetched: %j, since an unknown one counts as critical',
  (severity, wanted) => {
    const feed = aFeed({ detail: ['critical'] })
    const { wantsDetail } = eventOf({ metadata: { uid: 'paste/x/1', severity } }, { feed })
    expect(wantsDetail).toBe(wanted)
  },
)

test.each([
  ['below the start bound', floorMs - 1, true],
  ['at the start bound', floorMs, false],
  ['nobody knows when', null, false],
])('what was created %s was there before the feed began: %s', (_when, ms, isBelow) => {
  const sent = [{ sink: 'soc', destination: 'soc', routes: ['root'] }]
  const learned = eventOf(createdAt(ms))
  expect(learned).toMatchObject({ isBeforeStart: isBelow, isBaseline: isBelow })
  expect([learned.items, learned.decisions.length]).toEqual(isBelow ? [[], 0] : [sent, 1])
  const later = eventOf(createdAt(ms), { readsBaseline: false })
  expect(later).toMatchObject({ isBeforeStart: isBelow, isBaseline: false, items: sent })
})

test('a leaked credential is recognised by its parts, and its secret sealed unless it is only learned', () => {
  const feed = aCredentialFeed()
  const event = eventOf(feedCredential, { feed, startBoundMs: 0 })
  expect(event.pair).toMatchObject({ id: 'digest of 3' })
  expect(event.pair).not.toHaveProperty('parts')
  expect(event.sealedSecret).toBe(`seal for ${event.event.uid}`)
  expect(eventOf(feedCredential, { feed, startBoundMs: Infinity })).not.toHaveProperty(
    'sealedSecret',
  )
  const none = { pairDigest: () => undefined, sealSecret: () => undefined }
  const unkeyed = eventOf(feedCredential, { feed, startBoundMs: 0, ...none })
  expect(unkeyed).not.toHaveProperty('pair')
  expect(unkeyed).not.toHaveProperty('sealedSecret')
  expect(eventOf(createdAt(floorMs))).not.toHaveProperty('pair')
})
