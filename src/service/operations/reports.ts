/** Threat-flow reports: read by their id, or by the id of the request that has them made. */
import {
  wireReportAnswer,
  wireReportRequest,
  type WireReport,
  type WireReportRequest,
} from '../wire/reports.ts'
import { pathPart, read, type Asked, type OperationParts } from './operation.ts'

const root = '/firework/v4/threat_flow/reports'

/** All of the basic tier. */
export interface ReportOperations {
  /** `GET /firework/v4/threat_flow/reports/{id}`. */
  getReport(request: { id: number } & Asked): Promise<WireReport>
  /** How far a request is, and its report once that is made. `GET …/reports/requests/{id}`. */
  getReportRequest(request: { requestId: string } & Asked): Promise<WireReportRequest>
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
