import { maskSecret } from '../events/mask-secret.ts'
import { withoutMarks } from './mask-text.ts'

/** Shorter ones stand in words that have nothing to do with them. */
const leastLength = 4

/**
 * Gives a function that masks these secrets wherever they literally stand in a text, as they are and
 * trimmed, mark tags removed from both. Secrets of fewer than 4 characters are left to the other masks.
 */
export function maskKnown(secrets: readonly string[]): (text: string) => string {
  const forms = secrets
    .flatMap((secret) => [secret, withoutMarks(secret)])
    .flatMap((secret) => [secret, secret.trim()])
    .filter((secret) => secret.length >= leastLength)
    .toSorted((a, b) => b.length - a.length)
  const distinct = [...new Set(forms)]
  return (text) =>
    distinct.reduce(
      (left, secret) => left.replaceAll(secret, () => maskSecret(secret)),
      withoutMarks(text),
    )
}
