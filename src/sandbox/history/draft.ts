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

/** As credentials and older answers write times: six digits and an offset (facts.md 2.5). */
export function withOffset(ms: number): string {
  return `${zoneless(ms)}000+00:00`
}

export function marked(text: string): string {
  return `<mark>${text}</mark>`
}
