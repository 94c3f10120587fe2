/** Takes secrets out of text that came from outside before it enters a message. */
const secretShapes: [RegExp, string][] = [
  [/\b(Bearer|Basic)\s+[^\s"',<>]+/gi, '$1 <secret>'],
  [/\bfw_[\w.-]+/g, '<secret>'], // API keys
  [/\beyJ[\w-]{8,}(\.[\w-]+)*/g, '<secret>'], // JSON web tokens
  [/\/\/[^\s/@]+@/g, '//<secret>@'], // user and password of a URL
]

/** `text` without any of `secrets`, and without what has the shape of a key or token. */
export function scrub(text: string, secrets: readonly string[]): string {
  let clean = text
  for (const secret of secrets) {
    if (secret === '') continue
    clean = clean.replaceAll(secret, '<secret>').replaceAll(encodeURIComponent(secret), '<secret>')
  }
  for (const [shape, replacement] of secretShapes) clean = clean.replaceAll(shape, replacement)
  return clean
}
