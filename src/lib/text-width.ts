/** How many columns a text takes where each character has a fixed place, and how it is folded. */

const wideCharacter =
  /[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97C\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF01-\uFF60\uFFE0-\uFFE6\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}/u
const zeroWidthCharacter = /\p{M}/u

/**
 * Columns that a text without control characters takes; East Asian characters and emoji take two.
 */
export function measureWidth(text: string): number {
  let width = 0
  for (const character of text) width += measureCharacter(character)
  return width
}

function measureCharacter(character: string): number {
  if (zeroWidthCharacter.test(character)) return 0
  return wideCharacter.test(character) ? 2 : 1
}

interface Wrapping {
  /** The prefixes of the first line and of those below it. */
  first?: string
  rest?: string
  /** Words that may be broken where they take more than a line; none unless told. */
  mayBreak?: (word: string) => boolean
}

/** Wraps at `width` columns, at spaces; a word that is wider stands on a line of its own. */
export function wrapText(
  text: string,
  width: number,
  { first = '', rest = '', mayBreak = () => false }: Wrapping = {},
): string[] {
  const room = Math.max(2, width - Math.max(measureWidth(first), measureWidth(rest)))
  const lines: string[] = []
  let line = first
  let isEmpty = true
  for (const word of text.split(' ')) {
    const pieces = mayBreak(word) ? breakWord(word, room) : [word]
    for (const [index, piece] of pieces.entries()) {
      if (index > 0 || (!isEmpty && measureWidth(line) + 1 + measureWidth(piece) > width)) {
        lines.push(line)
        line = rest
        isEmpty = true
      }
      line += isEmpty ? piece : ` ${piece}`
      isEmpty = false
    }
  }
  return [...lines, line]
}

function breakWord(word: string, columns: number): string[] {
  const pieces = ['']
  let used = 0
  for (const character of word) {
    const width = measureCharacter(character)
    if (used + width > columns) {
      pieces.push('')
      used = 0
    }
    pieces[pieces.length - 1] += character
    used += width
  }
  return pieces
}
