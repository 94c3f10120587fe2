import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createPages, type Pages } from '../../../src/sandbox/api/pages.ts'
import { createHistory, type History } from '../../../src/sandbox/history/history.ts'
import { createGenerator } from '../../../src/sandbox/history/generator.ts'
import { type EndMode, type SandboxOptions, withDefaults } from '../../../src/sandbox/options.ts'

const group = { id: 1, name: 'one', tenantId: 1, identifiers: [{ id: 5, name: 'example.com' }] }
const generator = createGenerator(3)

function historyOf(times: readonly number[]): History {
  const history = createHistory()
  const made = times.map((createdAtMs, index) =>
    generator.make(group, 1000, { createdAtMs, uid: `paste/site/${index}`, groupIds: [1] }),
  )
  history.add(made)
  return history
}

const pagesOf = (options: SandboxOptions = {}): Pages => createPages(withDefaults(options))

/** Reads pages until the end, as a client does that trusts `next` alone. */
function walk(pages: Pages, history: History, order: 'asc' | 'desc' = 'asc'): string[][] {
  const found: string[][] = []
  let from: string | null | undefined
  do {
    const isHidden = (event: { ignoredAtMs: number | null }): boolean => event.ignoredAtMs !== null
    const entries = history.ofGroup(1)
    const page = pages.read({ scan: order, entries, order, size: 10, from, isHidden })
    found.push(page.entries.map(({ uid }) => uid))
    from = page.next === from ? null : page.next
  } while (from && found.length < 1000)
  return found
}

describe('a scan of any history', () => {
  const times = fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 60 })
  const habits = fc.record({
    endMode: fc.constantFrom<EndMode>('full', 'empty', 'absent', 'echo'),
    shortPages: fc.constantFrom(0, 0.5, 1),
    emptyPages: fc.constantFrom(0, 0.5, 1),
    seed: fc.nat(),
  })

  test('yields every event once, by creation and then uid, however pages end or shrink', () => {
    fc.assert(
      fc.property(times, habits, (created, options) => {
        const history = historyOf(created)
        const expected = history
          .all()
          .toSorted((a, b) => a.createdAtMs - b.createdAtMs || (a.uid < b.uid ? -1 : 1))
          .map(({ uid }) => uid)
        expect(walk(pagesOf(options), history).flat()).toEqual(expected)
        expect(walk(pagesOf(options), history, 'desc').flat()).toEqual(expected.toReversed())
      }),
    )
  })
})

test('ignored events leave their places empty, and whole pages of them empty in mid-scan', () => {
  const history = historyOf(Array.from({ length: 35 }, (_, index) => index))
  for (const { uid } of history.ofGroup(1).slice(10, 25)) history.change(uid, { ignoredAtMs: 1 })
  expect(walk(pagesOf(), history).map(({ length }) => length)).toEqual([10, 0, 5, 5])
})

test('an event created before the cursor never comes after it', () => {
  const history = historyOf([10, 20, 30])
  const pages = pagesOf({ endMode: 'empty' })
  const read = (from?: string | null) =>
    pages.read({ scan: 'x', entries: history.ofGroup(1), size: 2, from })
  const { next } = read()
  history.add([generator.make(group, 1000, { createdAtMs: 15, uid: 'paste/site/late' })])
  expect(read(next).entries.map(({ createdAtMs }) => createdAtMs)).toEqual([30])
})

describe('a cursor', () => {
  const entries = historyOf([11, 22, 33]).ofGroup(1)
  const first = (pages: Pages, scan: unknown): string =>
    pages.read({ scan, entries, size: 1, from: null }).next!
  const next = (pages: Pages, scan: unknown, from: string) => () =>
    pages.read({ scan, entries, size: 1, from })

  test('that comes back with other parameters is counted', () => {
    const pages = pagesOf()
    const from = first(pages, { size: 10, filter: 'a' })
    next(pages, { filter: 'a', size: 10 }, from)()
    expect(pages.changedScans()).toBe(0)
    next(pages, { filter: 'b', size: 10 }, from)()
    expect(pages.changedScans()).toBe(1)
  })

  test('that expired stays so for its scan when another scan gets the same place', () => {
    const pages = pagesOf()
    const from = first(pages, 'tail')
    pages.expireAll()
    expect(next(pages, 'rescan', from)).toThrow('bad cursor')
    expect(first(pages, 'rescan')).toBe(from)
    expect(next(pages, 'rescan', from)).not.toThrow()
    expect(next(pages, 'tail', from)).toThrow('bad cursor')
    first(pages, 'tail')
    expect(next(pages, 'tail', from)).not.toThrow()
  })

  test('is refused unless it is as it was issued', () => {
    const pages = pagesOf()
    const from = first(pages, 'tail')
    expect(from).toContain('%')
    expect(next(pages, 'tail', decodeURIComponent(from))).toThrow('bad cursor')
    expect(next(pages, 'tail', 'nonsense')).toThrow('bad cursor')
  })
})
