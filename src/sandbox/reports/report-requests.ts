/** Threat-flow reports over HTTP: asking for one, and reading it by its request or by its id. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { grantOf } from '../api/gate.ts'
import type { Tokens } from '../api/tokens.ts'
import { sendError, validationEntry } from '../error-bodies.ts'
import type { RequestLog } from '../request-log.ts'
import { parseReportBody } from './report-body.ts'
import { fullReportOf, reportItemOf } from './report-item.ts'
import type { Reports } from './reports.ts'
import type { ReportRequest } from './sandbox-report.ts'

interface Parts {
  reports: Reports
  tokens: Tokens
  log: RequestLog
}

const reportsPath = '/firework/v4/threat_flow/reports'
const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

export function addReports(app: FastifyInstance, { reports, tokens, log }: Parts): void {
  const tenantOf = (request: FastifyRequest): number | null =>
    grantOf(request, tokens)?.tenantId ?? null

  app.post(`${reportsPath}/requests`, (request, reply) => {
    const parsed = parseReportBody(log.entryOf(request).body)
    if ('detail' in parsed) return reply.code(422).send(parsed)
    const grant = grantOf(request, tokens)
    const { id } = reports.addReportRequest({
      ...parsed.wish,
      ...(grant && { tenantId: grant.tenantId, organizationId: grant.organizationId }),
    })
    return reply.send({ request_id: id })
  })
  app.get(`${reportsPath}/requests/:id`, (request, reply) => {
    const { id } = request.params as { id: string }
    if (!uuid.test(id)) return refusePath(reply, 'request_info_id', id)
    const found = reports.request(id)
    if (!isOwn(reply, found, tenantOf(request))) return reply
    const state = reports.stateOf(found)
    if (typeof state === 'string') return reply.send({ status: state, report: null })
    return reply.send({ status: 'completed', report: reportItemOf(state) })
  })
  app.get(`${reportsPath}/:id`, (request, reply) => {
    const { id } = request.params as { id: string }
    if (!/^\d+$/.test(id)) return refusePath(reply, 'report_id', id)
    const found = reports.requestOfReport(Number(id))
    if (!isOwn(reply, found, tenantOf(request))) return reply
    const state = reports.stateOf(found)
    if (typeof state === 'string') return refuseUnknown(reply)
    return reply.send({ report: fullReportOf(state) })
  })
}

/** Answers 404 or 403 where it is not. */
function isOwn(
  reply: FastifyReply,
  request: ReportRequest | undefined,
  tenantId: number | null,
): request is ReportRequest {
  if (!request) refuseUnknown(reply)
  else if (request.tenantId !== tenantId) {
    sendError(reply, { status: 403, message: 'a report of another tenant' })
  }
  return request?.tenantId === tenantId
}

function refuseUnknown(reply: FastifyReply): FastifyReply {
  return sendError(reply, { status: 404, message: 'no such report' })
}

function refusePath(reply: FastifyReply, name: string, input: string): FastifyReply {
  const what = name === 'report_id' ? 'not an integer' : 'not a UUID'
  return reply.code(422).send({ detail: [validationEntry(['path', name], what, input)] })
}
