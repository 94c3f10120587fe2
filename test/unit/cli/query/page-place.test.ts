import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parsePagePosition, requestTag, formatPagePosition } from '../../../../src/cli/api/pages.ts'
import type { ApiContext } from '../../../../src/cli/api/api-command.ts'
import { secretFromText } from '../../../../src/lib/secret.ts'

const mark = '0123456789'

test('a place is read as it was written', () => {
  fc.assert(
    fc.property(
      fc.option(fc.string({ minLength: 1, unit: 'binary' })),
      fc.nat(999_999),
      (cursor, skip) => {
        expect(parsePagePosition(formatPagePosition({ cursor, skip }, mark), mark)).toEqual({
          cursor,
          skip,
        })
      },
    ),
  )
})

test('a place of another walk is refused', () => {
  const word = formatPagePosition({ cursor: 'c', skip: 3 }, mark)
  expect(() => parsePagePosition(word, '9876543210')).toThrow(
    '--from belongs to another request; repeat',
  )
})

test.each(['WzE3OTU%3D', '12.abc', 'a.b.c', '7'])(
  '%s, a cursor of the service, is a place',
  (cursor) => {
    expect(parsePagePosition(cursor, mark)).toEqual({ cursor, skip: 0 })
  },
)

describe('the mark', () => {
  const request = { query: { type: 'secret', secret: 'hush' }, order: 'asc' }

  function markOf(change: { account?: string; key?: string; command?: string; request?: object }) {
    const { account = 'main', key = 'fw_1', command = 'search', request: what = request } = change
    const client = { account: { name: account, apiKey: secretFromText(key) } }
    return requestTag({ client } as ApiContext, command, what)
  }

  test('is the same for the same', () => {
    expect(markOf({})).toBe(markOf({}))
    expect(markOf({})).toMatch(/^[0-9a-f]{10}$/)
  })

  test.each([
    ['account', { account: 'other' }],
    ['command', { command: 'feed' }],
    ['order', { request: { ...request, order: 'desc' } }],
    ['query', { request: { ...request, query: { type: 'secret', secret: 'Hush' } } }],
    ['key, without which no guess at a secret can be tested', { key: 'fw_2' }],
  ])('is another for another %s', (_what, change) => {
    expect(markOf(change)).not.toBe(markOf({}))
  })
})
