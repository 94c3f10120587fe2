import type { z } from 'zod'
import { noSeverity, ownUidPrefixes, type ThreatEvent } from '../../event.ts'
import { cut, withhold, withholdIn, withholdName, withholdTag } from '../../masking/masking.ts'
import {
  eventOperations,
  type GlobalSearchBody,
  type GroupSearchBody,
} from '../../upstream/resources/events.ts'
import type { EventSearchFeedConfig, EventsFeedConfig } from './events-config.ts'
import { bodyWithCursor, type FeedType, type ParsedFeedItem, timeFilter } from './feed-type.ts'
import {
  createFieldReader,
  type FieldReader,
  firstPresent,
  isJsonObject,
  type JsonObject,
  toJsonObject,
} from './field-reader.ts'

/** Events that the tenant watches for, all or some, ascending by creation time. */
export const eventsFeed: FeedType<EventsFeedConfig> = {
  pageSize: 10, // the largest page (docs/api-notes.md, Page sizes)
  fingerprintParts: (feed) => [feed.identifierGroup, feed.identifier, sortedEntries(feed.filters)],
  body({ filters }, span, size) {
    const body: GroupSearchBody = {
      size,
      order: 'asc',
      filters: { ...filters, estimated_created_at: timeFilter(span) },
    }
    return { ...body }
  },
  matchBody({ filters }, span) {
    const body: GroupSearchBody = {
      size: 10,
      order: 'asc',
      filters: { ...filters, materialized_at: timeFilter(span) },
    }
    return { ...body }
  },
  async fetch(feed, { client, scan, slot, signal }) {
    const body = bodyWithCursor<GroupSearchBody>(scan)
    const asked = { slot, tier: feed.tier, signal }
    const { identifierGroup, identifier } = feed
    if (identifierGroup !== undefined) {
      const request = { identifier_group_id: identifierGroup, ...body }
      return client.call(eventOperations.searchGroup, request, asked)
    }
    if (identifier !== undefined) {
      const request = { identifier_id: identifier, ...body }
      return client.call(eventOperations.searchIdentifier, request, asked)
    }
    return client.call(eventOperations.searchTenant, body, asked)
  },
  parse: parseItem,
}

/** Sorted by name, so that the order in the file does not change the request. */
function sortedEntries(filters: object): [string, unknown][] {
  const members: Record<string, unknown> = { ...filters }
  return Object.keys(members)
    .toSorted()
    .map((name) => [name, members[name]])
}

/** Events that a global search finds, ascending by creation time. */
export const eventSearchFeed: FeedType<EventSearchFeedConfig> = {
  pageSize: 10, // the largest page (docs/api-notes.md, Page sizes)
  fingerprintParts: ({ query, filters }) => [sortedEntries(query), sortedEntries(filters)],
  body({ query, filters }, span, size) {
    const body: GlobalSearchBody = {
      query,
      size,
      order: 'asc',
      filters: { ...filters, estimated_created_at: timeFilter(span) },
    }
    return { ...body }
  },
  async fetch(feed, { client, scan, slot, signal }) {
    const body = bodyWithCursor<GlobalSearchBody>(scan)
    return client.call(eventOperations.searchGlobal, body, { slot, tier: feed.tier, signal })
  },
  parse: parseItem,
}

/** Limits of a stored event: code units, or counts. */
const limits = {
  uid: 512,
  type: 100,
  severity: 40,
  url: 2000,
  tags: 100,
  tag: 200,
  notes: 1000,
  identifiers: 100,
  identifierName: 300,
  highlightFields: 20,
  highlightField: 200,
  extracts: 5,
  extract: 500,
  /** How much of an extract is judged: a sign may stand behind what is shown. */
  extractRead: 1800,
} as const

