/**
 * Requests for threat-flow reports, and their reports. A few exist from the start under fixed ids,
 * since the API description does not say how a request is created.
 */
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { reportTimeRanges } from '../../upstream/resources/enumerations.ts'
import type { SandboxEvent } from '../history/history.ts'
import { createRandom, hashText, type Random, type SandboxSettings } from '../options.ts'
import type { Persistent } from '../state/data-folder.ts'

/** Requests of the first group's tenant: one completed, one processing at first, one failed. */
export const knownReportRequests = {
  completed: '7e5f1c70-0000-4000-8000-000000000001',
  processing: '7e5f1c70-0000-4000-8000-000000000002',
  error: '7e5f1c70-0000-4000-8000-000000000003',
} as const

export interface ReportSupply {
  /** Adds a request. Default tenant: the first group's. Default time: ready after `reportMs`. */
  addReportRequest: (given?: GivenRequest) => ReportRequest
}

type GivenRequest = Partial<Omit<ReportRequest, 'reportId' | 'report'>>

export interface Reports extends ReportSupply, Persistent {
  request(id: string): ReportRequest | undefined
  requestOfReport(reportId: number): ReportRequest | undefined
  /** All requests in order of arrival. */
  all(): readonly ReportRequest[]
  /** Returns the report once it is ready; 'processing' and 'error' have none. */
  readState(request: ReportRequest): SandboxReport | 'processing' | 'error'
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
    const isFailing = random.chance(settings.reportErrorShare) || given.title?.includes('[error]')
    const outcome = isFailing ? 'error' : 'completed'
    const defaults = defaultRequest(settings, given.tenantId ?? groups[0]?.tenantId ?? 0)
    const reportId = firstReportId + requests.size
    const request: ReportRequest = { ...defaults, outcome, ...given, reportId, report: null }
    if (requests.has(request.id)) throw new Error(`the sandbox has a request ${request.id}`)
    requests.set(request.id, request)
    return request
  }

  function writeReportFor(request: ReportRequest): SandboxReport {
    const own = groups.filter(({ tenantId }) => tenantId === request.tenantId)
    const about = reportFilter(request, new Set(own.map(({ id }) => id)))
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
    all: () => [...requests.values()],
    readState(request) {
      if (now() < request.readyAtMs) return 'processing'
      if (request.outcome === 'error') return 'error'
      return (request.report ??= writeReportFor(request))
    },
    snapshot: () => [...requests.values()],
    restore(snapshot) {
      const state = z.array(reportRequest).parse(snapshot)
      requests.clear()
      for (const request of state) requests.set(request.id, request)
    },
  }
}

function defaultRequest(
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

/** What a threat-flow report is about. */
const reportQuestion = z.object({
  title: z.string(),
  question: z.string().nullable(),
  range: z.enum(reportTimeRanges),
  /** Bounds for `range: 'range'`; null: open. */
  fromMs: z.number().nullable(),
  toMs: z.number().nullable(),
  /**
   * Words of the event, ignoring case: it must contain one of `includes` and none of `excludes`.
   */
  includes: z.array(z.string()),
  excludes: z.array(z.string()),
})
export type ReportQuestion = z.infer<typeof reportQuestion>

/** A report as the sandbox stores it; its wire shape is made on each read. */
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
const reportRequest = reportQuestion.extend({
  id: z.string(),
  reportId: z.int(),
  tenantId: z.int(),
  organizationId: z.int(),
  readyAtMs: z.number(),
  outcome: z.enum(['completed', 'error']),
  /** Written on first read; null until then. */
  report: sandboxReport.nullable(),
})
export type ReportRequest = z.infer<typeof reportRequest>

const dayMs = 86_400_000

const rangeLengths: Record<Exclude<ReportQuestion['range'], 'all' | 'range'>, number> = {
  last_24h: dayMs,
  last_2d: 2 * dayMs,
  last_7d: 7 * dayMs,
  last_1m: 30 * dayMs,
  last_3m: 90 * dayMs,
  last_6m: 180 * dayMs,
}

/**
 * Matches events of the request's tenant that had arrived when the report was ready, by time and by
 * words.
 */
function reportFilter(
  request: ReportRequest,
  tenantGroups: ReadonlySet<number>,
): (event: SandboxEvent) => boolean {
  const [fromMs, toMs] = resolveBounds(request)
  const includes = request.includes.map(toLower)
  const excludes = request.excludes.map(toLower)
  return (event) => {
    const isThere =
      !('raw' in event) &&
      event.arrivedAtMs <= request.readyAtMs &&
      event.groupIds.some((id) => tenantGroups.has(id))
    if (!isThere || event.createdAtMs < fromMs || event.createdAtMs > toMs) return false
    if (includes.length === 0 && excludes.length === 0) return true
    const text = toLower(
      JSON.stringify([event.type, event.identifiers, event.highlights, event.data]),
    )
    const isIncluded = includes.length === 0 || includes.some((word) => text.includes(word))
    return isIncluded && !excludes.some((word) => text.includes(word))
  }
}

function resolveBounds({ range, fromMs, toMs, readyAtMs }: ReportRequest): [number, number] {
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
      return [readyAtMs - rangeLengths[range], readyAtMs]
  }
}

