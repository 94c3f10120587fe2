import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatRevealed } from '../../../../src/cli/api/listing.ts'

test('no two secrets look the same, and each can be read back', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (secret) => {
      const shown = formatRevealed(secret)
      expect(shown).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
      expect(shown.startsWith('"') ? JSON.parse(shown) : shown).toBe(secret)
    }),
  )
})

test.each([
  ['plain', 'Hush  =hush', 'Hush  =hush'],
  ['with a quote within', 'a"b\\c', 'a"b\\c'],
  ['that begins with a quote', '"a"', String.raw`"\"a\""`],
  ['with a space at its end', 'a ', '"a "'],
  ['with zero width', 'a\u200Bb', String.raw`"a\u200bb"`],
  ['with another space', 'a\u00A0b', String.raw`"a\u00a0b"`],
  ['with an escape', 'a\u001B[31mb', String.raw`"a\u001b[31mb"`],
])('a secret %s', (_kind, secret, shown) => {
  expect(formatRevealed(secret)).toBe(shown)
})
