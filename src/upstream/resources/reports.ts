/** Threat-flow reports: requested, listed, and read by their id or by that of their request. */
import { z } from 'zod'
import { orders, reportFileFormats } from './enumerations.ts'
import { cursor, moment, operation, pagedOperation } from './operation.ts'
import { lenient } from './page.ts'

const root = '/firework/v4/threat_flow/reports'

const text = z.string()
/** A threat-flow report, which has more fields by its own id. Only the id must be readable. */
export const wireReport = z.looseObject({
  id: z.int(),
  title: lenient.text,
  subtitle: lenient.text,
  summary: lenient.text,
  content: lenient.text,
  created_at: lenient.text,
  tags: lenient.texts,
  highlights: lenient.texts,
  related_activity_uids: lenient.texts,
  tenant_id: lenient.number,
})
export type WireReport = z.infer<typeof wireReport>

export const wireReportAnswer = z.looseObject({ report: wireReport })

/**
 * `status` is `processing`, then `completed` or `error`; any other word counts as a failure.
 * `report` is null until the request is completed (docs/api-notes.md, Reports).
 */
export const wireReportRequest = z.looseObject({
  status: text,
  /** Parsed by each reader, so that a malformed field does not cost the whole report. */
  report: z.unknown().optional(),
})

const wireRequestedReport = z.looseObject({ request_id: text.min(1) })

/** The body that has a report made (docs/api-notes.md, Reports). */
const reportCreation = z.strictObject({
  report_title: text.min(1),
  question: text.optional(),
  time_range_type: text.optional(),
  time_range_from: moment.optional(),
  time_range_to: moment.optional(),
  included_keywords: z.array(text.min(1)).optional(),
  excluded_keywords: z.array(text.min(1)).optional(),
})

/** The default size is 10; no maximum is published (docs/api-notes.md, Page sizes). */
const listQuery = z.strictObject({
  order: z.enum(orders).optional(),
  report_types: z.array(text).optional(),
  size: z.int().min(1).optional(),
  from: cursor,
})

export const reportOperations = {
  get: operation({
    name: 'reports.get',
    summary: 'read a report by its id',
    request: `GET ${root}/{report_id}`,
    answer: wireReportAnswer.transform(({ report }) => report),
  }),
  getByRequest: operation({
    name: 'reports.get-by-request',
    summary: 'read the state of a request, and its report once it is completed',
    request: `GET ${root}/requests/{request_info_id}`,
    answer: wireReportRequest,
  }),
  request: operation({
    name: 'reports.request',
    summary: 'have a report made',
    request: `POST ${root}/requests`,
    body: reportCreation,
    answer: wireRequestedReport,
    changes: true,
    permission: 'to have reports made',
  }),
  list: pagedOperation({
    name: 'reports.list',
    summary: 'list reports',
    request: `GET ${root}/`,
    query: listQuery,
    item: wireReport,
    permission: 'to read reports',
  }),
  download: operation({
    name: 'reports.download',
    summary: 'read a report as a file',
    request: `GET ${root}/{report_id}/download`,
    query: z.strictObject({ format: z.enum(reportFileFormats) }),
    answer: z.unknown(),
    permission: 'to read reports',
    onlyBy: 'reports download',
  }),
} as const
