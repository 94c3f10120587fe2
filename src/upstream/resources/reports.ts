/** Threat-flow reports: requested, listed, and read by their id or by that of their request. */
import { z } from 'zod'
import { UpstreamError } from '../error.ts'
import { looksLikeHtml } from '../failures.ts'
import type { orders, reportFileFormats, reportTypes } from './enumerations.ts'
import { reportTimeRanges } from './enumerations.ts'
import {
  ask,
  type CallOptions,
  checkRequest,
  type OperationParts,
  pathPart,
  read,
  readWritten,
  write,
} from './operation.ts'
import { wireSearchPage, type WireSearchPage } from './page.ts'

const root = '/firework/v4/threat_flow/reports'

/** All operations use the basic tier. */
export interface ReportOperations {
  /** `GET /firework/v4/threat_flow/reports/{id}`. */
  getReport(request: { id: number } & CallOptions): Promise<WireReport>
  /** Returns a request's status, and its report once completed. `GET …/reports/requests/{id}`. */
  getReportRequest(request: { requestId: string } & CallOptions): Promise<WireReportRequest>
  /** Has a report made; returns the id of the request. `POST …/reports/requests`. */
  requestReport(request: { report: ReportCreation } & CallOptions): Promise<string>
  /** Returns one page of the reports. `GET …/reports/`. Not every server has it. */
  listReports(request: ReportListRequest & CallOptions): Promise<WireSearchPage>
  /**
   * Returns the report as a file. `GET …/reports/{id}/download`. Not every server has it. Throws
   * UpstreamError `contract` for what is no file of the format.
   */
  downloadReport(
    request: { id: number; format: ReportFileFormat } & CallOptions,
  ): Promise<Uint8Array>
}

export type ReportFileFormat = (typeof reportFileFormats)[number]

/** A report is a few pages; the largest that is taken in. */
const maxReportBytes = 32 * 1024 * 1024

/** The first bytes of a file: docx is a ZIP archive. What the answer calls itself is not documented. */
const signatures: Record<ReportFileFormat, Buffer> = {
  docx: Buffer.from('PK\u0003\u0004'),
  pdf: Buffer.from('%PDF-'),
}

interface ReportListRequest {
  /** The cursor as it was received; null for the first page. */
  from: string | null
  /** The default is 10; no maximum is published (docs/api-notes.md, Page sizes). */
  size: number
  order: (typeof orders)[number]
  types?: readonly (typeof reportTypes)[number][] | undefined
}

export function createReportOperations(parts: OperationParts): ReportOperations {
  return {
    async getReport({ id, ...asked }) {
      const path = `${root}/${pathPart(id)}`
      return (await read(parts, wireReportAnswer, { method: 'GET', path }, asked)).report
    },
    getReportRequest: ({ requestId, ...asked }) =>
      read(
        parts,
        wireReportRequest,
        { method: 'GET', path: `${root}/requests/${pathPart(requestId)}` },
        asked,
      ),
    async requestReport({ report, ...asked }) {
      const body = checkRequest(reportCreation, report)
      const answer = await write(parts, { method: 'POST', path: `${root}/requests`, body }, asked)
      return readWritten(answer, wireRequestedReport).request_id
    },
    listReports({ from, size, order, types = [], ...asked }) {
      const query = new URLSearchParams({ size: String(size), order })
      if (from !== null) query.set('from', from)
      for (const type of types) query.append('report_types', type)
      const path = `${root}/?${query.toString()}`
      return read(parts, wireSearchPage, { method: 'GET', path, pageSize: size }, asked)
    },
    async downloadReport({ id, format, ...asked }) {
      const path = `${root}/${pathPart(id)}/download?format=${format}`
      const request = { method: 'GET', path, maxFileBytes: maxReportBytes } as const
      const { status, file = Buffer.alloc(0) } = await ask(parts, request, asked)
      if (signatures[format].equals(file.subarray(0, signatures[format].length))) return file
      const isHtml = looksLikeHtml(new TextDecoder().decode(file.subarray(0, 500)))
      throw new UpstreamError(
        'contract',
        `the answer is ${isHtml ? 'a web page' : `no file of the format ${format}`}`,
        { status, fault: isHtml ? 'html' : undefined },
      )
    },
  }
}

const text = z.string()
const nullableText = text.nullish().catch(null)
const nullableTexts = z.array(text).nullish().catch(null)
const nullableNumber = z.number().nullish().catch(null)

/**
 * A threat-flow report. Only the id must be readable. The fields after `format_type` come only when
 * the report is requested by its id.
 */
export const wireReport = z.looseObject({
  id: z.int(),
  title: nullableText,
  subtitle: nullableText,
  summary: nullableText,
  content: nullableText,
  tags: nullableTexts,
  highlights: nullableTexts,
  related_activity_uids: nullableTexts,
  created_at: nullableText,
  tenant_id: nullableNumber,
  format_type: nullableText,
  prompt_preset_uid: nullableText,
  published_at: nullableText,
  updated_at: nullableText,
  reading_time: nullableNumber,
  organization_id: nullableNumber,
  intel_type: nullableText,
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
export type WireReportRequest = z.infer<typeof wireReportRequest>

const wireRequestedReport = z.looseObject({ request_id: text.min(1) })

/** The body that has a report made (docs/api-notes.md, Reports). */
const reportCreation = z.strictObject({
  report_title: text.min(1),
  question: text.optional(),
  time_range_type: z.enum(reportTimeRanges).optional(),
  time_range_from: text.optional(),
  time_range_to: text.optional(),
  included_keywords: z.array(text.min(1)).optional(),
  excluded_keywords: z.array(text.min(1)).optional(),
})
export type ReportCreation = z.input<typeof reportCreation>
