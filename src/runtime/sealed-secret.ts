/**
 * Secrets as Redis may keep them: access tokens, and leaked secrets for sinks that reveal. Encrypted, so
 * that neither Redis nor a backup of it shows one. Whoever has the key text opens them; without it they
 * are lost, by design.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'

export interface SecretBox {
  /** `context` names what the secret belongs to, e.g. a uid; it opens under no other. */
  seal(clear: string, context: string): string
  /** undefined for what was sealed under another key or context, was changed, or is no seal at all. */
  open(sealed: string, context: string): string | undefined
  /** 24 hex digits that stand for the parts: the same for the same, and nobody without the key can test a guess. */
  digest(parts: readonly string[]): string
}

/** Of this form and derivation; another one gets another prefix. */
const prefix = 's1.'
const label = 'tocsin sealed secret v1'
const digestLabel = 'tocsin secret digest v1'
/** 96 bits, the nonce that GCM is made for (NIST SP 800-38D, 8.2). */
const nonceBytes = 12
const tagBytes = 16

/**
 * AES-256-GCM under a key derived from `keyText` (the account's API key), which is asked for at each
 * use because its file may change under a running daemon. Where it cannot be read, `seal` throws what
 * it throws and `open` finds nothing.
 */
export function createSecretBox(keyText: () => string): SecretBox {
  let known: { text: string; key: Buffer; digestKey: Buffer } | undefined

  function current(): { key: Buffer; digestKey: Buffer } {
    const text = keyText()
    if (known?.text !== text) {
      known = { text, key: keyFrom(text, label), digestKey: keyFrom(text, digestLabel) }
    }
    return known
  }

  return {
    seal(clear, context) {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', current().key, nonce).setAAD(bytesOf(context))
      const hidden = Buffer.concat([cipher.update(bytesOf(clear)), cipher.final()])
      return prefix + Buffer.concat([nonce, cipher.getAuthTag(), hidden]).toString('base64url')
    },
    open(sealed, context) {
      const bytes = bytesIn(sealed)
      if (bytes === undefined) return undefined
      const nonce = bytes.subarray(0, nonceBytes)
      const tag = bytes.subarray(nonceBytes, nonceBytes + tagBytes)
      const hidden = bytes.subarray(nonceBytes + tagBytes)
      try {
        const options = { authTagLength: tagBytes }
        const decipher = createDecipheriv('aes-256-gcm', current().key, nonce, options)
        decipher.setAAD(bytesOf(context)).setAuthTag(tag)
        return Buffer.concat([decipher.update(hidden), decipher.final()]).toString('utf16le')
      } catch {
        return undefined
      }
    },
    digest(parts) {
      const hmac = createHmac('sha256', current().digestKey)
      return hmac.update(JSON.stringify(parts)).digest('hex').slice(0, 24)
    },
  }
}

function keyFrom(text: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', text, '', purpose, 32))
}

/** UTF-16, because a leaked secret may hold half of a surrogate pair, which UTF-8 would not give back. */
function bytesOf(text: string): Buffer {
  return Buffer.from(text, 'utf16le')
}

/** undefined for what has not the form: Buffer would skip over letters that are not base64. */
function bytesIn(sealed: string): Buffer | undefined {
  const text = sealed.startsWith(prefix) ? sealed.slice(prefix.length) : ''
  const bytes = Buffer.from(text, 'base64url')
  const isWhole = bytes.length >= nonceBytes + tagBytes && bytes.toString('base64url') === text
  return isWhole ? bytes : undefined
}
