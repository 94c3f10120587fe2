/** Whatever `characters` finds, as JSON escapes it. */
export function escaped(text: string, characters: RegExp): string {
  return text.replace(characters, (found) =>
    Array.from({ length: found.length }, (_none, at) => {
      const unit = found.charCodeAt(at).toString(16)
      return `\\u${unit.padStart(4, '0')}`
    }).join(''),
  )
}
