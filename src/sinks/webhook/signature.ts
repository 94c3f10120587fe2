/** Standard Webhooks 1.0.0 signatures: HMAC-SHA256 over `id.timestamp.body`. */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

export interface SignedContent {
  id: string
  /** Seconds since 1970. */
  timestamp: number
  body: string
}

/**
 * Builds the `webhook-signature` header: one `v1,<base64>` per secret, in their order, so that a
 * receiver may hold the old or the new one during a rotation. `whsec_` secrets are base64; any
 * other counts as its UTF-8 bytes. Throws a plain Error, without the secret, for one that cannot be
 * a key.
 */
export function sign({ id, timestamp, body }: SignedContent, secrets: readonly string[]): string {
  const content = `${id}.${timestamp}.${body}`
  return secrets
    .map(
      (secret) => `v1,${createHmac('sha256', signingKey(secret)).update(content).digest('base64')}`,
    )
    .join(' ')
}

/**
 * Standard Webhooks 1.0.0, signature schemes; a shorter key can be guessed. Checked again at each
 * use, because a secret file may have changed since the configuration was checked.
 */
export const leastKeyBytes = 24

/** Keys of the secrets in use: creating one costs more than signing with it. */
const keys = new Map<string, KeyObject>()

/** Rotated secrets are few; beyond this the cache is cleared. */
const maxKeys = 32

function signingKey(secret: string): KeyObject {
  const known = keys.get(secret)
  if (known) return known
  if (keys.size >= maxKeys) keys.clear()
  const bytes = secretBytes(secret)
  if (bytes.length < leastKeyBytes) throw new Error('a signing secret is too short for a key')
  const key = createSecretKey(bytes)
  keys.set(secret, key)
  return key
}

/** Throws as `sign` does. */
export function secretBytes(secret: string): Buffer {
  if (!secret.startsWith('whsec_')) return Buffer.from(secret, 'utf8')
  const encoded = secret.slice('whsec_'.length)
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) {
    throw new Error('a signing secret begins with whsec_ but does not go on in base64')
  }
  return Buffer.from(encoded, 'base64')
}
