import { expect, test } from 'vitest'
import { size } from '../../../src/lib/config/config-fields.ts'

const field = size('A size.', '1MiB')

test.each([
  ['1MiB', 2 ** 20],
  ['500MB', 500_000_000],
  ['1.5GiB', 1.5 * 2 ** 30],
  ['2 TB', 2e12],
  ['2048KiB', 2 ** 21],
  ['3000000B', undefined], // at most six digits, so that a slip is seen
])('%s is so many bytes', (text, bytes) => {
  expect(field.safeParse(text).data).toBe(bytes)
})

test.each(['1 gig', '1Gib', '1gb', '1', '-1GiB', '1e3MB', 'GiB', '1KB', ''])(
  '%j is no size',
  (text) => {
    expect(field.safeParse(text).success).toBe(false)
  },
)

test('less than the least is told so', () => {
  expect(field.safeParse('1000kB').error?.issues[0]?.message).toBe('too small\nwrite 1MiB or more')
})
