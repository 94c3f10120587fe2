import { ownUidPrefixes } from '../events/own-feed.ts'
import type { ThreatEvent } from '../events/threat-event.ts'
import { parseTimestamp } from '../service/timestamps.ts'
import { wireSearchItem, type WireSearchItem } from '../service/wire/events.ts'
import { itemProblem } from './item-problem.ts'
import { cut, maskHighlights } from './mask-secrets.ts'
import { maskLogins, maskText } from './mask-text.ts'

/** What a stored event holds at most, in code units where not in number. */
const limits = {
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
  /** What of an extract is read, for the masks to see whole words. */
  extractRead: 4000,
} as const

export type ParsedItem =
  | { ok: true; event: ThreatEvent }
  /** `uid` where a usable one could be read; `problem` names the field and holds no value of it. */
  | { ok: false; uid: string | null; problem: string }

/**
 * One item of a search page, as understood. Never throws. Bounded: at most 20 highlight fields of 5
 * extracts of 500 characters, 100 tags, 100 identifiers, notes of 1,000 characters; what is cut ends
 * in "…". Secrets are masked, mark tags removed. Items that would be ambiguous as a key (a uid too
 * long, with control characters or half characters), or would pass for Tocsin's own, are refused.
 */
export function parseItem(
  raw: unknown,
  { maxUidLength = 512 }: { maxUidLength?: number } = {},
): ParsedItem {
  const parsed = wireSearchItem.safeParse(raw)
  const uid = parsed.success ? parsed.data.metadata.uid : uidIn(raw)
  const uidProblem = uid === null ? null : problemOfUid(uid, maxUidLength)
  if (uidProblem !== null) return { ok: false, uid: null, problem: uidProblem }
  if (!parsed.success) return { ok: false, uid, problem: itemProblem(parsed.error) }
  return { ok: true, event: toEvent(parsed.data) }
}

function toEvent(item: WireSearchItem): ThreatEvent {
  const { metadata, tenant_metadata: tenant } = item
  const [index = '', source = ''] = metadata.uid.split('/')
  const type = cut(metadata.type?.trim() || index, limits.type)
  return {
    uid: metadata.uid,
    kind: 'event',
    type,
    source,
    ...severitiesOf(item),
    createdAtMs: timeOf(metadata.estimated_created_at),
    matchedAtMs: timeOf(metadata.matched_at),
    ignoredAtMs: timeOf(tenant?.ignored_at),
    remediatedAtMs: timeOf(tenant?.remediated_at),
    url: webUrl(metadata.flare_url),
    tags: (tenant?.tags ?? []).slice(0, limits.tags).map(maskedTag),
    notes: tenant?.notes
      ? cut(maskText(cut(tenant.notes, limits.extractRead)), limits.notes)
      : null,
    identifiers: (item.identifiers ?? [])
      .slice(0, limits.identifiers)
      .map(({ id, name }) => ({ id, name: cut(name, limits.identifierName) })),
    highlights: highlightsOf(item, `${type} ${source}`),
  }
}

function maskedTag(tag: string): string {
  return cut(maskLogins(cut(tag, limits.extractRead)), limits.tag)
}

/** The override counts, else what the service gave the tenant, else the item's own; in lower case. */
function severitiesOf(item: WireSearchItem): Pick<ThreatEvent, 'severity' | 'originalSeverity'> {
  const tenant = item.tenant_metadata?.severity
  const original = severityWord(tenant?.original) ?? severityWord(item.metadata.severity)
  const severity = severityWord(tenant?.override) ?? original ?? 'unknown'
  return { severity, originalSeverity: original === severity ? null : original }
}

function severityWord(text: string | null | undefined): string | null {
  const word = text?.trim().toLowerCase() ?? ''
  return word === '' ? null : cut(word, limits.severity)
}

/** `about` tells a combolist or a stealer log, where a bare `user:secret` line is what it looks like. */
function highlightsOf(item: WireSearchItem, about: string): Record<string, string[]> {
  const kept = Object.entries(item.highlights ?? {})
    .slice(0, limits.highlightFields)
    .map(([field, extracts]): [string, string[]] => [
      cut(field, limits.highlightField),
      extracts.slice(0, limits.extracts).map((extract) => cut(extract, limits.extractRead)),
    ])
  const masked = maskHighlights(
    Object.fromEntries(kept),
    /stealer|credential|combo|leak/iu.test(about),
  )
  return Object.fromEntries(
    Object.entries(masked).map(([field, extracts]) => [
      field,
      extracts.map((extract) => cut(extract, limits.extract)),
    ]),
  )
}

function timeOf(text: string | null | undefined): number | null {
  return text ? parseTimestamp(text) : null
}

function webUrl(text: string | null | undefined): string | null {
  const url = text ? URL.parse(text) : null
  if (url === null || !/^https?:$/u.test(url.protocol)) return null
  if (url.username !== '' || url.password !== '') return null
  return url.href.length <= limits.url ? url.href : null
}

function uidIn(raw: unknown): string | null {
  const metadata = memberOf(raw, 'metadata')
  const uid = memberOf(metadata, 'uid')
  return typeof uid === 'string' && uid !== '' ? uid : null
}

function memberOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined
}

function problemOfUid(uid: string, maxLength: number): string | null {
  if (uid.length > maxLength) {
    return `metadata.uid: ${uid.length} characters, more than the ${maxLength} that are taken`
  }
  if (!uid.isWellFormed()) return 'metadata.uid: holds half of a surrogate pair'
  if (/\p{Cc}/u.test(uid)) return 'metadata.uid: holds control characters'
  return Object.values(ownUidPrefixes).some((prefix) => uid.startsWith(prefix))
    ? "metadata.uid: this uid is reserved for Tocsin's own messages"
    : null
}
