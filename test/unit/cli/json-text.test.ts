import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonText } from '../../../src/cli/terminal.ts'

const hostile = fc.string({ unit: 'binary' })

test('is the same value when it is parsed, indented or not', () => {
  fc.assert(
    fc.property(
      fc.dictionary(hostile, fc.array(hostile)),
      fc.constantFrom(0, 2),
      (value, indent) => {
        expect(JSON.parse(jsonText(value, indent))).toEqual(JSON.parse(JSON.stringify(value)))
      },
    ),
  )
})

test('holds nothing that a terminal acts upon, and no end of a line but its own', () => {
  fc.assert(
    fc.property(hostile, (text) => {
      expect(jsonText([text])).not.toMatch(
        /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/u,
      )
    }),
  )
  expect(jsonText('a\u009B31mb\u202Ec\u200Bd\u2028e\u{E0041}')).toBe(
    String.raw`"a\u009b31mb\u202ec\u200bd\u2028e\udb40\udc41"`,
  )
  expect(jsonText('a\u3164b\uFE0Fc\u{E0101}')).toBe(String.raw`"a\u3164b\ufe0fc\udb40\udd01"`)
  expect(jsonText({ a: 1 }, 2)).toBe('{\n  "a": 1\n}')
})
