/** Secrets that whoever wants to guess them guesses first. */

/** What stands before the rest of an example, whatever that is. */
const ofExamples = /^(?:change|replace).?(?:me|it|this)|^(?:your|example|insert|todo)\b/i

/** None of them is made of others, so that a text has one reading and matching takes linear time. */
const words =
  'my|the|your|our|please|change|replace|insert|put|me|it|this|with|for|here|now|some|very|long|random|string|' +
  'value|text|example|sample|placeholder|dummy|default|test|demo|secret|password|pass|passphrase|key|token|api|' +
  'webhook|signing|shared|auth|redis|slack|tocsin|admin|root|user|login|foobared|qwerty|uiop|letmein|welcome|a'
const isOfWords = new RegExp(`^(?:${words})+$`)

/** `my-secret`, `ChangeMe2024`, `P@ssw0rd!`: such words, and no more than as much of digits and signs. */
function isPlaceholder(text: string): boolean {
  if (ofExamples.test(text) || /^x{3,}\W*$/i.test(text)) return true
  const plain = text.replaceAll('0', 'o').replaceAll('@', 'a').replaceAll('$', 's')
  return [text, plain].some((form) => {
    const letters = form.replaceAll(/[^a-z]/gi, '').toLowerCase()
    return letters.length >= form.length / 2 && isOfWords.test(letters)
  })
}

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
  if (isPlaceholder(text)) return 'a placeholder that everybody guesses'
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
