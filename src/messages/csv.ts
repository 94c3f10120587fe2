/**
 * Events as a table to attach: RFC 4180, every cell quoted, CRLF, UTF-8 with a byte order mark.
 * Cells are sanitized as every message is. Spreadsheets run what looks like a formula, so an
 * apostrophe is put before a text that could begin one.
 */
import { cleanNames, messageLimits, type MessageSubject, readWords } from './message.ts'
import { cleanLine, sanitizeLine } from './sanitize.ts'

/** A file that a sink sends along. */
export interface Attachment {
  /** Plain ASCII, e.g. `tocsin-digest-2026-11-21.csv`. */
  fileName: string
  contentType: string
  content: Uint8Array
}

const columns = [
  'severity',
  'type',
  'uid',
  'title',
  'identifiers',
  'feed',
  'created',
  'matched',
  'fetched',
  'tags',
  'link',
  'account',
] as const

/** The cells by their columns. */
export type CsvRow = Readonly<Record<(typeof columns)[number], string>>

/** Mail servers commonly refuse 10 MB and more, and base64 adds a third. */
const maxAttachedBytes = 6 * 1024 * 1024

/**
 * Builds `<name>.csv`. A file above 6 MB loses its last rows, and its last line says how many of
 * `total` are missing. `name` is made ASCII.
 */
export function buildAttachment(
  rows: readonly CsvRow[],
  name: string,
  total = rows.length,
): Attachment {
  const fileName = `${name.replaceAll(/[^A-Za-z0-9._-]+/g, '-')}.csv`
  const lines = rows.map((row) => csvLine(columns.map((name) => row[name])))
  for (let rowsKept = lines.length; ; rowsKept = Math.floor(rowsKept / 2)) {
    const content = buildFile(lines.slice(0, rowsKept), total - rowsKept)
    if (content.length > maxAttachedBytes) continue
    return { fileName, contentType: 'text/csv; charset=utf-8', content }
  }
}

/**
 * The row as a message about the event would show it: sanitized, defanged, cut, never with a
 * secret.
 */
export function toCsvRow(subject: MessageSubject): CsvRow {
  const { event, account, feed, fetchedAtMs } = subject
  const { title, link, unverifiedLink } = readWords(subject)
  const join = (names: readonly string[]): string => cleanNames(names).join('; ')
  return {
    severity: sanitizeLine(event.severity, messageLimits.severity),
    type: sanitizeLine(event.type, messageLimits.name),
    uid: sanitizeLine(event.uid, messageLimits.uid),
    title,
    identifiers: join(event.identifiers.map(({ name }) => name)),
    feed: sanitizeLine(feed, messageLimits.name),
    created: formatIso(event.createdAtMs),
    matched: formatIso(event.matchedAtMs),
    fetched: formatIso(fetchedAtMs),
    tags: join(event.tags),
    link: link ?? unverifiedLink ?? '',
    account: sanitizeLine(account, messageLimits.name),
  }
}

function buildFile(lines: readonly string[], left: number): Uint8Array {
  const remark = `${left} more rows left out, because the file would be too big to send`
  const end = left === 0 ? '' : csvLine([remark])
  return Buffer.from(`${byteOrderMark}${csvLine(columns)}${lines.join('')}${end}`)
}

function formatIso(atMs: number | null): string {
  const date = new Date(atMs ?? Number.NaN)
  return Number.isNaN(date.getTime()) ? '' : date.toISOString()
}

/** Stands before the first line: without it Excel reads another character set. */
export const byteOrderMark = '\uFEFF'

/** One line of a table, with its line end; a spreadsheet runs none of its cells. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map((cell) => `"${sanitizeCell(cell).replaceAll('"', '""')}"`).join(',')}\r\n`
}

/** Half and full width: Excel takes both. */
const formulaStart = /^(["'`\s]*)(?=[=+\-@＝＋－＠])/u
/**
 * A formula after a semicolon or a bar: the semicolon separates cells for Excel in much of Europe.
 */
const formulaWithin = /([;|])(["'`\s]*)(?=[=+\-@＝＋－＠])/gu

function sanitizeCell(text: string): string {
  return cleanLine(text, Infinity).replace(formulaStart, "'$1").replaceAll(formulaWithin, "$1'$2")
}
