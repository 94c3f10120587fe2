/**
 * The credentials of one identifier, and of the whole tenant; the API filters neither by time.
 *
 * Nobody states by what they are ordered (docs/api-notes.md, Cursors and order). So each poll reads
 * both ends: from the start to a page whose items are all known, and on from the last cursor. The
 * rescan, a full scan, finds what comes in between.
 */
import type { ThreatEvent } from '../../event.ts'
import { cut, maskIdentity, maskKnown, withholdIn, withholdName } from '../../masking/masking.ts'
import type { Scan } from '../../store/feed-state.ts'
import { credentialOperations } from '../../upstream/resources/credentials.ts'
import { parseTimestamp } from '../../upstream/timestamps.ts'
import type { CredentialsFeedConfig } from './credentials-config.ts'
import type { ClearPair, FeedType, ParsedFeedItem } from './feed-type.ts'
import {
  createFieldReader,
  type FieldReader,
  firstPresent,
  readId,
  isJsonObject,
  type JsonObject,
} from './field-reader.ts'

/** What a scan knows of the far end of the list. */
interface EndNotes {
  /** A scan has read the list to its end; audits ask. */
  hasCompleted: boolean
  /** The scan reads on from the end. */
  isAtEnd: boolean
  /** The last cursor of the list; null: none is known, so the scan from the start reads all. */
  end: string | null
}

function readNotes({ notes }: Scan): EndNotes {
  return { hasCompleted: false, isAtEnd: false, end: null, ...notes }
}

const readByBothEnds: NonNullable<FeedType<unknown>['unordered']> = {
  note(scan, isEnd) {
    return isEnd ? { hasCompleted: true, isAtEnd: true, end: scan.cursor } : { ...readNotes(scan) }
  },
  endsWhenKnown: isBeforeEnd,
  nextScan({ scan }) {
    const { isAtEnd, end, hasCompleted } = readNotes(scan)
    const notes = { hasCompleted, isAtEnd: !isAtEnd, end }
    return isAtEnd ? { fromStart: true, notes } : { fromStart: false, cursor: end, notes }
  },
  goesOn: isBeforeEnd,
}

/** Whether the scan has the end of the list to read, once it meets what is known. */
function isBeforeEnd(scan: Scan): boolean {
  const { isAtEnd, end } = readNotes(scan)
  return !isAtEnd && end !== null
}

export const credentialsFeed: FeedType<CredentialsFeedConfig> = {
  pageSize: 20, // the service's default; no maximum is published (docs/api-notes.md, Page sizes)
  fingerprintParts: ({ identifier }) => [identifier],
  body: (_feed, _span, size) => ({ size }),
  async fetch({ identifier, tier }, { client, scan, slot, signal }) {
    const page = { from: scan.cursor, size: Number(scan.body['size']) }
    const asked = { slot, tier, signal }
    if (identifier === undefined) {
      const request = { order_type: 'asc', ...page } as const
      return client.call(credentialOperations.tenantFeed, request, asked)
    }
    return client.call(credentialOperations.feed, { identifier_id: identifier, ...page }, asked)
  },
  parse: parseCredential,
  unordered: readByBothEnds,
}

/** Limits of a stored credential: code units, or counts. */
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

/**
 * Parses one record of a credential feed or search. Never throws. Only the id is required: every
 * other field has a fallback, and the event names the fields that could not be read. Bounded: 500
 * characters a value, 20 domains, 20 tags; cut text ends in "…". The secret is masked wherever it
 * occurs literally (from 4 characters on), as is whatever follows the login in an identity
 * (`user:secret`). The API gives a credential no severity, so its feed's is used. A secret of more
 * than 1,000 characters identifies a pair, and is not kept.
 */
export function parseCredential(
  raw: unknown,
  { severity }: Pick<CredentialsFeedConfig, 'severity'>,
): ParsedFeedItem {
  if (!isJsonObject(raw)) return { ok: false, uid: null, problem: 'item: it is no object' }
  const id = readId(raw['id'])
  if (id === null) {
    const problem = 'id: it is no whole number from 0 to 2^53, no digits and no UUID'
    return { ok: false, uid: null, problem }
  }
  const reader = createFieldReader()
  const fields = readCredentialFields(raw, reader)
  const [secret = null] = fields.texts.password
  const event = toEvent(`credential/${id}`, fields, maskKnown(findSecrets(raw['hash'])))
  return {
    ok: true,
    event: { ...event, severity, ...reader.unread() },
    secret: (secret ?? '').length > limits.secret ? null : secret,
    pair: buildPair(event.source, fields.texts, secret),
  }
}

/**
 * Returns null without login or secret, which would merge unrelated credentials; the domain may be
 * unknown.
 */
