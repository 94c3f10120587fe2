/** Times, spans and tables as people read them. */
import { cleanLine } from '../messages/clean-text.ts'

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** `2026-11-01 12:00:05 UTC`. */
export function timeInWords(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

export function isoTime(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString()
}

/** The two largest units: `2 d 3 h`, `45 s`, `0 s`. */
export function spanInWords(ms: number): string {
  const first = units.findIndex(([, unitMs]) => ms >= unitMs)
  if (first === -1) return '0 s'
  let restMs = ms
  const parts = units.slice(first, first + 2).map(([unit, unitMs]) => {
    const count = Math.floor(restMs / unitMs)
    restMs -= count * unitMs
    return { unit, count }
  })
  return parts
    .filter(({ count }) => count > 0)
    .map(({ unit, count }) => `${count} ${unit}`)
    .join(' ')
}

export function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`
}

/** Text that others wrote, on one line and harmless to a terminal. */
export function harmless(text: string, maxLength = 300): string {
  return cleanLine(text, maxLength)
}

/** Columns two spaces apart; the last one is as long as it is. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_cell, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  )
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
