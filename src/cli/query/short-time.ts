import { parseTimestamp } from '../../service/timestamps.ts'

/** `2026-11-01 12:00`, UTC; as the service wrote it where it is no time. */
export function shortTime(text: string | null | undefined): string {
  const atMs = text ? parseTimestamp(text) : null
  if (atMs === null) return text ?? ''
  return new Date(atMs).toISOString().slice(0, 16).replace('T', ' ')
}
