/** Times as the API writes and reads them (docs/api-notes.md, Times). */

/** Writes a time as full events do: without a zone. */
export function formatZonelessTime(ms: number): string {
  return new Date(ms).toISOString().slice(0, -1)
}

/** Writes a time as credentials and legacy events do: six digits and an offset. */
export function formatOffsetTime(ms: number): string {
  return `${formatZonelessTime(ms)}000+00:00`
}

export function formatOrNull(ms: number | null, format: (ms: number) => string): string | null {
  return ms === null ? null : format(ms)
}

/**
 * Returns milliseconds since 1970, or NaN if `text` is not a time. A time without a zone is UTC.
 */
export function parseInstant(text: string): number {
  const hasZone = /(Z|[+-]\d\d:?\d\d)$/i.test(text)
  return Date.parse(hasZone || !text.includes('T') ? text : `${text}Z`)
}
