import type { ThreatEvent } from '../events/threat-event.ts'
import {
  createFieldReader,
  idIn,
  type FieldReader,
  type Members,
  type UnreadField,
} from './field-reader.ts'
import type { ReportEnd } from './reports-feed.ts'
import { cut, maskTag, maskText } from './masking.ts'

/** What is kept of a report: the whole of it stands in the service. Code units, or how many. */
const limits = {
  title: 300,
  text: 4000,
  highlights: 10,
  highlight: 500,
  related: 50,
  uid: 512,
  tags: 100,
  tag: 200,
}

/**
 * A report as an event of the type `threat_flow_report`; one that failed or is overdue as one too. Its
 * fields stand in the highlights, where `messages/describe-report.ts` reads them by these names. Never
 * throws: a report without a readable id goes by its request's, and what else cannot be read is named.
 */
export function parseReport(
  { requestId, outcome, report }: ReportEnd,
  severity: string,
): ThreatEvent {
  const reader = createFieldReader()
  const isThere = outcome === 'completed' && report !== null
  const members = isThere ? reader.members('report', report) : {}
  const id = idIn(members['id'])
  if (isThere && id === null) reader.note('id')
  const tags = reader.texts('tags', members['tags'], limits.tags)
  const said = isThere ? textsOf(members, reader) : { outcome: [outcome] }
  return {
    uid: id === null ? `threat_flow/request/${requestId}/${outcome}` : `threat_flow/report/${id}`,
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
    tags: tags.map((tag) => masked(tag, limits.tag, maskTag)),
    notes: null,
    identifiers: [],
    highlights: fieldsOf({ ...said, request: [requestId] }),
    ...reader.unread(),
  }
}

function textsOf(report: Members, reader: FieldReader): Record<string, string[]> {
  const text = (field: UnreadField, most: number): string[] =>
    texts(field, 1).map((one) => masked(one, most))
  const texts = (field: UnreadField, most: number): string[] =>
    reader.texts(field, report[field], most).filter((one) => one !== '')
  const summary = text('summary', limits.text)
  return {
    title: text('title', limits.title),
    subtitle: text('subtitle', limits.title),
    summary,
    highlights: texts('highlights', limits.highlights).map((one) => masked(one, limits.highlight)),
    related_activity_uids: texts('related_activity_uids', limits.related).map((uid) =>
      cut(uid, limits.uid),
    ),
    content: summary.length > 0 ? [] : text('content', limits.text),
    created_at: text('created_at', 40),
    format_type: text('format_type', 100),
    intel_type: text('intel_type', 100),
    reading_time: text('reading_time', 100),
  }
}

function fieldsOf(fields: Record<string, string[]>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(fields).filter(([, values]) => values.length > 0))
}

/** Looks for secrets no further than what may be shown of it, lest a long text hold the daemon up. */
function masked(text: string, most: number, mask: (text: string) => string = maskText): string {
  return cut(mask(cut(text, 4 * most)), most)
}
