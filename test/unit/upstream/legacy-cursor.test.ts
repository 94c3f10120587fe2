import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  readCursor,
  wireLegacyPage,
  type WireLegacyPage,
} from '../../../src/upstream/resources/legacy-search.ts'

function page(given: Record<string, unknown>): WireLegacyPage {
  return wireLegacyPage.parse({ items: [], ...given })
}

describe('the cursor of a legacy page', () => {
  test.each([
    ['null', { search_after: null }],
    ['absent', {}],
    ['empty', { search_after: '' }],
    ['null within links', { links: { next: null } }],
    ['absent within links', { links: {} }],
    ['empty within links', { links: { next: '' } }],
    ['null, its links too', { search_after: null, links: null }],
  ])('that is %s is the end', (_title, given) => {
    expect(readCursor(page(given))).toBeNull()
  })

  test('is search_after before anything that the links say', () => {
    const links = { next: '/firework/v2/search/?from=other' }
    expect(readCursor(page({ search_after: 'this', links }))).toBe('search_after=this')
    expect(readCursor(page({ search_after: null, links }))).toBe('from=other')
  })

  test('may be a list, which goes back as JSON', () => {
    expect(readCursor(page({ search_after: [1, 'a/b'] }))).toBe('search_after=[1,"a/b"]')
  })

  test.each([
    ['https://api.example/firework/v2/search/?size=5&from=a%3D', 'from=a='],
    ['http://127.0.0.1:80/?search_after=b', 'search_after=b'],
    ['/firework/v2/search/?types=leak&types=bot&from=c%2Fd', 'from=c/d'],
    ['/firework/v2/search/?search_after=e&from=f', 'search_after=e'],
    ['?from=g', 'from=g'],
  ])('is found in the address %s', (next, cursor) => {
    expect(readCursor(page({ links: { next } }))).toBe(cursor)
  })

  test.each(['https://api.example/firework/v2/search/', '/firework/v2/search/?size=5'])(
    'is none where the address %s holds none',
    (next) => {
      expect(readCursor(page({ links: { next } }))).toBeNull()
    },
  )

  test.each(['eyJhIjoxfQ==', '/9j/4AAQ==', 'a=b&from=c', '[1,"x?y"]', 'https'])(
    'may be %s by itself',
    (next) => {
      expect(readCursor(page({ links: { next } }))).toBe(`from=${next}`)
    },
  )

  test('goes back as it came, whatever it is and wherever it stands', () => {
    const cursor = fc.string({ minLength: 1, unit: 'binary' }).map((text) => text.toWellFormed())
    const parameter = fc.constantFrom('from', 'search_after')
    const base = fc.constantFrom('https://api.example/x/?size=1&', '/firework/v2/search/?', '?')
    fc.assert(
      fc.property(cursor, parameter, base, (value, name, address) => {
        expect(readCursor(page({ search_after: value }))).toBe(`search_after=${value}`)
        const next = `${address}${new URLSearchParams({ [name]: value }).toString()}`
        expect(readCursor(page({ links: { next } }))).toBe(`${name}=${value}`)
      }),
    )
  })
})
