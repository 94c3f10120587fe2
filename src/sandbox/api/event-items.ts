/** An event in the shapes in which the API shows it. */
import { readStolen } from '../history/texts.ts'
import type { SandboxEvent } from '../history/history.ts'
import { hashText } from '../options.ts'
import { formatOffsetTime, formatOrNull, formatZonelessTime } from '../times.ts'
import { effectiveSeverity, severityRank } from './filters.ts'
import type { Caller } from './routes.ts'

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

type May = Caller['may']

/** Returns the bare full event: times without a zone, data in the shape of the type's model. */
export function toFullEvent(event: SandboxEvent, may: May): Record<string, unknown> {
  return {
    event_type: event.type,
    metadata: {
      estimated_created_at: formatZonelessTime(event.createdAtMs),
      flare_url: eventLink(event.uid),
      matched_at: formatOrNull(event.matchedAtMs, formatZonelessTime),
      severity: effectiveSeverity(event),
      uid: event.uid,
    },
    data: visibleData(event, may),
  }
}

function visibleData({ data }: SandboxEvent, may: May): Record<string, unknown> {
  const isHidden = data !== null && 'password' in data && !may('leaksdb.show-passwords')
  return { ...data, ...(isHidden && { password: null }) }
}

const previewLength = 200
const titlePaths = [
  'title',
  'context.topic_title',
  'context.conversation_name',
  'domain',
  'hostname',
  'identity_name',
  'bucket.host',
  'victim_information.username',
]

/**
 * Returns an event in the v2 shape, with uid and type in the header (docs/api-notes.md, The older
 * shape). Stolen credentials and cookies are in it only as far as the caller may see them.
 */
export function toLegacyItem(event: SandboxEvent, may: May): unknown {
  if ('raw' in event) return event.raw
  const { uid, type, data } = event
  const source = uid.split('/')[1] ?? null
  const title = titlePaths.map((path) => textAt(data, path)).find((text) => text !== null) ?? uid
  const metadata = {
    estimated_created_at: formatOffsetTime(event.createdAtMs),
    event_id: null,
    source,
    flare_url: eventLink(uid),
  }
  const stolen = readStolen(event)
  return {
    data: {
      uid,
      index: type,
      metadata,
      title,
      ...(data === null ? highlightedFields(event) : visibleData(event, may)),
      ...(stolen && may('astp_credentials_access') && { credentials: stolen.credentials }),
      ...(stolen && may('astp_cookies_access') && { cookies: stolen.cookies }),
    },
    header: {
      uid,
      type,
      title,
      source,
      content_preview: previewOf(event),
      category_name: textAt(data, 'context.category_name'),
      risk: { score: severityRank(effectiveSeverity(event)) + 1 },
      source_name: textAt(data, 'source.name') ?? source,
      actor: textAt(data, 'actor.name'),
      timestamp: formatOffsetTime(event.createdAtMs),
      ignored_at: formatOrNull(event.ignoredAtMs, formatOffsetTime),
      remediated_at: formatOrNull(event.remediatedAtMs, formatOffsetTime),
      tags: event.tags,
      notes: event.notes,
    },
    metadata,
  }
}

/** The fields of a type without a model, taken from its highlights. */
function highlightedFields({ highlights }: SandboxEvent): Record<string, string> {
  return Object.fromEntries(
    Object.entries(highlights).map(([path, texts]) => [
      path.split('.').at(-1) ?? path,
      plain(texts.join('\n')),
    ]),
  )
}

function previewOf({ data, highlights }: SandboxEvent): string | null {
  const [shown] = Object.values(highlights).flat()
  const text = textAt(data, 'content') ?? (shown === undefined ? null : plain(shown))
  return text?.slice(0, previewLength) ?? null
}

function plain(text: string): string {
  return text.replaceAll(/<\/?mark>/g, '')
}

function textAt(data: Record<string, unknown> | null, path: string): string | null {
  let value: unknown = data
  for (const key of path.split('.')) value = (value as Record<string, unknown> | null)?.[key]
  return typeof value === 'string' ? value : null
}
