/** Secrets that whoever wants to guess them guesses first. */

const placeholders = [
  /^(?:change|replace).?(?:me|it|this)/i,
  /^(?:your|example|insert|todo)\b/i,
  /^(?:(?:my|the)?.?(?:secret|password|passw0rd|key|token)|default|test|admin|redis|tocsin|foobared|x{3,})[\W\d]{0,8}$/i,
]

/**
 * Counted as the entropy of the text's own letters, which is less than what was drawn where a text is short: ten
 * random letters of base64 come to about 32 bits, twelve to 40, sixteen hexadecimal digits to 50.
 */
const leastBits = 32

/** More than a key needs; what is longer is as strong as its beginning, at least. */
const mostLetters = 256

/** Why a secret is weak, without a word of it; undefined: it is not, or there is none. */
export function weakness(secret: string): string | undefined {
  if (secret === '') return undefined
  const key = secret.startsWith('whsec_')
    ? Buffer.from(secret.slice(6), 'base64').toString('latin1')
    : secret
  const text = key.slice(0, mostLetters)
  if (placeholders.some((placeholder) => placeholder.test(text)))
    return 'a placeholder that everybody guesses'
  if (isPattern(text)) return 'a repetition or a row of characters, which is guessed soon'
  return bitsOf(text) < leastBits
    ? 'short or of few different characters: it can be guessed'
    : undefined
}

/** `abababab`, `changeme-changeme-`, `12345678…`, `aaaaaaaa`: the same again, or mostly neighbours. */
function isPattern(text: string): boolean {
  for (let period = 1; period <= text.length / 2; period += 1) {
    if (text.startsWith(text.slice(period))) return true
  }
  let neighbours = 0
  for (let i = 1; i < text.length; i += 1) {
    if (Math.abs(text.charCodeAt(i) - text.charCodeAt(i - 1)) <= 1) neighbours += 1
  }
  return neighbours > (text.length - 1) * 0.8
}

function bitsOf(text: string): number {
  const counts = new Map<string, number>()
  for (const letter of text) counts.set(letter, (counts.get(letter) ?? 0) + 1)
  const bits = [...counts.values()].map((count) => count * Math.log2(text.length / count))
  return bits.reduce((sum, more) => sum + more, 0)
}
