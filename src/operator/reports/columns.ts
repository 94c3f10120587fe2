/** Columns that are declared once: the fields of JSON, and the table that people read. */
import type { Trouble } from '../../lib/trouble.ts'

/** A field of JSON, and the column of the table where it has a title. */
export interface Column<Row> {
  key: string
  json: (row: Row) => unknown
  title?: string
  /** What people read; else the value of the JSON. */
  text?: (row: Row) => string
}

export function toJson<Row>(columns: readonly Column<Row>[], row: Row): Record<string, unknown> {
  return Object.fromEntries(columns.map(({ key, json }) => [key, json(row)]))
}

export function formatIsoTime(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString()
}

export function troubleJson(trouble: Trouble | undefined): Record<string, unknown> | null {
  if (trouble === undefined) return null
  const { reason, answer, sinceMs, lastMs, count, nextTryMs } = trouble
  const times = { since: formatIsoTime(sinceMs), last: formatIsoTime(lastMs) }
  return { reason, answer, ...times, count, next_try: formatIsoTime(nextTryMs) }
}

/** Why something is paused, refused or gone, and since when. */
export function standstillJson(
  why: { reason: string; sinceMs: number } | undefined,
): Record<string, unknown> | null {
  return why ? { reason: why.reason, since: formatIsoTime(why.sinceMs) } : null
}
