/** How many columns a terminal gives to a text. */

const wide =
  /[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97C\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF01-\uFF60\uFFE0-\uFFE6\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}/u
const without = /\p{M}/u

/** Of text without control characters; two columns for what East Asia writes and for emoji. */
export function widthOf(text: string): number {
  let width = 0
  for (const character of text) width += columnsOf(character)
  return width
}

/** At most `columns` wide, the last column an ellipsis where something was cut. */
export function cutToWidth(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text
  let kept = ''
  let left = columns - 1
  for (const character of text) {
    left -= columnsOf(character)
    if (left < 0) break
    kept += character
  }
  return columns < 1 ? '' : `${kept}…`
}

function columnsOf(character: string): number {
  if (without.test(character)) return 0
  return wide.test(character) ? 2 : 1
}
