/** What a size leaves out of a message is said, and nothing that counts is lost. */
import { expect, test } from 'vitest'
import { type Document, fit, formatRemainder } from '../../../src/messages/document.ts'
import { renderDocument } from '../../../src/sinks/templates/templates.ts'
import { delivery } from '../../support/scenes.ts'
import { aBusyDigest } from '../../support/summaries.ts'

const document = renderDocument(delivery([], aBusyDigest(60)))

function fitted(limit: number, maxLines = Infinity): Document {
  const measure = (one: Document): number => JSON.stringify(one).length
  return fit(document, { limit, maxLines, render: (one) => one, measure })
}

function sum(counts: readonly { count: number }[] = []): number {
  return counts.reduce((total, { count }) => total + count, 0)
}

test('what fits is whole', () => {
  expect(fitted(Infinity)).toEqual(document)
})

test.each([4000, 6000, 9000, 15_000, 20_000])(
  'within %i all events, names and feeds are shown or counted',
  (limit) => {
    const { lines, more, counts, feeds, moreFeeds, alarms } = fitted(limit)
    expect(JSON.stringify(fitted(limit)).length).toBeLessThanOrEqual(limit)
    const [, left] = /(?:^|and )(\d+)/.exec(more ?? '') ?? []
    expect(lines.length + Number(left ?? 0)).toBe(60)
    expect(counts.map(({ entries }) => sum(entries))).toEqual(
      document.counts.map(({ entries }) => sum(entries)),
    )
    expect(feeds.length + moreFeeds).toBe(document.feeds.length)
    expect(alarms).toHaveLength(document.alarms.length)
  },
)

test('what stands beside an event, and what could not be delivered, is shortened like all texts', () => {
  const long = 'x'.repeat(300)
  const long3 = [1, 2, 3].map((at) => ({ severity: 'high', title: `${at}${long}`, link: null }))
  const related = [{ label: 'Also routed to', value: long, kind: 'text' as const }]
  const crowded = { ...document, related, undelivered: long3 }
  const render = (one: Document): Document => one
  const measure = (one: Document): number => JSON.stringify(one).length
  const shown = fit(crowded, { limit: 4_500, maxLines: Infinity, render, measure })
  expect(shown.undelivered.map(({ title }) => title.charAt(0))).toEqual(['1', '2', '3'])
  for (const text of [shown.related[0]!.value, ...shown.undelivered.map(({ title }) => title)])
    expect(text.length).toBeLessThan(100)
})

test('texts are shortened before the last event is left out', () => {
  expect(fitted(4500).lines.length).toBeGreaterThan(0)
})

test('no more events are shown than people read', () => {
  expect(fitted(Infinity, 25).lines).toHaveLength(25)
  expect(fitted(Infinity, 25).more).toMatch(/^and 35 more: /)
})

test('what is not shown is counted, with the place where it is', () => {
  const bare = { total: 5, attachment: null, pageUrl: null }
  expect(formatRemainder(bare, 5)).toBeNull()
  expect(formatRemainder(bare, 3)).toBe('and 2 more, not listed here')
  expect(formatRemainder({ ...bare, pageUrl: 'https://tocsin.test/messages/b1' }, 3)).toBe(
    'and 2 more: "All events in Tocsin" has them',
  )
  expect(formatRemainder({ ...bare, attachment: 'a.csv' }, 0)).toBe(
    '5 not listed here: see the attached a.csv',
  )
})
