/** What listings show: the worst first, and of many only those that are not well. */
import { expect, test } from 'vitest'
import { chooseListed } from '../../../src/cli/narrowing.ts'

const things = Array.from({ length: 300 }, (_one, n) => ({
  name: `t${n}`,
  bad: { 3: 1, 7: 3 }[n] ?? 0,
}))
const choice = { badness: ({ bad }: { bad: number }) => bad, thing: 'feed', name: undefined }

function names(count: number, options: object, output: 'text' | 'json' = 'text'): string[] {
  const { shown, left } = chooseListed(things.slice(0, count), { output, ...options }, choice)
  return [...shown.map(({ name }) => name), ...left]
}

test('a few are all listed, the worst first', () => {
  expect(names(9, {})).toEqual(['t7', 't3', 't0', 't1', 't2', 't4', 't5', 't6', 't8'])
})

test('of many only those that are not well are listed, and the others counted', () => {
  expect(names(300, {})).toEqual(['t7', 't3', '298 feeds without a problem: --wide lists them'])
  expect(names(300, { wide: true })).toHaveLength(300)
})

test('programs get all of them, in their own order', () => {
  expect(names(300, {}, 'json')).toEqual(things.map(({ name }) => name))
  expect(names(300, { problems: true }, 'json')).toEqual(['t3', 't7'])
})

test('problems alone may be none', () => {
  expect(names(300, { problems: true })).toEqual(['t7', 't3'])
  expect(names(3, { problems: true })).toEqual(['no feed has a problem'])
})

test('a name lists all that have it, and one that nothing has is refused', () => {
  const named = chooseListed(
    [...things, { name: 't1', bad: 0 }],
    { output: 'text' },
    { ...choice, name: 't1' },
  )
  expect(named.shown).toHaveLength(2)
  const unknown = (): unknown => chooseListed(things, { output: 'text' }, { ...choice, name: 'u' })
  expect(unknown).toThrow(/^no feed "u"/)
})
