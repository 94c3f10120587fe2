import { zoneless } from '../history/draft.ts'
import type { SandboxEvent } from '../history/sandbox-event.ts'
import { effectiveSeverity } from './filters.ts'
import { linkTo } from './search-item.ts'

/** The bare object of an event detail: times without a zone, data as the type's model has it. */
export function fullEventOf(event: SandboxEvent, showsPassword = true): Record<string, unknown> {
  return {
    event_type: event.type,
    metadata: {
      estimated_created_at: zoneless(event.createdAtMs),
      flare_url: linkTo(event.uid),
      matched_at: event.matchedAtMs === null ? null : zoneless(event.matchedAtMs),
      severity: effectiveSeverity(event),
      uid: event.uid,
    },
    data: {
      ...event.data,
      ...(!showsPassword && event.data && 'password' in event.data && { password: null }),
    },
  }
}
