/** Standard Webhooks 1.0.0 signatures: HMAC-SHA256 over `id.timestamp.body`. */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

export interface SignedContent {
  id: string
  /** Seconds since 1970. */
  timestamp: number
  body: string
}

/**
 * Builds the `webhook-signature` header, `v1,<base64>`. A `whsec_` secret is base64; any other counts
 * as its UTF-8 bytes. Throws a plain Error, without the secret, for one that cannot be a key.
 */
export function sign({ id, timestamp, body }: SignedContent, secret: string): string {
  const hmac = createHmac('sha256', signingKey(secret))
  return `v1,${hmac.update(`${id}.${timestamp}.${body}`).digest('base64')}`
}

/**
 * Standard Webhooks 1.0.0, signature schemes; a shorter key can be guessed. Checked again at each
 * use, because a secret file may have changed since the configuration was checked.
 */
export const leastKeyBytes = 24

/** Making a key costs more than a signature. */
const keys = new Map<string, KeyObject>()
const maxKeys = 100

function signingKey(secret: string): KeyObject {
  const known = keys.get(secret)
  if (known) return known
  const bytes = secretBytes(secret)
  if (bytes.length < leastKeyBytes) throw new Error('the signing secret is too short for a key')
  const key = createSecretKey(bytes)
  if (keys.size >= maxKeys) keys.clear()
  keys.set(secret, key)
  return key
}

/** Throws as `sign` does. */
export function secretBytes(secret: string): Buffer {
  if (!secret.startsWith('whsec_')) return Buffer.from(secret, 'utf8')
  const encoded = secret.slice('whsec_'.length)
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) {
    throw new Error('the signing secret begins with whsec_ but does not go on in base64')
  }
  return Buffer.from(encoded, 'base64')
}
