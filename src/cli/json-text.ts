import { escaped } from '../runtime/escaped.ts'

/** Invisible, or a line's end to some reader; of controls JSON itself escapes only some. */
const unseen = /(?!\n)[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/gu

/** JSON that no terminal acts upon: the same value when it is parsed. */
export function jsonText(value: unknown, indent?: number): string {
  return escaped(JSON.stringify(value, null, indent), unseen)
}
