import type { z } from 'zod'
import { refusal, textField } from './config-fields.ts'
import { isTimeZone } from './time-zone.ts'

const remedy = 'write a name of the zone database, such as Europe/Zurich or UTC'

/** A field that names an IANA time zone; UTC where it is left out. */
export function timeZone(describe: string): z.ZodPrefault<z.ZodType<string>> {
  return textField({
    describe,
    remedy,
    expected: 'a time zone',
    examples: ['Europe/Zurich', 'UTC'],
    parse: (input) => (isTimeZone(input) ? input : refusal('not a time zone', remedy)),
  }).prefault('UTC')
}
