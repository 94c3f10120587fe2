import { escaped } from '../../runtime/escaped.ts'
import { jsonText } from '../json-text.ts'

/** No glyph, another space than the usual one, or a mark too many on one letter. */
const unseen =
  /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}|(?<=\p{M}{4})\p{M}/gu
const atItsEnds = /^["\s]|\s$/u

/**
 * A secret on one line of a terminal, nothing of it lost: as it is, or between quotes as JSON has it where
 * it would not be seen as it is.
 */
export function revealed(secret: string): string {
  const isPlain = secret.search(unseen) === -1 && !atItsEnds.test(secret)
  return isPlain ? secret : escaped(jsonText(secret), unseen)
}
