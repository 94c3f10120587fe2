import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalJson } from '../../../../src/feeds/types/field-reader.ts'

test('the order of keys makes no difference', () => {
  expect(canonicalJson({ b: 1, a: [{ d: 2, c: null }] })).toBe('{"a":[{"c":null,"d":2}],"b":1}')
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (object) => {
      const turned = Object.fromEntries(Object.entries(object).toReversed())
      expect(canonicalJson(turned)).toBe(canonicalJson(object))
    }),
  )
})

test('it is JSON of the same value', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const plain: unknown = JSON.parse(JSON.stringify(value))
      expect(JSON.parse(canonicalJson(plain))).toEqual(plain)
    }),
  )
})

test('different values give different text', () => {
  const texts = [[1, 2], [2, 1], ['1,2'], { a: 1 }, { a: '1' }, null, 'null'].map((value) =>
    canonicalJson(value),
  )
  expect(new Set(texts).size).toBe(texts.length)
})

test('a depth bomb is cut at 64 levels', () => {
  const bomb: unknown = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000))
  expect(canonicalJson(bomb)).toBe(`${'['.repeat(64)}"…"${']'.repeat(64)}`)
  const ofObjects: unknown = JSON.parse(`${'{"a":'.repeat(100)}1${'}'.repeat(100)}`)
  expect(canonicalJson(ofObjects)).toBe(`${'{"a":'.repeat(64)}"…"${'}'.repeat(64)}`)
})

test('what JSON cannot hold is null, and nothing throws', () => {
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withMap: true, withDate: true }), (value) => {
      expect(() => JSON.parse(canonicalJson(value)) as unknown).not.toThrow()
    }),
  )
})
