import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decodeCursor,
  encodeCursor,
  type PageHabits,
  takePage,
} from '../../../src/sandbox/api/cursor.ts'
import { createGenerator } from '../../../src/sandbox/history/generator.ts'
import {
  createHistory,
  type Position,
  type SandboxEvent,
} from '../../../src/sandbox/history/history.ts'
import type { EndMode } from '../../../src/sandbox/options.ts'

const group = { id: 1, name: 'one', tenantId: 1, identifiers: [{ id: 5, name: 'example.com' }] }
const generator = createGenerator(3)

function eventsAt(times: number[]): SandboxEvent[] {
  return times.map((createdAtMs, index) =>
    generator.make(group, 1000, { createdAtMs, uid: `paste/site/${index}`, groupIds: [1] }),
  )
}

/** Reads pages until the end, as a client does that trusts `next` alone; stops after 1,000. */
function walk(
  events: () => readonly SandboxEvent[],
  order: 'asc' | 'desc',
  habits: PageHabits,
  size = 10,
): { uids: string[]; pages: number; emptyPages: number } {
  const uids: string[] = []
  let from: Position | null = null
  let emptyPages = 0
  for (let pages = 1; pages < 1000; pages++) {
    const request = {
      order,
      size,
      from,
      matches: () => true,
      isHidden: (event: SandboxEvent) => event.ignoredAtMs !== null,
    }
    const page = takePage(events(), request, habits)
    uids.push(...page.items.map(({ uid }) => uid))
    if (page.items.length === 0) emptyPages++
    if (page.next === null || page.next === undefined || page.next === 'same') {
      return { uids, pages, emptyPages }
    }
    from = decodeCursor(encodeCursor(page.next))
    expect(from).toEqual(page.next)
  }
  throw new Error('the walk never ended')
}

const times = fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 60 })
const ends = fc.constantFrom<EndMode>('full', 'empty', 'absent', 'echo')
/** How many places the pages of a walk use, in turn. */
const places = fc.array(fc.integer({ min: 0, max: 10 }), { minLength: 1, maxLength: 20 })

function habitsOf(endMode: EndMode, turns: number[]): PageHabits {
  let turn = 0
  return { endMode, usedSize: (size) => Math.min(size, turns[turn++ % turns.length]!) }
}

describe('a walk of any history', () => {
  test('ascending yields every event once, by creation and then uid, however pages end or shrink', () => {
    fc.assert(
      fc.property(times, ends, places, (created, endMode, turns) => {
        const history = createHistory()
        history.add(eventsAt(created))
        const expected = [...history.all()]
          .sort((a, b) => a.createdAtMs - b.createdAtMs || (a.uid < b.uid ? -1 : 1))
          .map(({ uid }) => uid)
        const { uids } = walk(() => history.ofGroup(1), 'asc', habitsOf(endMode, turns))
        expect(uids).toEqual(expected)
      }),
    )
  })

  test('descending yields the same backwards', () => {
    fc.assert(
      fc.property(times, ends, places, (created, endMode, turns) => {
        const history = createHistory()
        history.add(eventsAt(created))
        const { uids } = walk(() => history.ofGroup(1), 'desc', habitsOf(endMode, turns))
        const up = walk(() => history.ofGroup(1), 'asc', habitsOf('full', [10]))
        expect(uids).toEqual(up.uids.toReversed())
      }),
    )
  })
})

test('ignored events leave their places empty, and whole pages of them empty in mid-walk', () => {
  const history = createHistory()
  history.add(eventsAt(Array.from({ length: 35 }, (_, index) => index)))
  for (const event of history.ofGroup(1).slice(10, 25)) {
    history.change(event.uid, { ignoredAtMs: 1 })
  }
  const { uids, pages, emptyPages } = walk(() => history.ofGroup(1), 'asc', habitsOf('full', [10]))
  expect(uids).toHaveLength(20)
  expect({ pages, emptyPages }).toEqual({ pages: 4, emptyPages: 1 })
})

test('an event created before the cursor never comes after it', () => {
  const history = createHistory()
  history.add(eventsAt([10, 20, 30]))
  const late = generator.make(group, 1000, { createdAtMs: 15, uid: 'paste/site/late' })
  const request = { order: 'asc' as const, size: 2, matches: () => true, isHidden: () => false }
  const habits = habitsOf('empty', [10])
  const first = takePage(history.ofGroup(1), { ...request, from: null }, habits)
  history.add([late])
  const second = takePage(history.ofGroup(1), { ...request, from: first.next as Position }, habits)
  expect(second.items.map(({ createdAtMs }) => createdAtMs)).toEqual([30])
})
