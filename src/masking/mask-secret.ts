/** Stands for a secret of which nothing is shown. */
export const fullMask = '••••'

/** Keeps the first and last character of a secret of six or more, nothing of a shorter one. Idempotent. */
export function maskSecret(secret: string): string {
  const characters = Array.from(secret.trim())
  if (characters.length < 6) return fullMask
  return `${characters[0]}${fullMask}${characters.at(-1)}`
}
