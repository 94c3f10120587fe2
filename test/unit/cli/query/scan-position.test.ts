/** What `--from` takes: where a scan is, and whose scan it is. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ApiContext } from '../../../../src/cli/api/api-command.ts'
import { formatPosition, parsePosition, requestTag } from '../../../../src/cli/api/pages.ts'
import { secretFromText } from '../../../../src/lib/secret.ts'

const tag = '0123456789'
const first = { asOfMs: 1_795_000_000_000, size: 10, skip: 3, cursor: 'c' }

test('a position is read as it was written, and means nothing to a shell or a terminal', () => {
  fc.assert(
    fc.property(
      fc.option(fc.string({ minLength: 1, unit: 'binary' })),
      fc.integer({ min: 1, max: 10_000 }),
      fc.nat(999_999),
      (cursor, size, skip) => {
        const position = { ...first, cursor, size, skip }
        const word = formatPosition(position, tag)
        expect(parsePosition(word, tag)).toEqual({
          ...position,
          cursor,
        })
        expect(word).toMatch(/^[\w-]+$/)
      },
    ),
  )
})

test.each([
  ['of another scan', formatPosition(first, '9876543210'), 'belongs to another request; repeat'],
  ['that is cut', formatPosition({ ...first, cursor: 'é' }, tag).slice(0, -2), 'copy it again'],
  ['that is none', 'WzE3OTU%3D', 'copy it again'],
])('a position %s is refused', (_what, word, told) => {
  expect(() => parsePosition(word, tag)).toThrow(told)
})

describe('the tag', () => {
  const request = { query: { type: 'secret', secret: 'hush' }, order: 'asc' }

  function tagOf(change: { account?: string; key?: string; command?: string; request?: object }) {
    const { account = 'main', key = 'fw_1', command = 'search', request: what = request } = change
    const client = { account: { name: account, apiKey: secretFromText(key) } }
    return requestTag({ client } as ApiContext, command, what)
  }

  test('is the same for the same', () => {
    expect(tagOf({})).toBe(tagOf({}))
    expect(tagOf({})).toMatch(/^[0-9a-f]{10}$/)
  })

  test.each([
    ['account', { account: 'other' }],
    ['command', { command: 'feed' }],
    ['order', { request: { ...request, order: 'desc' } }],
    ['query', { request: { ...request, query: { type: 'secret', secret: 'Hush' } } }],
    ['key, without which no guess at a secret can be tested', { key: 'fw_2' }],
  ])('is another for another %s', (_what, change) => {
    expect(tagOf(change)).not.toBe(tagOf({}))
  })
})
