/**
 * An event for machines and templates: every field that a receiver may use, cut to what Standard
 * Webhooks asks for.
 */
import { notificationOf, readWords, titleOf } from '../messages/message.ts'
import { sanitizeLine } from '../messages/sanitize.ts'
import type { DeliveryMember } from './sink.ts'

/** Standard Webhooks asks for payloads under 20 KB; the envelope takes less than the difference. */
const maxBodyBytes = 20_000
const maxElementBytes = maxBodyBytes - 200
const maxLinkBytes = 2000

export interface EventData {
  id: string
  /** What, whose and where, as messages to people say it; the summary has the severity in front. */
  title: string
  summary: string
  uid: string
  kind: string
  type: string
  source: string
  severity: string
  original_severity: string | null
  account: string
  /** The tenant that the account is configured for. */
  tenant_id: number | null
  feed: string
  labels: Readonly<Record<string, string>>
  routes: readonly string[]
  identifiers: { id: number; name: string }[]
  tags: string[]
  notes: string | null
  /** What to do about it, by the configuration. */
  next_step: string | null
  /** The event in the upstream web application. */
  url: string | null
  /** The event's page of Tocsin, where one is known. */
  page_url?: string
  /** A link that does not lead upstream: defanged text, `hxxps://evil[.]com`. */
  unverified_link?: string
  /** ISO 8601 UTC, as are the next two. */
  created_at: string | null
  matched_at: string | null
  fetched_at: string
  /** When people ignored or remediated it upstream. */
  ignored_at?: string
  remediated_at?: string
  /** The severity under which this destination got it before. */
  raised_from?: string
  /** A leaked secret in clear: only for a sink that reveals. */
  leaked_secret?: string
  /** Untrusted text, like `detail`, `notes` and `tags`: what leak sites wrote. */
  highlights: Record<string, string[]>
  detail: Record<string, unknown> | null
  /** The full event was asked for but not available in time. */
  detail_unavailable?: true
  /** Fields that could not be read, or only in part. */
  unread_fields?: string[]
  test?: true
  /** Something was cut for size; the whole event is behind `url`. */
  truncated?: true
}

/**
 * Cuts for size, from mild to strict: extracts and detail shortened, then removed, then everything
 * shortened.
 */
const cuts: ((element: EventData) => EventData)[] = [
  ...[bounds(2000, 100), bounds(500, 40), bounds(120, 15)].map((limit) => cutExtracts(limit)),
  (element) => ({ ...element, highlights: {}, detail: null }),
  ...[bounds(500, 20), bounds(120, 10), bounds(40, 5)].map((limit) => cutAll(limit)),
]

/** The JSON of a member, the same on every attempt. */
export function renderEventData(member: DeliveryMember, isTest = false): string {
  const whole = toElement(member, isTest)
  let text = JSON.stringify(whole)
  for (const cut of cuts) {
    if (Buffer.byteLength(text) <= maxElementBytes) break
    text = JSON.stringify({ ...cut(whole), truncated: true })
  }
  return text
}

/** What templates may name: the same fields, and what messages to people make of the event. */
export interface TemplateValues extends EventData {
  /** As `url`. */
  link: string | null
  /** As messages list them: most telling first, defanged. */
  facts: { label: string; value: string }[]
}

/** Says the same on every attempt. */
export function readTemplateValues(
  member: DeliveryMember,
  { isTest = false, timeZone }: { isTest?: boolean | undefined; timeZone?: string | undefined },
): TemplateValues {
  const data = JSON.parse(renderEventData(member, isTest)) as EventData
  const { facts } = readWords(member, { isTest, timeZone })
  return { ...data, link: data.url, facts: facts.map(({ label, value }) => ({ label, value })) }
}

