import type { z } from 'zod'
import { refusal, textField } from './config-fields.ts'

const unitBytes: Record<string, number> = {
  B: 1,
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
}

/** A size as text; bytes. `least` is one too, e.g. `1MiB`. */
export function size(describe: string, least: string): z.ZodType<number> {
  const remedy = 'write a number and its unit, such as 500MB or 1GiB'
  return textField({
    describe,
    remedy,
    expected: 'a size',
    examples: ['500MB', '1GiB'],
    parse: (input) => {
      const value = bytesIn(input)
      if (value === undefined) return refusal('not a size', remedy)
      return value < (bytesIn(least) ?? 0) ? refusal('too small', `write ${least} or more`) : value
    },
  })
}

function bytesIn(input: string): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,6}(?:\.\d{1,3})?) ?([kKMGT]?i?B)$/.exec(input) ?? []
  const factor = Object.hasOwn(unitBytes, unit) ? unitBytes[unit] : undefined
  return factor === undefined ? undefined : Math.floor(Number(amount) * factor)
}
