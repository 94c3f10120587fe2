/**
 * An event for machines and templates: every field that a receiver may use, cut to what Standard
 * Webhooks asks for.
 */
import { notificationOf, readWords, titleOf } from '../../messages/message.ts'
import { sanitizeLine } from '../../messages/sanitize.ts'
import type { EventData, TemplateValues } from './event-fields.ts'
import type { DeliveryMember } from '../sink.ts'

/** Standard Webhooks asks for payloads under 20 KB; the envelope takes less than the difference. */
const maxBodyBytes = 20_000
const maxElementBytes = maxBodyBytes - 200
const maxLinkBytes = 2000

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
  const title = (isTest ? undefined : member.title) ?? titleOf(member, { isTest })
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
    ...(member.excerptsWithheld && { excerpts_withheld: true }),
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
