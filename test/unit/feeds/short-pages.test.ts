import { expect, test } from 'vitest'
import { createShortPages } from '../../../src/feeds/poll-run.ts'

function learned(times = 3) {
  const pages = createShortPages()
  for (let time = 0; time < times; time += 1) pages.noteFollowing('events', 'nothing')
  return pages
}

test('a short page is the end once an empty page has followed three times, of that endpoint alone', () => {
  expect(learned(2).isEnd('events')).toBe(false)
  expect(learned().isEnd('events')).toBe(true)
  expect(learned().isEnd('tenant_events')).toBe(false)
})

test('the last page of a tail is known in its next turn, and that it was of an earlier one', () => {
  const pages = createShortPages()
  const feed = { account: 'main', name: 'brand' }
  const page = pages.last(feed)
  const last = { askedAtMs: 1, cursor: 'c1', scanBegunMs: 0 }
  Object.assign(page, { last, isOfThisRun: true })
  expect(pages.last({ ...feed })).toEqual({ last, isOfThisRun: false })
  expect(pages.last({ ...feed, name: 'other' }).last).toBeUndefined()
  expect(pages.last({ ...feed, account: 'other' }).last).toBeUndefined()
})

test('one in twenty is followed all the same', () => {
  const pages = learned()
  const ends = Array.from({ length: 100 }, () => pages.isEnd('events'))
  expect(ends.filter((isEnd) => !isEnd)).toHaveLength(5)
  expect(ends.indexOf(false)).toBe(19)
})

test('items that were there before are a surprise that unlearns it; newer ones say nothing', () => {
  const pages = learned()
  pages.noteFollowing('events', 'newer')
  expect(pages.isEnd('events')).toBe(true)
  pages.noteFollowing('events', 'older')
  for (let time = 0; time < 2; time += 1) pages.noteFollowing('events', 'nothing')
  expect(pages.isEnd('events')).toBe(false)
  pages.noteFollowing('events', 'nothing')
  expect(pages.isEnd('events')).toBe(true)
})