function buildPair(
  source: string,
  { identity_name: [identity], domain: [domain = ''] }: CredentialFields['texts'],
  secret: string | null,
): ClearPair | null {
  if (identity === undefined || secret === null) return null
  return { parts: [domain.toLowerCase(), identity.trim().toLowerCase(), secret], source }
}

type CredentialFields = ReturnType<typeof readCredentialFields>

function readCredentialFields(raw: JsonObject, reader: FieldReader) {
  const source = readSource(raw, reader)
  const timeText = (
    field: 'imported_at' | 'breached_at' | 'leaked_at',
    value: unknown,
  ): string[] => {
    reader.time(field, value)
    return typeof value === 'string' ? nonEmpty(value) : []
  }
  return {
    source: reader.text('source', firstPresent(source['id'], raw['source_id'])) ?? '',
    importedAtMs: reader.time('imported_at', raw['imported_at']),
    ignoredAtMs: reader.time('ignored_at', raw['ignored_at']),
    remediatedAtMs: reader.time('remediated_at', raw['remediated_at']),
    /** The names under which `messages/types/describe-credentials.ts` looks for them. */
    texts: {
      identity_name: nonEmpty(reader.text('identity_name', raw['identity_name'])),
      domain: nonEmpty(reader.text('domain', raw['domain'])),
      'source.name': nonEmpty(reader.text('source', source['name'])),
      imported_at: timeText('imported_at', raw['imported_at']),
      password: nonEmpty(readLeakedSecret(raw['hash'], reader)),
      hash_type: nonEmpty(reader.text('hash_type', raw['hash_type'])),
      'source.breached_at': timeText('breached_at', source['breached_at']),
      'source.leaked_at': timeText('leaked_at', source['leaked_at']),
      auth_domains: reader.texts('auth_domains', raw['auth_domains'], limits.authDomains),
      'source.pii_tags': reader.texts('pii_tags', source['pii_tags'], limits.piiTags),
      event_uid: nonEmpty(reader.text('event_uid', raw['event_uid'])),
    },
  }
}

/** A source that is no object is used as its id and its name. */
function readSource({ source }: JsonObject, reader: FieldReader): JsonObject {
  return typeof source === 'string' || typeof source === 'number'
    ? { id: source, name: source }
    : reader.object('source', source)
}

/**
 * Reads only text or a number: in a secret of several parts it is unknown which one is the secret.
 */
function readLeakedSecret(value: unknown, reader: FieldReader): string | null {
  const isOne = typeof value === 'string' || typeof value === 'number'
  if (!isOne && value !== undefined && value !== null) reader.note('hash')
  return isOne ? String(value) : null
}

/** The parts of the secret that can be recognised elsewhere, whatever its form. */
function findSecrets(hash: unknown, depth = 0): string[] {
  if (typeof hash === 'string' || typeof hash === 'number') return [String(hash)]
  if (typeof hash !== 'object' || hash === null || depth === limits.secretDepth) return []
  const parts = Object.values(hash).flatMap((part: unknown) => findSecrets(part, depth + 1))
  return parts.slice(0, limits.secretParts)
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
    source: cut(withholdName(mask(fields.source)), limits.source),
    originalSeverity: null,
    createdAtMs: fields.importedAtMs,
    matchedAtMs: null,
    ignoredAtMs: fields.ignoredAtMs,
    remediatedAtMs: fields.remediatedAtMs,
    url: null,
    tags: [],
    notes: null,
    identifiers: [],
    highlights: buildHighlights(fields, mask),
  }
}

function buildHighlights(
  { texts }: CredentialFields,
  mask: (text: string) => string,
): ThreatEvent['highlights'] {
  const read = Object.entries(texts)
    .map(([name, values]): [string, string[]] => [
      name,
      values.flatMap((text) => maskAndCut(text, fieldMask(name, mask))),
    ])
    .filter(([, values]) => values.length > 0)
  const shown = withholdIn(Object.fromEntries(read))
  return Object.fromEntries(
    Object.entries(shown).map(([name, values]) => [
      name,
      // mark tags within mark tags may have split the secret until now
      values.map((text) => cut(fieldMask(name, mask)(text), limits.text)),
    ]),
  )
}

/** Returns how the known secret is masked in the field `name`, in addition to `withholdIn`. */
function fieldMask(name: string, mask: (text: string) => string): (text: string) => string {
  if (name === 'password') return (text) => text // masked as a whole, by its name
  if (name === 'identity_name') return (text) => maskIdentity(mask(text))
  // a year is a common password, and a time is no place for one
  if (name.endsWith('_at')) return (text) => (parseTimestamp(text) === null ? mask(text) : text)
  return mask
}

/** Masks before cutting: the first half of a secret cut in two would not be recognised. */
function maskAndCut(text: string, mask: (text: string) => string): string[] {
  return nonEmpty(text).map((whole) => cut(mask(whole), limits.textRead))
}

function nonEmpty(text: string | null): string[] {
  return text === null || text.trim() === '' ? [] : [text]
}
