/** Replaces a secret of which nothing is shown. */
export const fullMask = '••••'

/** Masks all but the first and last character; a secret of fewer than six entirely. Idempotent. */
export function maskSecret(secret: string): string {
  const characters = Array.from(secret.trim())
  if (characters.length < 6) return fullMask
  return `${characters[0]}${fullMask}${characters.at(-1)}`
}
