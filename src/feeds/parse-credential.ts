import type { Severity } from '../events/severity.ts'
import type { ThreatEvent } from '../events/threat-event.ts'
import { parseTimestamp } from '../service/timestamps.ts'
import { wireCredential, type WireCredential } from '../service/wire/credentials.ts'
import { itemProblem } from './item-problem.ts'
import { maskKnown } from './mask-known.ts'
import { cut, maskHighlights } from './mask-secrets.ts'
import { maskIdentity } from './mask-text.ts'

/** What a stored credential holds at most, in code units where not in number. */
const limits = {
  source: 200,
  text: 500,
  textRead: 4000,
  authDomains: 20,
  piiTags: 20,
  /** Longer than any password that a person types: what is longer is no use in a message. */
  secret: 1000,
} as const

export type ParsedCredential =
  | {
      ok: true
      /** Its values stand in `highlights`, under the service's names, the secret masked as `password`. */
      event: ThreatEvent
      /**
       * The leaked secret in clear, or as it was hashed: for sealing, never stored. null where there is
       * none, and for one of more than 1,000 characters, which is shown masked everywhere.
       */
      secret: string | null
      /** The same whatever its length: only for the keyed digest by which a pair is recognised. */
      wholeSecret: string | null
      /** As the service writes it, in whole: with the whole secret what a pair is recognised by; not for display. */
      identity: string | null
      domain: string | null
    }
  /** `uid` where a usable one could be read; `problem` names the field and holds no value of it. */
  | { ok: false; uid: string | null; problem: string }

/**
 * One record of a credential feed or search, as understood. Never throws. Bounded: 500 characters a
 * value, 20 domains, 20 tags; what is cut ends in "…". The secret is masked wherever it literally stands
 * (from 4 characters on), as is whatever follows the login in an identity (`user:secret`). The API gives a credential no severity: its feed's counts.
 */
export function parseCredential(raw: unknown, severity: Severity): ParsedCredential {
  const parsed = wireCredential.safeParse(raw)
  if (!parsed.success) return { ok: false, uid: uidIn(raw), problem: itemProblem(parsed.error) }
  const wire = parsed.data
  const wholeSecret = presentText(wire.hash)
  return {
    ok: true,
    event: toEvent(wire, severity),
    secret: (wholeSecret?.length ?? 0) > limits.secret ? null : wholeSecret,
    wholeSecret,
    identity: presentText(wire.identity_name),
    domain: presentText(wire.domain),
  }
}

function toEvent(wire: WireCredential, severity: Severity): ThreatEvent {
  const mask = maskKnown(typeof wire.hash === 'string' ? [wire.hash] : [])
  return {
    uid: uidOf(wire.id),
    kind: 'credential',
    type: 'credential',
    source: cut(mask(String(wire.source?.id ?? wire.source_id ?? '')), limits.source),
    severity,
    originalSeverity: null,
    createdAtMs: timeOf(wire.imported_at),
    matchedAtMs: null,
    ignoredAtMs: timeOf(wire.ignored_at),
    remediatedAtMs: timeOf(wire.remediated_at),
    url: null,
    tags: [],
    notes: null,
    identifiers: [],
    highlights: highlightsOf(wire, mask),
  }
}

/** The names under which `messages/describe-credentials.ts` looks for them. */
function highlightsOf(
  wire: WireCredential,
  mask: (text: string) => string,
): ThreatEvent['highlights'] {
  const { source } = wire
  const values: Record<string, readonly (string | null | undefined)[]> = {
    identity_name: [wire.identity_name],
    domain: [wire.domain],
    'source.name': [source?.name],
    imported_at: [wire.imported_at],
    password: [wire.hash],
    hash_type: [wire.hash_type],
    'source.breached_at': [source?.breached_at],
    'source.leaked_at': [source?.leaked_at],
    auth_domains: (wire.auth_domains ?? []).slice(0, limits.authDomains),
    'source.pii_tags': (source?.pii_tags ?? []).slice(0, limits.piiTags),
  }
  const read = Object.entries(values)
    .map(([name, texts]): [string, string[]] => [
      name,
      texts.flatMap((text) => readable(text, maskingOf(name, mask))),
    ])
    .filter(([, texts]) => texts.length > 0)
  const masked = maskHighlights(Object.fromEntries(read), true)
  return Object.fromEntries(
    Object.entries(masked).map(([name, texts]) => [
      name,
      // once more: only now is what mark tags within mark tags had split whole
      texts.map((text) => cut(maskingOf(name, mask)(text), limits.text)),
    ]),
  )
}

/** How the known secret goes from the field `name`, whatever the masks of `maskHighlights` see there. */
function maskingOf(name: string, mask: (text: string) => string): (text: string) => string {
  if (name === 'password') return (text) => text // masked as a whole, by its name
  if (name === 'identity_name') return (text) => maskIdentity(mask(text))
  // a year is a common password, and a time is no place for one
  if (name.endsWith('_at')) return (text) => (parseTimestamp(text) === null ? mask(text) : text)
  return mask
}

/** Masked before it is cut: of a secret that were cut in two, the first half would not be known. */
function readable(text: string | null | undefined, mask: (text: string) => string): string[] {
  const present = presentText(text)
  return present === null ? [] : [cut(mask(present), limits.textRead)]
}

function presentText(text: string | null | undefined): string | null {
  return text === undefined || text === null || text.trim() === '' ? null : text
}

function timeOf(text: string | null | undefined): number | null {
  return text ? parseTimestamp(text) : null
}

const onlyId = wireCredential.pick({ id: true })

function uidIn(raw: unknown): string | null {
  const read = onlyId.safeParse(raw)
  return read.success ? uidOf(read.data.id) : null
}

function uidOf(id: number): string {
  return `credential/${id}`
}
