import { createHash, createHmac, createSecretKey } from 'node:crypto'

/** A 64-bit mark as the scripts take it: `m` a signed decimal, `b` 32 other bits that choose among the buckets that a week began with. */
export interface Mark {
  m: string
  b: number
}

/**
 * Identities as keyed digests. Keyed, because whoever controls uids could otherwise look for a collision
 * that hides an event. A mark is compared with at most some 400 of each week that share all bits by which that
 * week chose its first buckets, so over 13 weeks like each other a false "already seen" has a chance of about
 * 3e-16 for each new uid; in a first week, which begins with one bucket, 5e-14 once a million are marked.
 */
export interface Digests {
  /** 24 hex characters that name a record in Redis. */
  recordId(uid: string): string
  seenMark(feed: string, uid: string): Mark
  claimMark(uid: string, severity: string, destination: string): Mark
  malformedMark(feed: string, canonicalJson: string): Mark
  /** What a feed showed from before its floor: its own, so that a floor moved back finds it new. */
  baselineMark(feed: string, uid: string): Mark
}

export function createDigests(keyBytes: Buffer): Digests {
  const key = createSecretKey(keyBytes) // made once: a raw key costs more than the digest

  function digest(...parts: string[]): Buffer {
    return createHmac('sha256', key).update(parts.join('\0')).digest()
  }
  function mark(...parts: string[]): Mark {
    const bytes = digest(...parts)
    return { m: bytes.readBigInt64BE(0).toString(), b: bytes.readUInt32BE(8) }
  }
  return {
    recordId: (uid) => digest('record', uid).toString('hex', 0, 12),
    seenMark: (feed, uid) => mark('seen', feed, uid),
    claimMark: (uid, severity, destination) => mark('claim', uid, severity, destination),
    malformedMark: (feed, canonicalJson) => mark('malformed', feed, canonicalJson),
    baselineMark: (feed, uid) => mark('baseline', feed, uid),
  }
}

/** An item's id, the same on every attempt and for ever: digest of what identifies it. 33 characters. */
export function itemId(
  account: string,
  uid: string,
  severity: string,
  destination: string,
): string {
  const identity = [account, uid, severity, destination].join('\0')
  return `e${createHash('sha256').update(identity).digest('hex').slice(0, 32)}`
}
