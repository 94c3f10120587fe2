/** The receiving side of Standard Webhooks 1.0.0: what a careful receiver checks. */
import { createHmac, timingSafeEqual } from 'node:crypto'

export interface Signed {
  id: string
  /** Seconds since 1970, as sent. */
  timestamp: string
  signature: string
  body: Buffer
}

export interface VerifyOptions {
  /** `whsec_` and base64. */
  secret: string
  nowMs: number
  toleranceMs: number
}

/** Why the message is refused; null: it is authentic and fresh. */
export function signatureFault(signed: Signed, options: VerifyOptions): string | null {
  if (signed.id === '' || !/^\d+$/.test(signed.timestamp)) return 'missing webhook headers'
  const ageMs = Math.abs(options.nowMs - Number(signed.timestamp) * 1000)
  if (ageMs > options.toleranceMs) return 'timestamp out of tolerance'
  const expected = signatureOf(signed, options.secret)
  const isKnown = signed.signature.split(' ').some((part) => {
    const [version, value = ''] = part.split(',')
    return version === 'v1' && isSame(Buffer.from(value, 'base64'), expected)
  })
  return isKnown ? null : 'no matching signature'
}

function signatureOf({ id, timestamp, body }: Signed, secret: string): Buffer {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
}

function isSame(left: Buffer, right: Buffer): boolean {
  return left.length === right.length && timingSafeEqual(left, right)
}
