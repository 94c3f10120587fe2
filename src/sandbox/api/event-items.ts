/** An event in the shapes in which the API shows it. */
import { readStolen } from '../history/texts.ts'
import type { SandboxEvent } from '../history/history.ts'
import { hashText } from '../options.ts'
import { formatOffsetTime, formatOrNull, formatZonelessTime } from '../times.ts'
import { effectiveSeverity, severityRank } from './filters.ts'

/** Host of the pretend service's web application. */
export const appHost = 'app.example.com'

function eventLink(uid: string): string {
  return `https://${appHost}/#/uid?uid=${encodeURIComponent(uid)}`
}

/** The forms in which the API has been seen to write one instant; all keep the millisecond. */
const timeForms: readonly ((ms: number) => string)[] = [
  (ms) => `${formatMicroseconds(ms)}Z`,
  (ms) => `${formatMicroseconds(ms)}Z`,
  (ms) => `${formatMicroseconds(ms)}+00:00`,
  (ms) => formatMicroseconds(ms),
  (ms) => `${formatMicroseconds(ms + 19_800_000)}+05:30`,
  (ms) => new Date(ms).toISOString(),
]

/** Six fractional digits and no zone. The last three are arbitrary. */
function formatMicroseconds(ms: number): string {
  return `${formatZonelessTime(ms)}${String(ms % 997).padStart(3, '0')}`
}

/** Returns an event as search pages show it; one event always has the same time form. */
export function toSearchItem(event: SandboxEvent): unknown {
  if ('raw' in event) return event.raw
  const { uid, type, severity, override, tags, notes } = event
  const formatTime = (ms: number): string => timeForms[hashText(uid) % timeForms.length]?.(ms) ?? ''
  return {
    metadata: {
      estimated_created_at: formatTime(event.createdAtMs),
      matched_at: formatOrNull(event.matchedAtMs, formatTime),
      type,
      uid,
      severity,
      flare_url: eventLink(uid),
    },
    tenant_metadata: {
      severity: override === null ? null : { original: severity, override },
      tags,
      notes,
      ignored_at: formatOrNull(event.ignoredAtMs, formatTime),
      remediated_at: formatOrNull(event.remediatedAtMs, formatTime),
    },
    highlights: event.highlights,
    identifiers: event.identifiers,
    revision: hashText(uid) % 7,
  }
}

/** Returns an event as a global search shows it: without identifiers. */
export function toGlobalItem(event: SandboxEvent): unknown {
  const item = toSearchItem(event)
  return 'raw' in event ? item : { ...(item as object), identifiers: undefined }
}

/** Returns the event as another tenant sees it: without what its own tenant noted. */
export function withoutNotes(event: SandboxEvent): SandboxEvent {
  return {
    ...event,
    override: null,
    matchedAtMs: null,
    tags: [],
    notes: null,
    ignoredAtMs: null,
    remediatedAtMs: null,
  }
}

/** Returns the bare full event: times without a zone, data in the shape of the type's model. */
export function toFullEvent(event: SandboxEvent): Record<string, unknown> {
  return {
    event_type: event.type,
    metadata: {
      estimated_created_at: formatZonelessTime(event.createdAtMs),
      flare_url: eventLink(event.uid),
      matched_at: formatOrNull(event.matchedAtMs, formatZonelessTime),
      severity: effectiveSeverity(event),
      uid: event.uid,
    },
    data: event.data,
  }
}

/**
 * Returns an event in the v2 shape, with uid and type in the header (docs/api-notes.md, The older
 * shape).
 */
export function toLegacyItem(event: SandboxEvent): unknown {
  if ('raw' in event) return event.raw
  const { uid, type, data } = event
  const source = uid.split('/')[1] ?? null
  const texts = [data?.['title'], data?.['domain'], data?.['identity_name']]
  const title = texts.find((text) => typeof text === 'string') ?? uid
  const timestamp = formatOffsetTime(event.createdAtMs)
  return {
    data: { uid, title, ...(data ?? highlightedFields(event)), ...readStolen(event) },
    header: {
      uid,
      type,
      title,
      source,
      timestamp,
      risk: { score: severityRank(effectiveSeverity(event)) + 1 },
      tags: event.tags,
      notes: event.notes,
    },
    metadata: { estimated_created_at: timestamp, flare_url: eventLink(uid) },
  }
}

/** The fields of highlights by their last words, as plain text. */
function highlightedFields({ highlights }: SandboxEvent): Record<string, string> {
  return Object.fromEntries(
    Object.entries(highlights).map(([path, texts]) => [
      path.split('.').at(-1) ?? path,
      texts.join('\n').replaceAll(/<\/?mark>/g, ''),
    ]),
  )
}