function toLower(text: string): string {
  return text.toLowerCase()
}

const formatTypes = ['simple_summary', 'expanded_summary', 'finished_intel_standard'] as const
const intelTypes = ['unit_summary_based', 'custom_intel'] as const
const severities = ['critical', 'high', 'medium', 'low', 'info']

const maxEvents = 20
const maxHighlights = 5
const wordsPerMinute = 200

/**
 * Writes a report about `events`, from counts and the events' own words. The same request and
 * events give the same report.
 */
function writeReport(request: ReportRequest, events: readonly SandboxEvent[]): SandboxReport {
  const random = createRandom(hashText(request.id))
  const listed = events.toSorted(worstAndNewestFirst).slice(0, maxEvents)
  const types = countWords(events.map(({ type }) => type))
  const summary = writeSummary(request, events, types)
  const content = writeContent(request, { summary, types, told: listed })
  return {
    id: request.reportId,
    title: request.title,
    subtitle: sometimesNull(random, `${events.length} events, ${types.length} kinds`),
    summary,
    content,
    tags: [...types.slice(0, 3).map(([type]) => type), ...worstSeverity(listed)],
    highlights: listed.slice(0, maxHighlights).map(formatEvent),
    relatedUids: listed.map(({ uid }) => uid),
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

/** Makes a field null now and then, as the API may (docs/api-notes.md, Reports). */
function sometimesNull<Value>(random: Random, value: Value): Value | null {
  return random.chance(0.2) ? null : value
}

function writeSummary(
  { question }: ReportRequest,
  events: readonly SandboxEvent[],
  types: readonly [string, number][],
): string {
  const questionText = question === null ? '' : `The question was: ${question}\n\n`
  if (events.length === 0) return `${questionText}Nothing was seen in this time.`
  const times = events.map(({ createdAtMs }) => createdAtMs)
  const first = times.reduce((left, right) => Math.min(left, right))
  const last = times.reduce((left, right) => Math.max(left, right))
  const subjects = countWords(events.flatMap((event) => event.identifiers.map(({ name }) => name)))
  return [
    `${questionText}Between ${formatDay(first)} and ${formatDay(last)}, ${events.length} events were seen: ${formatCounts(types)}.`,
    subjects.length === 0 ? 'None names an asset.' : `They concern ${formatCounts(subjects)}.`,
  ].join('\n\n')
}

function writeContent(
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
    parts.told.map((event) => `- ${formatEvent(event)} (\`${event.uid}\`)`).join('\n'),
  ].join('\n\n')
}

/** Formats an event in its own words, which an attacker may have written. */
function formatEvent(event: SandboxEvent): string {
  const [words = ''] = Object.values(event.highlights).flat()
  const excerpt = words.replaceAll(/<\/?mark>/g, '').replaceAll(/\s+/g, ' ')
  const about = event.identifiers.map(({ name }) => name).join(', ') || 'nothing watched'
  return `${event.severity}: ${event.type} about ${about}${excerpt && `: ${excerpt.slice(0, 120)}`}`
}

function worstSeverity(listed: readonly SandboxEvent[]): string[] {
  return listed.slice(0, 1).map(({ severity }) => severity)
}

function worstAndNewestFirst(left: SandboxEvent, right: SandboxEvent): number {
  return rankSeverity(left) - rankSeverity(right) || right.createdAtMs - left.createdAtMs
}

/** An unknown severity ranks with the worst. */
function rankSeverity({ severity }: SandboxEvent): number {
  return Math.max(0, severities.indexOf(severity))
}

/** Counts the words, most frequent first. */
function countWords(words: readonly string[]): [string, number][] {
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  return [...counts].toSorted(([, left], [, right]) => right - left)
}

function formatCounts(counts: readonly [string, number][]): string {
  return counts
    .slice(0, 8)
    .map(([word, count]) => `${word} (${count})`)
    .join(', ')
}

function formatDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
