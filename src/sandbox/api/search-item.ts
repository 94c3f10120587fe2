/** Events as search pages show them: in several time forms, with fields that no description names. */
import { hashOf } from '../random.ts'
import type { SandboxEvent } from '../history/sandbox-event.ts'

/** The forms in which the service was seen to write one instant; all keep the millisecond. */
const timeForms: readonly ((ms: number) => string)[] = [
  (ms) => `${microseconds(ms)}Z`,
  (ms) => `${microseconds(ms)}Z`,
  (ms) => `${microseconds(ms)}+00:00`,
  (ms) => microseconds(ms),
  (ms) => `${microseconds(ms + 19_800_000)}+05:30`,
  (ms) => new Date(ms).toISOString(),
]

/** The same event is always shown in the same form. */
export function searchItemOf(event: SandboxEvent): unknown {
  if ('raw' in event) return event.raw
  const timeOf = (ms: number): string => timeForms[hashOf(event.uid) % timeForms.length]?.(ms) ?? ''
  return {
    metadata: {
      estimated_created_at: timeOf(event.createdAtMs),
      matched_at: timeOrNull(event.matchedAtMs, timeOf),
      type: event.type,
      uid: event.uid,
      severity: event.severity,
      flare_url: linkTo(event.uid),
    },
    tenant_metadata: {
      severity:
        event.override === null ? null : { original: event.severity, override: event.override },
      tags: event.tags,
      notes: event.notes,
      ignored_at: timeOrNull(event.ignoredAtMs, timeOf),
      remediated_at: timeOrNull(event.remediatedAtMs, timeOf),
    },
    highlights: event.highlights,
    identifiers: event.identifiers,
    revision: hashOf(event.uid) % 7,
  }
}

/** As a search over everything shows it: for no identifier, and what a tenant notes to itself alone. */
export function globalItemOf(event: SandboxEvent, isOwn: boolean): unknown {
  const item = searchItemOf(event)
  if ('raw' in event || typeof item !== 'object') return item
  const tenantMetadata = {
    severity: null,
    tags: [],
    notes: null,
    ignored_at: null,
    remediated_at: null,
  }
  return { ...item, identifiers: undefined, ...(!isOwn && { tenant_metadata: tenantMetadata }) }
}

/** Of the service's web application. */
export const appHost = 'app.example.com'

/** Where a person would read the event. */
export function linkTo(uid: string): string {
  return `https://${appHost}/#/uid?uid=${encodeURIComponent(uid)}`
}

function timeOrNull(ms: number | null, timeOf: (ms: number) => string): string | null {
  return ms === null ? null : timeOf(ms)
}

/** Six digits and no zone. The last three say nothing, but vary. */
function microseconds(ms: number): string {
  const digits = String(ms % 997).padStart(3, '0')
  return `${new Date(ms).toISOString().slice(0, -1)}${digits}`
}
