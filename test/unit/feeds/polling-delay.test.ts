import { expect, test } from 'vitest'
import { measureDelay } from '../../bench/delay.ts'
import { judged, rows } from '../../bench/report.ts'

test('the polling rule keeps its targets beside round robin and the bound that no schedule beats', () => {
  const figures = measureDelay({ seeds: 5, feeds: [10], seconds: 4 * 3_600 })
  const missed = rows
    .filter(({ part }) => part === 'delay')
    .filter((row) => judged(row, figures[row.key]).includes('missed'))
  expect(missed).toEqual([])
  expect(Object.keys(figures)).toEqual(
    rows.filter(({ part }) => part === 'delay').map(({ key }) => key),
  )
})
