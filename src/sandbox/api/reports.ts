/** Threat-flow reports: requested, listed and read over HTTP. One exists from the start. */
import { randomUUID } from 'node:crypto'
import { reportOperations } from '../../upstream/resources/reports.ts'
import type { SandboxEvent } from '../history/history.ts'
import type { SandboxSettings } from '../options.ts'
import { formatOffsetTime } from '../times.ts'
import { inOrder, type Pages, toWirePage } from './pages.ts'
import { type Caller, on, Refusal, requireOwn, type Route } from './routes.ts'

/** A request for a report: `processing` until `readyAtMs`, then the report. */
interface ReportRequest {
  id: string
  reportId: number
  tenantId: number
  title: string
  question: string | null
  readyAtMs: number
}

export interface Reports {
  all: () => readonly ReportRequest[]
  /** Adds a request. Default tenant: the first group's. Default time: ready after `reportMs`. */
  addReportRequest: (given?: Partial<Omit<ReportRequest, 'reportId'>>) => ReportRequest
  /** The report as soon as it is ready, about what had arrived by then. */
  read: (request: ReportRequest) => Report | 'processing'
}

const firstReportId = 9001

export function createReports(
  { now, groups, reportMs }: SandboxSettings,
  events: () => readonly SandboxEvent[],
): Reports {
  const requests: ReportRequest[] = []

  const addReportRequest: Reports['addReportRequest'] = (given = {}) => {
    const request = {
      id: randomUUID(),
      tenantId: groups[0]?.tenantId ?? 0,
      title: 'What was said about us',
      question: null,
      readyAtMs: now() + reportMs,
      ...given,
      reportId: firstReportId + requests.length,
    }
    requests.push(request)
    return request
  }

  addReportRequest({ readyAtMs: now() })
  return {
    all: () => requests,
    addReportRequest,
    read(request) {
      if (now() < request.readyAtMs) return 'processing'
      const own = groups.filter(({ tenantId }) => tenantId === request.tenantId)
      const about = events().filter(
        (event) =>
          !('raw' in event) &&
          event.arrivedAtMs <= request.readyAtMs &&
          own.some(({ id }) => event.groupIds.includes(id)),
      )
      return writeReport(request, about)
    },
  }
}

export function reportRoutes(reports: Reports, pages: Pages): Route[] {
  const requireReport = (id: number | string, caller: Caller): Report => {
    const found = reports.all().find(({ reportId }) => reportId === Number(id))
    const report = reports.read(requireOwn(found, 'report', caller))
    if (typeof report === 'object') return report
    throw new Refusal(404, 'no such report')
  }
  return [
    on(reportOperations.request, ({ report_title: title, question = null }, { tenantId }) => ({
      request_id: reports.addReportRequest({ title, question, tenantId }).id,
    })),
    on(reportOperations.getByRequest, ({ request_info_id }, caller) => {
      const id = String(request_info_id).toLowerCase()
      const found = reports.all().find((one) => one.id === id)
      const report = reports.read(requireOwn(found, 'report', caller))
      if (typeof report === 'string') return { status: report, report: null }
      return { status: 'completed', report }
    }),
    on(
      reportOperations.list,
      ({ size = 10, order = 'desc', report_types: types, from }, caller) => {
        const own = reports.all().filter(({ tenantId }) => tenantId === caller.tenantId)
        const ready = own.map(reports.read).filter((report) => typeof report === 'object')
        const entries = inOrder(types?.includes('custom') === false ? [] : ready)
        const scan = ['reports', size, order, types]
        return toWirePage(
          pages.read({ scan, entries, order, size, from }),
          ({ createdAtMs: _at, uid: _uid, ...report }) => report,
        )
      },
    ),
    on(reportOperations.get, ({ report_id: id }, caller) => ({
      report: requireReport(id, caller),
    })),
    on(reportOperations.download, ({ report_id: id, format }, caller) => {
      const { content } = requireReport(id, caller)
      void caller.reply.type(files[format].type)
      return Buffer.from(files[format].signature + content)
    }),
  ]
}

/** A file is the text of its report behind the signature of its format, which is all that is read. */
const files = {
  docx: {
    type: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
    signature: 'PK\u0003\u0004',
  },
  pdf: { type: 'application/pdf', signature: '%PDF-1.4\n' },
}

interface Report {
  content: string
  created_at: string
  [field: string]: unknown
}

const maxEvents = 20
const maxHighlights = 5

/** Writes a report about `events` in their own words, which an attacker may have written. */
function writeReport(request: ReportRequest, events: readonly SandboxEvent[]): Report {
  const { title, question } = request
  const newest = events.toSorted((a, b) => b.createdAtMs - a.createdAtMs).slice(0, maxEvents)
  const lines = newest.map(formatEvent)
  const asked = question === null ? '' : `The question was: ${question}\n\n`
  const summary = `${asked}${events.length} events were seen.`
  const list = newest.map(({ uid }, index) => `- ${lines[index]} (\`${uid}\`)`).join('\n')
  return {
    id: request.reportId,
    title,
    subtitle: `${events.length} events`,
    summary,
    content: [`# ${title}`, '## Summary', summary, '## Events', list].join('\n\n'),
    tags: [...new Set(newest.map(({ type }) => type))].slice(0, 3),
    highlights: lines.slice(0, maxHighlights),
    related_activity_uids: newest.map(({ uid }) => uid),
    created_at: formatOffsetTime(request.readyAtMs),
    tenant_id: request.tenantId,
    format_type: 'simple_summary',
  }
}

function formatEvent({ severity, type, identifiers, highlights }: SandboxEvent): string {
  const [words = ''] = Object.values(highlights).flat()
  const excerpt = words.replaceAll(/<\/?mark>/g, '').replaceAll(/\s+/g, ' ')
  const about = identifiers.map(({ name }) => name).join(', ')
  return `${severity}: ${type} about ${about}${excerpt && `: ${excerpt.slice(0, 120)}`}`
}
