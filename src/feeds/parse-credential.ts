import type { Severity } from '../events/severity.ts'
import type { ThreatEvent } from '../events/threat-event.ts'
import { parseTimestamp } from '../service/timestamps.ts'
import {
  createFieldReader,
  firstOf,
  idIn,
  isMembers,
  type FieldReader,
  type Members,
} from './field-reader.ts'
import { cut, maskHighlights, maskIdentity, maskKnown } from './masking.ts'

/** What a stored credential holds at most, in code units where not in number. */
const limits = {
  source: 200,
  text: 500,
  textRead: 4000,
  authDomains: 20,
  piiTags: 20,
  /** Longer than any password that a person types: what is longer is no use in a message. */
  secret: 1000,
  /** Of a secret that came in parts: what is masked elsewhere. */
  secretParts: 100,
  secretDepth: 10,
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
  /** `problem` names the field and holds no value of it. */
  | { ok: false; uid: string | null; problem: string }

/**
 * One record of a credential feed or search, as understood. Never throws. A record needs its id alone:
 * every other field falls back by itself, and the event names those that could not be read. Bounded: 500
 * characters a value, 20 domains, 20 tags; what is cut ends in "…". The secret is masked wherever it
 * literally stands (from 4 characters on), as is whatever follows the login in an identity
 * (`user:secret`). The API gives a credential no severity: its feed's counts.
 */
export function parseCredential(raw: unknown, severity: Severity): ParsedCredential {
  if (!isMembers(raw)) return { ok: false, uid: null, problem: 'item: it is no object' }
  const id = idIn(raw['id'])
  if (id === null) {
    const problem = 'id: it is no whole number from 0 to 2^53, no digits and no UUID'
    return { ok: false, uid: null, problem }
  }
  const reader = createFieldReader()
  const fields = fieldsOf(raw, reader)
  const [wholeSecret = null] = fields.texts.password
  const event = toEvent(`credential/${id}`, fields, maskKnown(secretsAt(raw['hash'])))
  return {
    ok: true,
    event: { ...event, severity, ...reader.unread() },
    secret: (wholeSecret ?? '').length > limits.secret ? null : wholeSecret,
    wholeSecret,
    identity: fields.texts.identity_name[0] ?? null,
    domain: fields.texts.domain[0] ?? null,
  }
}

type CredentialFields = ReturnType<typeof fieldsOf>

function fieldsOf(raw: Members, reader: FieldReader) {
  const source = sourceOf(raw, reader)
  const [imported, breached, leaked] = [
    timeAndText(reader, 'imported_at', raw['imported_at']),
    timeAndText(reader, 'breached_at', source['breached_at']),
    timeAndText(reader, 'leaked_at', source['leaked_at']),
  ]
  return {
    source: reader.text('source', firstOf(source['id'], raw['source_id'])) ?? '',
    importedAtMs: imported.atMs,
    ignoredAtMs: reader.time('ignored_at', raw['ignored_at']),
    remediatedAtMs: reader.time('remediated_at', raw['remediated_at']),
    /** The names under which `messages/describe-credentials.ts` looks for them. */
    texts: {
      identity_name: present(reader.text('identity_name', raw['identity_name'])),
      domain: present(reader.text('domain', raw['domain'])),
      'source.name': present(reader.text('source', source['name'])),
      imported_at: imported.texts,
      password: present(secretIn(raw['hash'], reader)),
      hash_type: present(reader.text('hash_type', raw['hash_type'])),
      'source.breached_at': breached.texts,
      'source.leaked_at': leaked.texts,
      auth_domains: reader.texts('auth_domains', raw['auth_domains'], limits.authDomains),
      'source.pii_tags': reader.texts('pii_tags', source['pii_tags'], limits.piiTags),
    },
  }
}

/** A source that is no object is its id and its name. */
function sourceOf({ source }: Members, reader: FieldReader): Members {
  return typeof source === 'string' || typeof source === 'number'
    ? { id: source, name: source }
    : reader.members('source', source)
}

/** Only as one text, or as digits: of a secret in parts nobody knows which part is one. */
function secretIn(value: unknown, reader: FieldReader): string | null {
  const isOne = typeof value === 'string' || typeof value === 'number'
  if (!isOne && value !== undefined && value !== null) reader.note('hash')
  return isOne ? String(value) : null
}

/** As the service wrote it; a number as the time that it means. */
function timeAndText(
  reader: FieldReader,
  field: 'imported_at' | 'breached_at' | 'leaked_at',
  value: unknown,
): { atMs: number | null; texts: string[] } {
  const atMs = reader.time(field, value)
  if (typeof value === 'string') return { atMs, texts: present(value) }
  return { atMs, texts: atMs === null ? [] : [new Date(atMs).toISOString()] }
}

/** What of the secret can be recognised elsewhere, where it came in an unexpected form. */
export function secretsAt(hash: unknown, depth = 0): string[] {
  if (typeof hash === 'string' || typeof hash === 'number') return [String(hash)]
  if (typeof hash !== 'object' || hash === null || depth === limits.secretDepth) return []
  const parts = Object.values(hash).slice(0, limits.secretParts)
  return parts.flatMap((part: unknown) => secretsAt(part, depth + 1)).slice(0, limits.secretParts)
}

function toEvent(
  uid: string,
  fields: CredentialFields,
  mask: (text: string) => string,
): Omit<ThreatEvent, 'severity'> {
  return {
    uid,
    kind: 'credential',
    type: 'credential',
    source: cut(mask(fields.source), limits.source),
    originalSeverity: null,
    createdAtMs: fields.importedAtMs,
    matchedAtMs: null,
    ignoredAtMs: fields.ignoredAtMs,
    remediatedAtMs: fields.remediatedAtMs,
    url: null,
    tags: [],
    notes: null,
    identifiers: [],
    highlights: highlightsOf(fields, mask),
  }
}

function highlightsOf(
  { texts }: CredentialFields,
  mask: (text: string) => string,
): ThreatEvent['highlights'] {
  const read = Object.entries(texts)
    .map(([name, values]): [string, string[]] => [
      name,
      values.flatMap((text) => readable(text, maskingOf(name, mask))),
    ])
    .filter(([, values]) => values.length > 0)
  const masked = maskHighlights(Object.fromEntries(read), true)
  return Object.fromEntries(
    Object.entries(masked).map(([name, values]) => [
      name,
      // once more: only now is what mark tags within mark tags had split whole
      values.map((text) => cut(maskingOf(name, mask)(text), limits.text)),
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
function readable(text: string, mask: (text: string) => string): string[] {
  return present(text).map((whole) => cut(mask(whole), limits.textRead))
}

function present(text: string | null): string[] {
  return text === null || text.trim() === '' ? [] : [text]
}
