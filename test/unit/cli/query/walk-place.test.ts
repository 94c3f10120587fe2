import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseScanPosition, formatScanPosition } from '../../../../src/cli/api/pages.ts'

const first = { usual: 10, nowMs: 1_795_000_000_000 }
const later = { usual: 10, nowMs: 1_795_999_999_999 }

test('a walk goes on with the cursor, the time and the size that it began with', () => {
  fc.assert(
    fc.property(
      fc.string({ minLength: 1, unit: 'binary' }),
      fc.integer({ min: 1, max: 10_000 }),
      (cursor, size) => {
        const begun = parseScanPosition(null, { limit: 20, all: true, size }, first)
        const word = formatScanPosition(begun, cursor)
        const gone = parseScanPosition(word, { limit: 20, all: true, size }, later)
        expect(gone).toEqual({ asOfMs: first.nowMs, size, cursor: cursor.toWellFormed() })
      },
    ),
  )
})

test('the word means nothing to a shell or a terminal', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, unit: 'binary' }), (cursor) => {
      expect(formatScanPosition(parseScanPosition(null, { limit: 20 }, first), cursor)).toMatch(
        /^[\w.~!()*%-]+$/,
      )
    }),
  )
})

describe('the size of its pages', () => {
  test.each([
    ['is as usual', { limit: 20 }, 10],
    ['is no more than is shown', { limit: 3 }, 3],
    ['is as usual where all is shown', { limit: 3, all: true }, 10],
    ['is as asked', { limit: 20, size: 7 }, 7],
  ])('%s', (_says, options, size) => {
    expect(parseScanPosition(null, options, first).size).toBe(size)
  })

  test('stays, whatever the limit is later', () => {
    const word = formatScanPosition(parseScanPosition(null, { limit: 3 }, first), 'c')
    expect(parseScanPosition(word, { limit: 20 }, later).size).toBe(3)
    expect(parseScanPosition(word, { limit: 20, size: 3 }, later).size).toBe(3)
  })

  test('cannot be made smaller half way', () => {
    const word = formatScanPosition(parseScanPosition(null, { limit: 20 }, first), 'c')
    expect(() => parseScanPosition(word, { limit: 20, size: 5 }, later)).toThrow(
      '--from belongs to a search in pages of 10; leave --size out, or begin again without --from',
    )
  })
})

test('a cursor of the service is a word too', () => {
  expect(parseScanPosition('WzE3OTU%3D', { limit: 20 }, first)).toEqual({
    asOfMs: first.nowMs,
    size: 10,
    cursor: 'WzE3OTU%3D',
  })
})

test('a word that was cut is refused', () => {
  expect(() => parseScanPosition('mwqzy4ii-4-abc%', { limit: 20 }, first)).toThrow('copy it again')
})

test('there is no word where there is no more', () => {
  expect(formatScanPosition(parseScanPosition(null, { limit: 20 }, first), null)).toBeNull()
  expect(formatScanPosition(parseScanPosition(null, { limit: 20 }, first), undefined)).toBeNull()
})
