/** A threat-flow report as text to read: what others wrote is harmless to a terminal. */
import { maskText } from '../../../feeds/masking.ts'
import { parseTimestamp } from '../../../service/timestamps.ts'
import { wireReport, type WireReport } from '../../../service/wire/reports.ts'
import { CommandError } from '../../command-error.ts'
import { harmless, timeInWords } from '../../words.ts'
import { plainText, wrapped } from './plain-text.ts'

const width = 96

/** The report of a request that has one. Throws CommandError for what is none. */
export function readReport(received: unknown, requestId: string): WireReport {
  const read = wireReport.safeParse(received)
  if (read.success) return read.data
  const said = `report request ${harmless(requestId)}: the report has no id that is a whole number`
  throw new CommandError('refused', `${said}; read it in the service`)
}

/** Secrets that its texts quote, as stolen logins are written. */
export function maskReport(report: WireReport): WireReport {
  const { title, subtitle, summary, content, highlights } = report
  return {
    ...report,
    ...maskedIn({ title, subtitle, summary, content }),
    ...(highlights && { highlights: highlights.map((highlight) => maskText(highlight)) }),
  }
}

function maskedIn(
  texts: Readonly<Record<string, string | null | undefined>>,
): Record<string, string> {
  const there = Object.entries(texts).flatMap(([key, text]) =>
    typeof text === 'string' ? [[key, maskText(text)] as const] : [],
  )
  return Object.fromEntries(there)
}

export function reportLines(report: WireReport, strong: (text: string) => string): string[] {
  const part = (title: string, lines: readonly string[]): string[] =>
    lines.length === 0 ? [] : ['', strong(title), ...lines]
  return [
    strong(harmless(report.title ?? `report ${report.id}`, Infinity)),
    ...(report.subtitle ? wrapped(harmless(report.subtitle, Infinity), width) : []),
    ...wrapped(factsIn(report), width),
    ...part('Summary', plainText(report.summary ?? '', { width, strong })),
    ...part(
      'Highlights',
      (report.highlights ?? []).flatMap((text) =>
        wrapped(harmless(text, Infinity), width, { first: '• ', rest: '  ' }),
      ),
    ),
    ...part('Report', plainText(report.content ?? '', { width, strong })),
    ...part(
      'Related events',
      (report.related_activity_uids ?? []).map((uid) => `  ${harmless(uid, Infinity)}`),
    ),
  ]
}

/** `report 9001, created 2026-11-01 12:00:05 UTC, 2 min to read, tags: leak`. */
function factsIn(report: WireReport): string {
  const { reading_time: minutes, format_type: format, intel_type: intel, tags } = report
  return [
    `report ${report.id}`,
    ...timeSaid('created', report.created_at),
    ...timeSaid('published', report.published_at),
    ...timeSaid('updated', report.updated_at),
    ...(minutes === undefined || minutes === null ? [] : [`${minutes} min to read`]),
    ...[format, intel].filter((word) => typeof word === 'string').map((word) => harmless(word)),
    ...(tags?.length ? [`tags: ${tags.map((tag) => harmless(tag)).join(', ')}`] : []),
  ].join(', ')
}

function timeSaid(verb: string, text: string | null | undefined): string[] {
  if (typeof text !== 'string') return []
  const atMs = parseTimestamp(text)
  return [`${verb} ${atMs === null ? harmless(text) : timeInWords(atMs)}`]
}
