/**
 * Secrets as they are stored in Redis: access tokens, and leaked secrets for sinks that reveal.
 * They are encrypted, so that neither Redis nor a backup of it shows one. The key text opens them;
 * without it they are lost, by design.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'

export interface SecretBox {
  /**
   * `context` names what the secret belongs to, e.g. a uid; it opens only with the same context and
   * owner.
   */
  seal(clear: string, context: string): string
  /**
   * Returns undefined if it was sealed under another key, owner or context, was changed, or is not
   * sealed.
   */
  open(sealed: string, context: string): string | undefined
  /**
   * 24 hex digits that stand for the parts: equal parts give equal digests, and nobody without the
   * key can test a guess.
   */
  digest(parts: readonly string[]): string
}

/** The prefix of a stored secret names its form and key derivation. */
const sealForm = { prefix: 's2.', label: 'tocsin sealed secret v2' } as const
const digestLabel = 'tocsin secret digest v1'
/** 96 bits, the nonce that GCM is made for (NIST SP 800-38D, 8.2). */
const nonceBytes = 12
const tagBytes = 16
/**
 * Secrets are padded to multiples of this, so that the length reveals little: passwords take one or
 * two.
 */
const paddedToBytes = 64

/**
 * Encrypts with AES-256-GCM under a key derived from `keyText` (the account's API key), which is
 * called at each use because its file may change under a running daemon. If it throws, `seal`
 * throws the same and `open` returns undefined. `owner` (an account) separates those who share one
 * API key.
 */
export function createSecretBox(keyText: () => string, owner = ''): SecretBox {
  let known: { text: string; keys: Map<string, Buffer> } | undefined

  function keyFor(label: string): Buffer {
    const text = keyText()
    if (known?.text !== text) known = { text, keys: new Map() }
    const key = known.keys.get(label) ?? Buffer.from(hkdfSync('sha256', text, '', label, 32))
    known.keys.set(label, key)
    return key
  }

  /** The authenticated data: what a sealed secret is bound to, besides its key. */
  function boundTo(context: string): Buffer {
    return encodeText(JSON.stringify([owner, context]))
  }

  return {
    seal(clear, context) {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', keyFor(sealForm.label), nonce)
      cipher.setAAD(boundTo(context))
      const hidden = Buffer.concat([cipher.update(pad(encodeText(clear))), cipher.final()])
      const sealed = Buffer.concat([nonce, cipher.getAuthTag(), hidden])
      return sealForm.prefix + sealed.toString('base64url')
    },
    open(sealed, context) {
      if (!sealed.startsWith(sealForm.prefix)) return undefined
      const bytes = decodeBase64(sealed.slice(sealForm.prefix.length))
      if (bytes === undefined) return undefined
      const nonce = bytes.subarray(0, nonceBytes)
      const tag = bytes.subarray(nonceBytes, nonceBytes + tagBytes)
      const hidden = bytes.subarray(nonceBytes + tagBytes)
      try {
        const options = { authTagLength: tagBytes }
        const decipher = createDecipheriv('aes-256-gcm', keyFor(sealForm.label), nonce, options)
        decipher.setAAD(boundTo(context)).setAuthTag(tag)
        const opened = Buffer.concat([decipher.update(hidden), decipher.final()])
        return unpad(opened).toString('utf16le')
      } catch {
        return undefined
      }
    },
    digest(parts) {
      const hmac = createHmac('sha256', keyFor(digestLabel))
      return hmac.update(JSON.stringify(parts)).digest('hex').slice(0, 24)
    },
  }
}

/**
 * One byte 0x80, then zeros (ISO/IEC 7816-4): the end is found again whatever the secret ends with.
 */
function pad(clear: Buffer): Buffer {
  const padded = Buffer.alloc(Math.ceil((clear.length + 1) / paddedToBytes) * paddedToBytes)
  clear.copy(padded)
  padded[clear.length] = 0x80
  return padded
}

function unpad(padded: Buffer): Buffer {
  return padded.subarray(0, padded.lastIndexOf(0x80))
}

/**
 * UTF-16, because a leaked secret may hold half of a surrogate pair, which UTF-8 would not
 * preserve.
 */
function encodeText(text: string): Buffer {
  return Buffer.from(text, 'utf16le')
}

/** Returns undefined for text that is not base64: Buffer would skip invalid letters. */
function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}
