import { expect, test } from 'vitest'
import { sortPage, type Sorting } from '../../../src/feeds/sort-page.ts'
import { aCredentialFeed, aCredentialSearch, aFeed } from '../../support/feeds.ts'

function malformedOf(feed: Sorting['feed'], ...items: unknown[]) {
  const plan = () => ({ decisions: [], items: [] })
  const { events, malformed } = sortPage(items, {
    feed,
    floorMs: 0,
    readsBaseline: true,
    plan,
    pairIdOf: () => undefined,
    seal: () => undefined,
  })
  expect(events).toEqual([])
  return malformed
}

test.each([aCredentialFeed(), aCredentialSearch()])(
  'malformed items of a feed of $type show no password, and two that differ in it alone stay two',
  (feed) => {
    const items = ['Pangolin-clear-1', 'Pangolin-clear-2'].map((secret) => ({
      id: 'x',
      identity_name: `joe ${secret}`,
    }))
    const [one, two] = malformedOf(feed, ...items)
    expect(one!.raw).toBe('{"id":"text of 1","identity_name":"text of 20"}')
    expect(two!.raw).toBe(one!.raw)
    expect(two!.identity).not.toBe(one!.identity)
  },
)

test('a malformed event shows what it had, masked, and is known again by the whole of it', () => {
  const [one, two, again] = malformedOf(
    aFeed(),
    { metadata: { severity: 3 }, password: 'hunter22' },
    { metadata: { severity: 3 }, password: 'hunter-2' },
    { password: 'hunter22', metadata: { severity: 3 } },
  )
  expect(one!.raw).toBe('{"metadata":{"severity":3},"password":"h••••2"}')
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
    const { events } = sortPage([{ metadata: { uid: 'paste/x/1', severity } }], {
      feed: aFeed({ detail: ['critical'] }),
      floorMs: 0,
      readsBaseline: true,
      plan: () => ({ decisions: [], items: [] }),
      pairIdOf: () => undefined,
      seal: () => undefined,
    })
    expect(events[0]?.wantsDetail).toBe(wanted)
  },
)
