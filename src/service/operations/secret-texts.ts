/** Parts of names that say that a secret follows. */
const secretNames =
  /passw(?:or)?d|passphrase|passcode|pwd|secret|token|apikey|accesskey|privatekey|cookie|hash/i

/** The texts and numbers in a request body that may stand in no message, told by the names above them. */
export function secretTexts(value: unknown, isSecret = false): string[] {
  if (typeof value === 'string' || typeof value === 'number') return isSecret ? [String(value)] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    secretTexts(inner, isSecret || secretNames.test(name.replaceAll(/[^a-z]/gi, ''))),
  )
}
