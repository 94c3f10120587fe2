/**
 * Hostile text made harmless to look at: what is left of it can be seen, and nothing it holds moves
 * a cursor, hides, reverses or stacks the text around it. Markup is the sinks' to escape.
 */

const lineBreaks = /\r\n?|[\n\v\f\u0085\u2028\u2029]/gu
const spaces = /[\t\p{Z}]/gu
/** Control, format (zero-width, bidi, tag), other ignorable characters (variation selectors, fillers). */
const unseen = /(?!\n)[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}]/gu
/** Marks piled on one letter reach over the lines around it. */
const piledMarks = /(\p{M}{4})\p{M}+/gu

/**
 * One line of at most `maxLength` code points, the ellipsis included: no line break, control,
 * zero-width, bidi or tag character, no lone surrogate, single spaces, trimmed. Idempotent.
 */
export function cleanLine(text: string, maxLength: number): string {
  return cutText(visible(text).replace(/\s+/gu, ' ').trim(), maxLength)
}

/**
 * As `cleanLine`, but single newlines stay; what is cut is counted:
 * "the text (… 12 more characters)", at most `maxLength` code points in all.
 */
export function cleanBlock(text: string, maxLength: number): string {
  const lines = visible(text)
    .split('\n')
    .map((line) => line.replace(/\s+/gu, ' ').trim())
  return cutCounting(lines.filter((line) => line !== '').join('\n'), maxLength)
}

/** At most `maxLength` code points, the last an ellipsis where something was cut. */
export function cutText(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text
  const characters = Array.from(text)
  if (characters.length <= maxLength) return text
  return `${characters
    .slice(0, maxLength - 1)
    .join('')
    .trimEnd()}…`
}

/** At most `maxLength` code points; a cut says how much is missing where there is room to say it. */
export function cutCounting(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text
  const characters = Array.from(text)
  if (characters.length <= maxLength) return text
  const room = maxLength - ` (… ${characters.length} more characters)`.length
  if (room < 1) return cutText(text, maxLength)
  const kept = characters.slice(0, room).join('').trimEnd()
  return `${kept} (… ${characters.length - room} more characters)`
}

function visible(text: string): string {
  return text
    .toWellFormed()
    .replace(lineBreaks, '\n')
    .replace(spaces, ' ')
    .replace(unseen, '')
    .replace(piledMarks, '$1')
}
