/** Threat-flow reports over HTTP: requesting one, and reading it by its request or by its id. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { reportFileFormats, reportTimeRanges } from '../../upstream/resources/enumerations.ts'
import type { WireReport } from '../../upstream/resources/reports.ts'
import { parseInstant } from '../api/filters.ts'
import { findGrant, type Tokens } from '../api/guard.ts'
import { type RequestLog, sendError, validationEntry } from '../server.ts'
import { makeReportFile, reportFileTypes } from './files.ts'
import {
  type ReportRequest,
  type Reports,
  type ReportQuestion,
  type SandboxReport,
} from './reports.ts'

interface ReportRequestParts {
  reports: Reports
  tokens: Tokens
  log: RequestLog
}

const reportsPath = '/firework/v4/threat_flow/reports'
const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

export function addReports(
  app: FastifyInstance,
  { reports, tokens, log }: ReportRequestParts,
): void {
  const tenantOf = (request: FastifyRequest): number | null =>
    findGrant(request, tokens)?.tenantId ?? null

  app.post(`${reportsPath}/requests`, (request, reply) => {
    const parsed = parseReportBody(log.entryFor(request).body)
    if ('detail' in parsed) return reply.code(422).send(parsed)
    const grant = findGrant(request, tokens)
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
    const state = reports.readState(found)
    if (typeof state === 'string') return reply.send({ status: state, report: null })
    return reply.send({ status: 'completed', report: toReportItem(state) })
  })
  app.get(`${reportsPath}/`, (request, reply) => {
    const parsed = listQuery.safeParse(request.query)
    if (!parsed.success) {
      const detail = parsed.error.issues.map(({ path, message }) =>
        validationEntry(['query', ...path.map(String)], message),
      )
      return reply.code(422).send({ detail })
    }
    const own = reports.all().filter(({ tenantId }) => tenantId === tenantOf(request))
    const ready = own.flatMap((one) => {
      const state = reports.readState(one)
      return typeof state === 'string' ? [] : [toFullReport(state)]
    })
    const { from: start, size, order, report_types: types } = parsed.data
    const wanted = types.includes('custom') ? ready : [] // the sandbox makes no other
    const sorted = order === 'asc' ? wanted : wanted.toReversed()
    const end = start + size
    const next = end < sorted.length ? String(end) : null
    return reply.send({ items: sorted.slice(start, end), next })
  })
  app.get(`${reportsPath}/:id`, (request, reply) => {
    const { id } = request.params as { id: string }
    if (!/^\d+$/.test(id)) return refusePath(reply, 'report_id', id)
    const found = reports.requestOfReport(Number(id))
    if (!isOwn(reply, found, tenantOf(request))) return reply
    const state = reports.readState(found)
    if (typeof state === 'string') return refuseUnknown(reply)
    return reply.send({ report: toFullReport(state) })
  })
  addDownload(app, reports, tenantOf)
}

function addDownload(
  app: FastifyInstance,
  reports: Reports,
  tenantOf: (request: FastifyRequest) => number | null,
): void {
  app.get(`${reportsPath}/:id/download`, (request, reply) => {
    const { id } = request.params as { id: string }
    if (!/^\d+$/.test(id)) return refusePath(reply, 'report_id', id)
    const parsed = downloadQuery.safeParse(request.query)
    if (!parsed.success) {
      const entry = validationEntry(['query', 'format'], 'neither docx nor pdf')
      return reply.code(422).send({ detail: [entry] })
    }
    const found = reports.requestOfReport(Number(id))
    if (!isOwn(reply, found, tenantOf(request))) return reply
    const state = reports.readState(found)
    if (typeof state === 'string') return refuseUnknown(reply)
    const { format } = parsed.data
    return reply.type(reportFileTypes[format]).send(makeReportFile(state, format))
  })
}

const downloadQuery = z.object({ format: z.enum(reportFileFormats).default('docx') })

const listQuery = z.object({
  from: z.coerce.number().int().min(0).default(0),
  size: z.coerce.number().int().min(1).default(10),
  order: z.enum(['asc', 'desc']).default('desc'),
  report_types: z
    .preprocess(
      (value) => (typeof value === 'string' ? [value] : value),
      z.array(z.enum(['custom', 'standard'])),
    )
    .default(['custom', 'standard']),
})

/** Whether the request is the tenant's; sends 404 or 403 if it is not. */
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

/** The body of a request for a report (docs/api-notes.md, Reports). Unknown fields are refused. */
const time = z.string().refine((text) => !Number.isNaN(parseInstant(text)), 'not a date-time')
const keywords = z.array(z.string().min(1)).nullish()

const reportBody = z
  .strictObject({
    report_title: z.string().min(1),
    question: z.string().nullish(),
    time_range_type: z.enum(reportTimeRanges).default('all'),
    time_range_from: time.nullish(),
    time_range_to: time.nullish(),
    included_keywords: keywords,
    excluded_keywords: keywords,
  })
  .refine((body) => body.time_range_type !== 'range' || body.time_range_from, {
    path: ['time_range_from'],
    message: 'required with time_range_type range',
  })

/** Returns the question, or the `detail` of a 422. */
function parseReportBody(
  body: unknown,
): { wish: ReportQuestion } | { detail: Record<string, unknown>[] } {
  const parsed = reportBody.safeParse(body ?? {})
  if (parsed.success) return { wish: toQuestion(parsed.data) }
  return {
    detail: parsed.error.issues.map(({ path, message }) =>
      validationEntry(['body', ...path.map(String)], message),
    ),
  }
}

function toQuestion(body: z.infer<typeof reportBody>): ReportQuestion {
  return {
    title: body.report_title,
    question: body.question ?? null,
    range: body.time_range_type,
    fromMs: body.time_range_from ? parseInstant(body.time_range_from) : null,
    toMs: body.time_range_to ? parseInstant(body.time_range_to) : null,
    includes: body.included_keywords ?? [],
    excludes: body.excluded_keywords ?? [],
  }
}

/** A report as its request shows it; `toFullReport` is its shape when read by its id. */
function toReportItem(report: SandboxReport): WireReport {
  return {
    id: report.id,
    title: report.title,
    subtitle: report.subtitle,
    summary: report.summary,
    content: report.content,
    tags: report.tags,
    highlights: report.highlights,
    related_activity_uids: report.relatedUids,
    created_at: formatOffsetTime(report.createdAtMs),
    tenant_id: report.tenantId,
    format_type: report.formatType,
  }
}

function toFullReport(report: SandboxReport): WireReport {
  const { publishedAtMs } = report
  return {
    ...toReportItem(report),
    prompt_preset_uid: report.presetUid,
    published_at: publishedAtMs === null ? null : formatOffsetTime(publishedAtMs),
    updated_at: formatOffsetTime(report.createdAtMs),
    reading_time: report.readingMinutes,
    organization_id: report.organizationId,
    intel_type: report.intelType,
  }
}

/** Six fractional digits and an offset, as the API has been seen to write times. */
function formatOffsetTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -1)}000+00:00`
}
