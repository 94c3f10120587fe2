/** Times, spans and tables as people read them. */
import { cleanLine } from '../messages/clean-text.ts'

export { spanInWords } from '../runtime/span-in-words.ts'

/** `2026-11-01 12:00:05 UTC`. */
export function timeInWords(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

export function isoTime(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString()
}

export function counted(count: number, thing: string, several = `${thing}s`): string {
  return `${count} ${count === 1 ? thing : several}`
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
