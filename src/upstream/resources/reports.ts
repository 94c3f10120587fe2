/** Threat-flow reports, read by their id or by the id of the request that generates them. */
import { z } from 'zod'
import { type CallOptions, type OperationParts, pathPart, read } from './operation.ts'

const root = '/firework/v4/threat_flow/reports'

/** All operations use the basic tier. */
export interface ReportOperations {
  /** `GET /firework/v4/threat_flow/reports/{id}`. */
  getReport(request: { id: number } & CallOptions): Promise<WireReport>
  /**
   * Returns the status of a request, and its report once completed. `GET …/reports/requests/{id}`.
   */
  getReportRequest(request: { requestId: string } & CallOptions): Promise<WireReportRequest>
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
