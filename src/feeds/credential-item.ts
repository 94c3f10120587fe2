import type { PairDedupe } from './config.ts'
import type { CredentialLikeness, ParsedFeedItem } from './feed-type.ts'
import { parseCredential, type ParsedCredential } from './parse-credential.ts'

/** One leaked credential as its feed takes it: severity and recognition are the feed's. */
export function credentialItem(
  raw: unknown,
  { severity, dedupe }: { severity: string; dedupe: PairDedupe | undefined },
): ParsedFeedItem {
  const parsed = parseCredential(raw, severity)
  if (!parsed.ok) return parsed
  const { event, secret } = parsed
  return { ok: true, event, secret, pair: dedupe ? pairOf(parsed, dedupe) : null }
}

/** Without login or secret a pair would make one of much that is not; a domain may be unknown. */
function pairOf(
  { event, identity, wholeSecret, domain }: ParsedCredential & { ok: true },
  { by, forMs, isSentAgain }: PairDedupe,
): CredentialLikeness | null {
  const values = {
    identity: identity?.trim().toLowerCase(),
    secret: wholeSecret,
    domain: domain?.toLowerCase() ?? '',
  }
  const named = by.toSorted().map((name): [string, string | null] => [name, values[name] ?? null])
  if (named.some(([, value]) => value === null)) return null
  // as JSON, because leaked text may hold whatever would separate one part from the next
  return {
    parts: named.map((part) => JSON.stringify(part)),
    source: event.source,
    forMs,
    isSentAgain,
  }
}
