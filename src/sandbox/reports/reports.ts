/**
 * The requests for threat-flow reports and what became of them. A few stand from the start, under
 * ids that everybody knows: nothing described says how a request comes to be.
 */
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { SandboxEvent } from '../history/sandbox-event.ts'
import type { SandboxSettings } from '../options.ts'
import { createRandom } from '../random.ts'
import type { Keepable } from '../state/keepable.ts'
import { isAbout } from './report-scope.ts'
import { writeReport } from './report-writer.ts'
import { reportRequest, type ReportRequest, type SandboxReport } from './sandbox-report.ts'

/** Requests of the first group's tenant: one completed, one processing at first, one in error. */
export const knownReportRequests = {
  completed: '7e5f1c70-0000-4000-8000-000000000001',
  processing: '7e5f1c70-0000-4000-8000-000000000002',
  error: '7e5f1c70-0000-4000-8000-000000000003',
} as const

export interface ReportSupply {
  /** Without a tenant: the first group's; without a time: ready after `reportMs`. */
  addReportRequest: (given?: GivenRequest) => ReportRequest
}

type GivenRequest = Partial<Omit<ReportRequest, 'reportId' | 'report'>>

export interface Reports extends ReportSupply, Keepable {
  request(id: string): ReportRequest | undefined
  requestOfReport(reportId: number): ReportRequest | undefined
  /** 'processing' and 'error' have no report. */
  stateOf(request: ReportRequest): SandboxReport | 'processing' | 'error'
}

export interface ReportParts {
  settings: SandboxSettings
  events: () => readonly SandboxEvent[]
}

const firstReportId = 9001

export function createReports({ settings, events }: ReportParts): Reports {
  const { now, groups } = settings
  const random = createRandom(settings.seed + 8)
  const requests = new Map<string, ReportRequest>()

  function addReportRequest(given: GivenRequest = {}): ReportRequest {
    const fails = random.chance(settings.reportErrorShare) || given.title?.includes('[error]')
    const outcome = fails ? 'error' : 'completed'
    const plain = plainRequest(settings, given.tenantId ?? groups[0]?.tenantId ?? 0)
    const reportId = firstReportId + requests.size
    const request: ReportRequest = { ...plain, outcome, ...given, reportId, report: null }
    if (requests.has(request.id)) throw new Error(`the sandbox has a request ${request.id}`)
    requests.set(request.id, request)
    return request
  }

  function reportOf(request: ReportRequest): SandboxReport {
    const own = groups.filter(({ tenantId }) => tenantId === request.tenantId)
    const about = isAbout(request, new Set(own.map(({ id }) => id)))
    return writeReport(request, events().filter(about))
  }

  const { completed, processing, error } = knownReportRequests
  addReportRequest({ id: completed, readyAtMs: now(), outcome: 'completed' })
  addReportRequest({ id: processing, outcome: 'completed' })
  addReportRequest({ id: error, readyAtMs: now(), outcome: 'error' })
  return {
    addReportRequest,
    request: (id) => requests.get(id.toLowerCase()),
    requestOfReport: (reportId) =>
      [...requests.values()].find((request) => request.reportId === reportId),
    stateOf(request) {
      if (now() < request.readyAtMs) return 'processing'
      if (request.outcome === 'error') return 'error'
      return (request.report ??= reportOf(request))
    },
    snapshot: () => [...requests.values()],
    restore(kept) {
      const state = z.array(reportRequest).parse(kept)
      requests.clear()
      for (const request of state) requests.set(request.id, request)
    },
  }
}

function plainRequest(
  { now, reportMs, organizations }: SandboxSettings,
  tenantId: number,
): Omit<ReportRequest, 'outcome' | 'reportId' | 'report'> {
  const owner = organizations.find(({ keys }) =>
    keys.some(({ tenants }) => tenants.includes(tenantId)),
  )
  return {
    id: randomUUID(),
    tenantId,
    organizationId: owner?.id ?? 0,
    title: 'What was said about us',
    question: null,
    range: 'all',
    fromMs: null,
    toMs: null,
    includes: [],
    excludes: [],
    readyAtMs: now() + reportMs,
  }
}