/** The raw values of an item's fields. */
interface ItemFields {
  /** All places of the uid; the first that holds one counts. */
  uid: unknown[]
  type: unknown
  severity: { own: unknown; tenant: unknown }
  createdAt: unknown
  matchedAt: unknown
  ignoredAt: unknown
  remediatedAt: unknown
  url: unknown
  tags: unknown
  notes: unknown
  identifiers: unknown
  highlights: unknown
}

/**
 * Parses one item of a search page. Never throws. Only the uid is required: every other field has a
 * fallback, and the event names the fields that could not be read. Bounded: at most 20 highlight
 * fields of 5 extracts of 500 characters, 100 tags, 100 identifiers, notes of 1,000 characters; cut
 * text ends in "…". Texts that may hold a secret are withheld, mark tags removed. Refuses items whose uid would be
 * ambiguous as a key (too long, control characters, half surrogate pairs) or would pass for
 * Tocsin's own.
 */
export function parseItem(raw: unknown): ParsedFeedItem {
  if (!isJsonObject(raw)) return { ok: false, uid: null, problem: 'item: it is no object' }
  const reader = createFieldReader()
  const fields = locateFields(raw, reader)
  const uid = findUid(fields.uid)
  if (uid === null) return { ok: false, uid: null, problem: 'metadata.uid: there is none' }
  const problem = findUidProblem(uid)
  if (problem !== null) return { ok: false, uid: null, problem }
  return { ok: true, event: toEvent(uid, fields, reader) }
}

function locateFields(item: JsonObject, reader: FieldReader): ItemFields {
  const metadata = toJsonObject(item['metadata'])
  const tenant = reader.object('tenant_metadata', item['tenant_metadata'])
  return {
    uid: [metadata['uid'], item['uid']],
    type: firstPresent(metadata['type'], item['event_type']),
    severity: { own: metadata['severity'], tenant: tenant['severity'] },
    createdAt: metadata['estimated_created_at'],
    matchedAt: metadata['matched_at'],
    ignoredAt: tenant['ignored_at'],
    remediatedAt: tenant['remediated_at'],
    url: metadata['flare_url'],
    tags: tenant['tags'],
    notes: tenant['notes'],
    identifiers: item['identifiers'],
    highlights: item['highlights'],
  }
}

function toEvent(uid: string, fields: ItemFields, reader: FieldReader): ThreatEvent {
  const [index = '', source = ''] = uid.split('/')
  const type = readWord(reader.text('type', fields.type)?.trim() || index, limits.type)
  const event: ThreatEvent = {
    uid,
    kind: 'event',
    type,
    source,
    ...readSeverities(fields, reader),
    createdAtMs: reader.time('estimated_created_at', fields.createdAt),
    matchedAtMs: reader.time('matched_at', fields.matchedAt),
    ignoredAtMs: reader.time('ignored_at', fields.ignoredAt),
    remediatedAtMs: reader.time('remediated_at', fields.remediatedAt),
    url: readUrl(fields.url, reader),
    tags: reader.texts('tags', fields.tags, limits.tags).map((tag) => readWord(tag, limits.tag)),
    notes: readEventNotes(fields.notes, reader),
    identifiers: readIdentifiers(fields.identifiers, reader),
    highlights: readHighlights(fields.highlights, uid, reader),
  }
  return { ...event, ...reader.unread() }
}

/** Reads text that should be a word but may be anything. */
function readWord(text: string, most: number): string {
  return cut(withholdTag(cut(text, limits.extractRead)), most)
}

function readEventNotes(value: unknown, reader: FieldReader): string | null {
  const notes = reader.texts('notes', value, limits.extracts).join('\n')
  return notes === '' ? null : cut(withhold(cut(notes, limits.extractRead)), limits.notes)
}

/**
 * The tenant's override counts first, then the severity given to the tenant, then the item's own.
 * If the one that counts cannot be read, the severity is unknown and ranks as critical.
 */
