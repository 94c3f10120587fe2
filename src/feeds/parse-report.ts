import type { ThreatEvent } from '../events/threat-event.ts'
import type { ReportEnd } from './reports-feed.ts'
import { cut } from './mask-secrets.ts'
import { maskText } from './mask-text.ts'

/** What is kept of a report: the whole of it stands in the service. Code units, or how many. */
const limits = { title: 300, text: 4000, highlights: 10, highlight: 500, related: 50, uid: 512 }

/**
 * A report as an event of the type `threat_flow_report`; one that failed or is overdue as one too. Its
 * fields stand in the highlights, where `messages/describe-report.ts` reads them by these names.
 */
export function parseReport(
  { requestId, outcome, report }: ReportEnd,
  severity: string,
): ThreatEvent {
  const isThere = outcome === 'completed' && report !== null
  return {
    uid: isThere
      ? `threat_flow/report/${report.id}`
      : `threat_flow/request/${requestId}/${outcome}`,
    kind: 'report',
    type: 'threat_flow_report',
    source: 'threat_flow',
    severity,
    originalSeverity: null,
    createdAtMs: null, // never below the floor: it was asked for by name
    matchedAtMs: null,
    ignoredAtMs: null,
    remediatedAtMs: null,
    url: null,
    tags: isThere ? (report.tags ?? []).slice(0, 100).map((tag) => cut(tag, 200)) : [],
    notes: null,
    identifiers: [],
    highlights: isThere
      ? fieldsOf({ ...textsOf(report), request: [requestId] })
      : fieldsOf({ outcome: [outcome], request: [requestId] }),
  }
}

function textsOf(report: NonNullable<ReportEnd['report']>): Record<string, (string | null)[]> {
  const text = (value: string | null | undefined, most: number): (string | null)[] =>
    value ? [cut(maskText(value), most)] : []
  return {
    title: text(report.title, limits.title),
    subtitle: text(report.subtitle, limits.title),
    summary: text(report.summary, limits.text),
    highlights: (report.highlights ?? [])
      .slice(0, limits.highlights)
      .map((one) => cut(maskText(one), limits.highlight)),
    related_activity_uids: (report.related_activity_uids ?? [])
      .slice(0, limits.related)
      .map((uid) => cut(uid, limits.uid)),
    content: report.summary ? [] : text(report.content, limits.text),
    created_at: text(report.created_at, 40),
    format_type: text(report.format_type, 100),
    intel_type: text(report.intel_type, 100),
    reading_time: report.reading_time === null ? [] : [String(report.reading_time ?? '')],
  }
}

function fieldsOf(fields: Record<string, (string | null)[]>): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, values]): [string, string[]][] => {
      const said = values.filter((value) => value !== null && value !== '') as string[]
      return said.length === 0 ? [] : [[name, said]]
    }),
  )
}
