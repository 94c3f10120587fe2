/**
 * The requests for threat-flow reports and what became of them. A few stand from the start, under
 * ids that everybody knows: nothing described says how a request comes to be.
 */
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { SandboxEvent } from '../history/history.ts'
import { createRandom, hashOf, type Random, type SandboxSettings } from '../options.ts'
import type { Keepable } from '../state/data-folder.ts'

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

interface ReportParts {
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

export const timeRangeTypes = [
  'all',
  'last_24h',
  'last_2d',
  'last_7d',
  'last_1m',
  'last_3m',
  'last_6m',
  'range',
] as const

/** What a threat-flow report shall be about. */
const reportWish = z.object({
  title: z.string(),
  question: z.string().nullable(),
  range: z.enum(timeRangeTypes),
  /** Bounds of the range `range`; null: open. */
  fromMs: z.number().nullable(),
  toMs: z.number().nullable(),
  /** One of them at least, none of them; by words of the event, whatever their case. */
  includes: z.array(z.string()),
  excludes: z.array(z.string()),
})
export type ReportWish = z.infer<typeof reportWish>

/** A report as the sandbox holds it; the wire shape is made at each reading. */
const sandboxReport = z.object({
  id: z.int(),
  title: z.string(),
  subtitle: z.string().nullable(),
  summary: z.string(),
  /** Markdown. */
  content: z.string(),
  tags: z.array(z.string()),
  highlights: z.array(z.string()),
  relatedUids: z.array(z.string()),
  createdAtMs: z.number(),
  publishedAtMs: z.number().nullable(),
  tenantId: z.int().nullable(),
  organizationId: z.int().nullable(),
  formatType: z.string(),
  intelType: z.string(),
  presetUid: z.string().nullable(),
  readingMinutes: z.int(),
})
export type SandboxReport = z.infer<typeof sandboxReport>

/** A request for a report: `processing` until `readyAtMs`, then what `outcome` says. */
const reportRequest = reportWish.extend({
  id: z.string(),
  reportId: z.int(),
  tenantId: z.int(),
  organizationId: z.int(),
  readyAtMs: z.number(),
  outcome: z.enum(['completed', 'error']),
  /** Written when it is first read; null until then. */
  report: sandboxReport.nullable(),
})
export type ReportRequest = z.infer<typeof reportRequest>

/** Which events a report is about. */

const dayMs = 86_400_000

const spans: Record<Exclude<ReportWish['range'], 'all' | 'range'>, number> = {
  last_24h: dayMs,
  last_2d: 2 * dayMs,
  last_7d: 7 * dayMs,
  last_1m: 30 * dayMs,
  last_3m: 90 * dayMs,
  last_6m: 180 * dayMs,
}

/** Those of the request's tenant that had arrived when it was ready, by time and by words. */
function isAbout(
  request: ReportRequest,
  tenantGroups: ReadonlySet<number>,
): (event: SandboxEvent) => boolean {
  const [fromMs, toMs] = boundsOf(request)
  const includes = request.includes.map(lowered)
  const excludes = request.excludes.map(lowered)
  return (event) => {
    const isThere =
      !('raw' in event) &&
      event.arrivedAtMs <= request.readyAtMs &&
      event.groupIds.some((id) => tenantGroups.has(id))
    if (!isThere || event.createdAtMs < fromMs || event.createdAtMs > toMs) return false
    if (includes.length === 0 && excludes.length === 0) return true
    const text = lowered(
      JSON.stringify([event.type, event.identifiers, event.highlights, event.data]),
    )
    const isIncluded = includes.length === 0 || includes.some((word) => text.includes(word))
    return isIncluded && !excludes.some((word) => text.includes(word))
  }
}

function boundsOf({ range, fromMs, toMs, readyAtMs }: ReportRequest): [number, number] {
  switch (range) {
    case 'all':
      return [-Infinity, Infinity]
    case 'range':
      return [fromMs ?? -Infinity, toMs ?? Infinity]
    case 'last_24h':
    case 'last_2d':
    case 'last_7d':
    case 'last_1m':
    case 'last_3m':
    case 'last_6m':
      return [readyAtMs - spans[range], readyAtMs]
  }
}

function lowered(text: string): string {
  return text.toLowerCase()
}

/** Writes a report about events that the sandbox has, in plain counts and their own words. */

const formatTypes = ['simple_summary', 'expanded_summary', 'finished_intel_standard'] as const
const intelTypes = ['unit_summary_based', 'custom_intel'] as const
const severities = ['critical', 'high', 'medium', 'low', 'info']

const mostEvents = 20
const mostHighlights = 5
const wordsPerMinute = 200

/** `events`: all that it is about. The same request and events make the same report. */
function writeReport(request: ReportRequest, events: readonly SandboxEvent[]): SandboxReport {
  const random = createRandom(hashOf(request.id))
  const told = events.toSorted(worstAndNewestFirst).slice(0, mostEvents)
  const types = countsOf(events.map(({ type }) => type))
  const summary = summaryOf(request, events, types)
  const content = contentOf(request, { summary, types, told })
  return {
    id: request.reportId,
    title: request.title,
    subtitle: sometimesNull(random, `${events.length} events, ${types.length} kinds`),
    summary,
    content,
    tags: [...types.slice(0, 3).map(([type]) => type), ...worstOf(told)],
    highlights: told.slice(0, mostHighlights).map(lineOf),
    relatedUids: told.map(({ uid }) => uid),
    createdAtMs: request.readyAtMs,
    publishedAtMs: sometimesNull(random, request.readyAtMs),
    tenantId: sometimesNull(random, request.tenantId),
    organizationId: sometimesNull(random, request.organizationId),
    formatType: random.pick(formatTypes),
    intelType: random.pick(intelTypes),
    presetUid: sometimesNull(random, `preset-${random.hex(8)}`),
    readingMinutes: Math.ceil(content.split(/\s+/).length / wordsPerMinute),
  }
}

/** Makes a field null now and then, as the service may (docs/api-notes.md, Reports). */
function sometimesNull<Value>(random: Random, value: Value): Value | null {
  return random.chance(0.2) ? null : value
}

function summaryOf(
  { question }: ReportRequest,
  events: readonly SandboxEvent[],
  types: readonly [string, number][],
): string {
  const asked = question === null ? '' : `The question was: ${question}\n\n`
  if (events.length === 0) return `${asked}Nothing was seen in this time.`
  const times = events.map(({ createdAtMs }) => createdAtMs)
  const first = times.reduce((left, right) => Math.min(left, right))
  const last = times.reduce((left, right) => Math.max(left, right))
  const subjects = countsOf(events.flatMap((event) => event.identifiers.map(({ name }) => name)))
  return [
    `${asked}Between ${dayOf(first)} and ${dayOf(last)}, ${events.length} events were seen: ${inWords(types)}.`,
    subjects.length === 0 ? 'None names an asset.' : `They concern ${inWords(subjects)}.`,
  ].join('\n\n')
}

function contentOf(
  { title }: ReportRequest,
  parts: { summary: string; types: readonly [string, number][]; told: readonly SandboxEvent[] },
): string {
  const rows = parts.types.map(([type, count]) => `| ${type} | ${count} |`)
  return [
    `# ${title}`,
    '## Summary',
    parts.summary,
    '## Activity by kind',
    ['| Kind | Events |', '|---|---|', ...rows].join('\n'),
    '## Events',
    parts.told.map((event) => `- ${lineOf(event)} (\`${event.uid}\`)`).join('\n'),
  ].join('\n\n')
}

/** In the event's own words, which an attacker may have written. */
function lineOf(event: SandboxEvent): string {
  const [words = ''] = Object.values(event.highlights).flat()
  const said = words.replaceAll(/<\/?mark>/g, '').replaceAll(/\s+/g, ' ')
  const about = event.identifiers.map(({ name }) => name).join(', ') || 'nothing watched'
  return `${event.severity}: ${event.type} about ${about}${said && `: ${said.slice(0, 120)}`}`
}

function worstOf(told: readonly SandboxEvent[]): string[] {
  return told.slice(0, 1).map(({ severity }) => severity)
}

function worstAndNewestFirst(left: SandboxEvent, right: SandboxEvent): number {
  return rankOf(left) - rankOf(right) || right.createdAtMs - left.createdAtMs
}

/** A word that no list has ranks with the worst. */
function rankOf({ severity }: SandboxEvent): number {
  return Math.max(0, severities.indexOf(severity))
}

/** The most frequent first. */
function countsOf(words: readonly string[]): [string, number][] {
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  return [...counts].toSorted(([, left], [, right]) => right - left)
}

function inWords(counts: readonly [string, number][]): string {
  return counts
    .slice(0, 8)
    .map(([word, count]) => `${word} (${count})`)
    .join(', ')
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