function readSeverities(
  { severity: { own, tenant } }: ItemFields,
  reader: FieldReader,
): Pick<ThreatEvent, 'severity' | 'originalSeverity'> {
  const isSplit = isJsonObject(tenant) && ('override' in tenant || 'original' in tenant)
  const override = reader.severity(isSplit ? tenant['override'] : tenant)
  const stated = [reader.severity(isSplit ? tenant['original'] : null), reader.severity(own)]
  const original = stated.find(({ word }) => word !== null)?.word ?? null
  const word = override.isReadable ? (override.word ?? original) : null
  const severity = word === null ? noSeverity : readWord(word, limits.severity)
  const shown = original && readWord(original, limits.severity)
  return { severity, originalSeverity: shown === severity ? null : shown }
}

function readIdentifiers(value: unknown, reader: FieldReader): ThreatEvent['identifiers'] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) reader.note('identifiers')
  const values: unknown[] = Array.isArray(value) ? value.slice(0, limits.identifiers) : []
  return values.flatMap((one) => {
    const members = toJsonObject(one)
    const id = readIdentifierId(members['id'])
    const name = reader.text('identifiers', members['name'])?.trim() || (id ? String(id) : '')
    if (id === null || name === '') reader.note('identifiers')
    return name === ''
      ? []
      : [
          {
            id: id ?? 0,
            name: cut(withholdName(cut(name, limits.extractRead)), limits.identifierName),
          },
        ]
  })
}

function readIdentifierId(value: unknown): number | null {
  const id = typeof value === 'string' && /^\d{1,16}$/u.test(value) ? Number(value) : value
  return typeof id === 'number' && Number.isSafeInteger(id) ? id : null
}

function readHighlights(
  value: unknown,
  uid: string,
  reader: FieldReader,
): Record<string, string[]> {
  const limited = Object.entries(reader.object('highlights', value))
    .slice(0, limits.highlightFields)
    .map(([field, extracts]): [string, string[]] => [
      cut(field, limits.highlightField),
      reader
        .texts('highlights', extracts, limits.extracts)
        .map((extract) => cut(extract, limits.extractRead)),
    ])
    .filter(([, extracts]) => extracts.length > 0)
  const shown = withholdIn(Object.fromEntries(limited), uid)
  return Object.fromEntries(
    Object.entries(shown).map(([field, extracts]) => [
      field,
      extracts.map((extract) => cut(extract, limits.extract)),
    ]),
  )
}

function readUrl(value: unknown, reader: FieldReader): string | null {
  const text = reader.text('flare_url', value)?.trim() ?? ''
  if (text === '') return null
  const url = URL.parse(text)
  const isLink = url !== null && /^https?:/u.test(url.protocol)
  if (isLink && `${url.username}${url.password}` === '' && url.href.length <= limits.url) {
    return url.href
  }
  reader.note('flare_url')
  return null
}

function findUid(values: readonly unknown[]): string | null {
  for (const value of values) {
    if (typeof value === 'string' && value !== '') return value
    if (Number.isSafeInteger(value)) return String(value)
  }
  return null
}

function findUidProblem(uid: string): string | null {
  if (uid.length > limits.uid)
    return `metadata.uid: ${uid.length} characters, more than the ${limits.uid} that are taken`
  if (!uid.isWellFormed()) return 'metadata.uid: holds half of a surrogate pair'
  if (/\p{Cc}/u.test(uid)) return 'metadata.uid: holds control characters'
  return Object.values(ownUidPrefixes).some((prefix) => uid.startsWith(prefix))
    ? "metadata.uid: this uid is reserved for Tocsin's own messages"
    : null
}

const maxProblemLength = 300

/**
 * The first validation error, without any value: `tenant_metadata.tags.3: Invalid input: expected
 * string, …`.
 */
export function itemProblem(error: z.ZodError): string {
  const issue = error.issues[0]
  const path = issue === undefined ? '' : issue.path.map(String).join('.')
  const problem = `${path === '' ? 'item' : path}: ${issue?.message ?? 'not readable'}`
  return cut(problem.replaceAll(/\p{Cc}/gu, ' '), maxProblemLength)
}
