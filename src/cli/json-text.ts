/** Invisible, or a line's end to some reader; of controls JSON itself escapes only some. */
const unseen = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** JSON that no terminal acts upon: the same value when it is parsed. */
export function jsonText(value: unknown, indent?: number): string {
  return escaped(JSON.stringify(value, null, indent), unseen)
}

/** Whatever `characters` finds, as JSON escapes it. */
export function escaped(text: string, characters: RegExp): string {
  return text.replace(characters, (found) =>
    Array.from({ length: found.length }, (_none, at) => {
      const unit = found.charCodeAt(at).toString(16)
      return `\\u${unit.padStart(4, '0')}`
    }).join(''),
  )
}
