import type { Random } from '../random.ts'

/** What a family of event types makes up: the part of an event that depends on its type. */
export interface Draft {
  type: string
  uid: string
  /** Severities such an event has, the likelier ones more than once. */
  severities: readonly string[]
  /** `data` of the full event; null: the type has no model. */
  data: Record<string, unknown> | null
  highlights: Record<string, string[]>
}

export interface DraftContext {
  random: Random
  /** Grows with every event: what makes uids unique. */
  number: number
  /** Name of the identifier that matched. */
  subject: string
  createdAtMs: number
}

export type Family = (context: DraftContext) => Draft

/** As the full event writes times: no zone (public event examples). */
export function zoneless(ms: number): string {
  return new Date(ms).toISOString().slice(0, -1)
}

export function marked(text: string): string {
  return `<mark>${text}</mark>`
}