function toElement(member: DeliveryMember, isTest: boolean): EventData {
  const { event, detail, link = null } = member
  const title = titleOf(member, { isTest })
  return {
    id: member.id,
    title,
    summary: notificationOf(event.severity, title),
    uid: event.uid,
    kind: event.kind,
    type: event.type,
    source: event.source,
    severity: event.severity,
    original_severity: event.originalSeverity,
    account: member.account,
    tenant_id: member.tenantId ?? null,
    feed: member.feed,
    labels: member.labels,
    routes: member.routes,
    identifiers: event.identifiers,
    tags: event.tags,
    notes: event.notes,
    next_step: member.guidance?.nextStep ?? null,
    url: link,
    ...(member.pageUrl !== undefined && { page_url: member.pageUrl }),
    ...(link === null &&
      event.url !== null && { unverified_link: sanitizeLine(event.url, maxLinkBytes) }),
    created_at: formatIsoOrNull(event.createdAtMs),
    matched_at: formatIsoOrNull(event.matchedAtMs),
    fetched_at: formatIso(member.fetchedAtMs),
    ...(event.ignoredAtMs !== null && { ignored_at: formatIso(event.ignoredAtMs) }),
    ...(event.remediatedAtMs !== null && { remediated_at: formatIso(event.remediatedAtMs) }),
    ...(member.raisedFrom !== undefined && { raised_from: member.raisedFrom }),
    ...(member.secret !== undefined && { leaked_secret: member.secret }),
    highlights: event.highlights,
    detail: detail === 'unavailable' ? null : (detail ?? null),
    ...(detail === 'unavailable' && { detail_unavailable: true }),
    ...(event.unread && { unread_fields: event.unread }),
    ...(isTest && { test: true }),
  }
}

function bounds(maxCharacters: number, maxEntries: number): Bounds {
  return { maxCharacters, maxEntries }
}

function cutExtracts(limit: Bounds): (element: EventData) => EventData {
  return (element) => ({
    ...element,
    highlights: shorten(element.highlights, limit),
    detail: shorten(element.detail, limit),
  })
}

/** Ids and the uid stay whole, whatever their length; a link is whole or left out. */
function cutAll(limit: Bounds): (element: EventData) => EventData {
  return (element) => ({
    ...shorten({ ...element, highlights: {}, detail: null }, { ...limit, maxEntries: Infinity }),
    labels: shorten(element.labels, limit),
    routes: shorten(element.routes, limit),
    identifiers: shorten(element.identifiers, limit),
    tags: shorten(element.tags, limit),
    id: element.id,
    uid: element.uid,
    url: Buffer.byteLength(JSON.stringify(element.url)) > maxLinkBytes ? null : element.url,
    ...(element.page_url !== undefined && { page_url: element.page_url }),
  })
}

export function formatIso(timeMs: number): string {
  return new Date(timeMs).toISOString()
}

function formatIsoOrNull(timeMs: number | null): string | null {
  return timeMs === null ? null : formatIso(timeMs)
}

interface Bounds {
  /** Per string, in code points. */
  maxCharacters: number
  /** Per array and object. */
  maxEntries: number
}

/**
 * Returns the same JSON value with every string, array and object cut to the bounds, at any depth.
 */
export function shorten<T>(value: T, bounds: Bounds): T {
  return shortenAny(value, bounds) as T
}

function shortenAny(value: unknown, bounds: Bounds): unknown {
  if (typeof value === 'string') return shortenText(value, bounds.maxCharacters)
  if (Array.isArray(value)) {
    return value.slice(0, bounds.maxEntries).map((entry) => shortenAny(entry, bounds))
  }
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).slice(0, bounds.maxEntries)
  return Object.fromEntries(
    kept.map(([key, entry]) => [shortenText(key, bounds.maxCharacters), shortenAny(entry, bounds)]),
  )
}

/** Cuts between code points, so that no half of a surrogate pair is left. */
function shortenText(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text
  const characters = Array.from(text.slice(0, 2 * maxCharacters))
  return characters.length <= maxCharacters && text.length <= 2 * maxCharacters
    ? text
    : `${characters.slice(0, maxCharacters).join('')}…`
}
