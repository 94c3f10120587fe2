import { expect, test } from 'vitest'
import { plotColumns, plotLengths } from '../../../src/page/output/plots.ts'

const names = ['critical', 'low']

test('a column stacks its counts from the bottom, in the order of the names', () => {
  const { width, columns } = plotColumns([{ critical: 1, low: 3 }], names)
  expect(width).toBe(70)
  expect(columns).toEqual([
    {
      x: 1,
      width: 8,
      segments: [
        { name: 'critical', y: 74, height: 26 },
        { name: 'low', y: 0, height: 74 },
      ],
      text: '1 critical, 3 low',
    },
  ])
})

test('one event among thousands can be seen, and no column is too high', () => {
  const { columns, highest } = plotColumns([{ critical: 1, low: 5000 }, { low: 9000 }], names)
  expect(highest).toBe(9000)
  const segments = columns.flatMap((column) => column.segments)
  expect(segments.every(({ height }) => height >= 2)).toBe(true)
  expect(segments.every(({ y }) => y >= 0)).toBe(true)
})

test('hours without events are columns without segments', () => {
  const plot = plotColumns([{ critical: 0, low: 0 }, {}], names)
  expect(plot.columns.map(({ segments }) => segments)).toEqual([[], []])
  expect(plot).toMatchObject({ total: 0, highest: 0 })
})

test('a plot says the sum of each name and of all', () => {
  const { sums, total } = plotColumns([{ critical: 1, low: 3 }, { low: 4 }], names)
  expect(sums).toEqual([
    { name: 'critical', count: 1 },
    { name: 'low', count: 7 },
  ])
  expect(total).toBe(8)
})

test('the longest bar is the whole, and what is not 0 can be seen', () => {
  expect(plotLengths([2000, 500, 1, 0])).toEqual([100, 25, 1, 0])
  expect(plotLengths([0, 0])).toEqual([0, 0])
})
