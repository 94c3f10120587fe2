import fc from 'fast-check'
import { expect, test } from 'vitest'
import { substitute } from '../../../src/config/yaml-source.ts'

function textOf(input: string, env: Record<string, string | undefined> = {}): string {
  return substitute(input, env).text
}

test('a variable is replaced wherever it stands in the text', () => {
  expect(textOf('https://${HOST}/${PATH}', { HOST: 'a.example', PATH: 'x' })).toBe(
    'https://a.example/x',
  )
})

test('the default stands in for what is unset or empty, and for nothing else', () => {
  expect(textOf('${A:-b:-c}')).toBe('b:-c')
  expect(textOf('${A:-b}', { A: '' })).toBe('b')
  expect(textOf('${A:-b}', { A: '0' })).toBe('0')
  expect(textOf('${A:-}')).toBe('')
})

test('an unset variable without a default is a problem that names it', () => {
  expect(substitute('${A} ${B}', { A: '' }).problems).toEqual([
    { problem: 'the variable B is not set', remedy: 'set it, or give a default: ${B:-…}' },
  ])
  expect(substitute('${constructor}', {}).problems).toHaveLength(1)
})

test.each(['${', '${A', '${}', '${1A}', '${A-b}', '${A:?b}', '${A:-${B}}', '${ A }'])(
  '%s is no placeholder',
  (input) => {
    expect(substitute(input, { A: 'x', B: 'y' }).problems.length).toBeGreaterThan(0)
  },
)

test('a value comes out as it is, whatever it holds', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1 }), (value) => {
      expect(textOf('${A}', { A: value })).toBe(value)
      expect(textOf('<${A:-x}>', { A: value })).toBe(`<${value}>`)
    }),
  )
})

test('any text can be written with doubled dollars', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('$', '{', '}', 'A', ':', '-') }), (wanted) => {
      const { text, problems } = substitute(wanted.replaceAll('$', '$$$$'), { A: 'x' })
      expect({ text, problems }).toEqual({ text: wanted, problems: [] })
    }),
  )
})
