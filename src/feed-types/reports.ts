/**
 * Feeds of reports in progress: each request is polled less and less often until it ends or times
 * out, and its outcome becomes one event. The progress of each request is kept in the notes of the
 * scan.
 */
import { blankEvent, type ThreatEvent } from '../event.ts'
import { cut, withhold, withholdIn, withholdTag } from '../masking/masking.ts'
import type { Scan } from '../store/feed-state.ts'
import { UpstreamError } from '../upstream/error.ts'
import type { WireSearchPage } from '../upstream/resources/page.ts'
import { reportOperations } from '../upstream/resources/reports.ts'
import type { ReportsFeedConfig } from './config.ts'
import type { FeedPage, FeedRequest, FeedType, Polled } from './feed-type.ts'
import {
  createFieldReader,
  type FieldReader,
  readId,
  type JsonObject,
  type UnreadField,
} from './field-reader.ts'

type ReportsFeed = Polled<ReportsFeedConfig>

/** The outcome of a request. */
export interface ReportOutcome {
  requestId: string
  outcome: 'completed' | 'failed' | 'refused' | 'overdue'
  /** As the API returned it; null: there is none. */
  report: unknown
}

export const reportsFeed: FeedType<ReportsFeed> = {
  pageSizes: [1],
  fingerprintParts: () => [], // requests come and go: what is known of the others stays
  body: (_feed, _span, size) => ({ size }),
  fetch: fetchReports,
  parse: (raw, feed) => ({ ok: true, event: parseReport(raw as ReportOutcome, feed.severity) }),
  maskMalformed: (raw) => withholdIn(raw),
  unordered: {
    note: noteProgress,
    endsWhenKnown: () => false,
    nextScan: ({ scan }) => ({ fromStart: true, notes: { ...scan.notes } }),
  },
}

/** The progress of a request. */
interface Progress {
  sinceMs: number
  asked: number
  nextMs: number
  /** Its end was taken in, or it is no longer polled. */
  isOver: boolean
  /** Consecutive polls at which the API did not know it. */
  unknown?: number
  /** When it was reported overdue; it is still polled. */
  overdueMs?: number
}
type Notes = Record<string, Progress>

/** The longest wait between polls, as a multiple of the first. */
const maxWaitFactor = 20
/** A request that the API does not know yet may be known at the next poll. */
const looksUntilRefused = 3
/** After this many timeouts an overdue report is given up. */
const maxTimeouts = 24

async function fetchReports(feed: ReportsFeed, request: FeedRequest): Promise<FeedPage> {
  const { nowMs, scan } = request
  const asked: Notes = {}
  const items: ReportOutcome[] = []
  let hasAnswer = false
  let failure: UpstreamError | undefined
  for (const requestId of feed.requests) {
    const progress = findProgress(scan, requestId) ?? newProgress(nowMs)
    if (progress.isOver || isWaiting(feed, progress, nowMs)) continue
    const state = await readRequestState(feed, request, requestId)
    if (!(state instanceof UpstreamError)) hasAnswer = true
    else if (isServiceFailure(state)) failure ??= state
    if (failure && blocksAllRequests(failure)) break
    const step = nextProgress(feed, progress, { requestId, state, nowMs })
    asked[requestId] = step.progress
    if (step.end) items.push(step.end)
  }
  if (failure && !hasAnswer) throw failure // answers are taken in, whatever else failed
  const page = { items, next: null, asked, requests: feed.requests }
  return { page, requestedAtMs: nowMs }
}

/** A time further ahead than any wait was noted by a machine whose clock was ahead. */
function isWaiting({ everyMs }: ReportsFeed, { nextMs }: Progress, nowMs: number): boolean {
  return nextMs > nowMs && nextMs <= nowMs + maxWaitFactor * everyMs
}

/** Drops requests that are no longer listed: a report that comes twice is recognised by its uid. */
function noteProgress({ notes }: Scan, page: WireSearchPage): Record<string, unknown> {
  const listed = new Set(page['requests'] as string[])
  const all = { ...notes, ...(page['asked'] as Notes) }
  return Object.fromEntries(Object.entries(all).filter(([id]) => listed.has(id)))
}

/** Whether the API or the key failed, rather than one request. */
function isServiceFailure(error: UpstreamError): boolean {
  return blocksAllRequests(error) || error.reason === 'unavailable' || error.reason === 'timeout'
}

/** Whether another request would fail the same way: a 429 or a refused key. */
function blocksAllRequests({ reason, status }: UpstreamError): boolean {
  return reason === 'rate_limited' || (reason === 'auth' && status !== 403)
}

type RequestState = ReportOutcome | 'processing' | 'unknown' | UpstreamError

/** A completed report without content counts as still processing. */
async function readRequestState(
  feed: ReportsFeed,
  { client, slot, signal }: FeedRequest,
  requestId: string,
): Promise<RequestState> {
  try {
    const asked = { slot, tier: feed.tier, signal }
    const request = { request_info_id: requestId }
    const { status, report } = await client.call(reportOperations.getByRequest, request, asked)
    if (status === 'completed' && hasContent(report)) {
      return { requestId, outcome: 'completed', report }
    }
    if (status === 'processing' || status === 'completed') return 'processing'
    return { requestId, outcome: 'failed', report: null }
  } catch (error) {
    if (!(error instanceof UpstreamError) || signal.aborted) throw error
    return error.reason === 'rejected' ? 'unknown' : error
  }
}

function hasContent(report: unknown): boolean {
  if (typeof report !== 'object' || report === null) return Boolean(report)
  return Object.keys(report).length > 0
}

function nextProgress(
  feed: ReportsFeed,
  before: Progress,
  { requestId, state, nowMs }: { requestId: string; state: RequestState; nowMs: number },
): { progress: Progress; end: ReportOutcome | undefined } {
  const askedCount = before.asked + 1
  const waitMs = feed.everyMs * Math.min(maxWaitFactor, 1.5 ** before.asked)
  const unknown = state === 'unknown' ? (before.unknown ?? 0) + 1 : 0
  const progress = { ...before, asked: askedCount, unknown, nextMs: nowMs + Math.floor(waitMs) }
  if (typeof state === 'object' && 'outcome' in state) {
    return { progress: { ...progress, isOver: true }, end: state }
  }
  if (unknown >= looksUntilRefused) {
    const end: ReportOutcome = { requestId, outcome: 'refused', report: null }
    return { progress: { ...progress, isOver: true }, end }
  }
  if (before.overdueMs !== undefined) {
    const isOver = nowMs - before.overdueMs >= maxTimeouts * feed.timeoutMs
    return { progress: { ...progress, isOver }, end: undefined }
  }
  if (nowMs - before.sinceMs < feed.timeoutMs) return { progress, end: undefined }
  const end: ReportOutcome = { requestId, outcome: 'overdue', report: null }
  return { progress: { ...progress, overdueMs: nowMs }, end }
}

function findProgress({ notes }: Scan, requestId: string): Progress | undefined {
  return (notes as Notes | undefined)?.[requestId]
}

function newProgress(nowMs: number): Progress {
  return { sinceMs: nowMs, asked: 0, nextMs: nowMs, isOver: false }
}

/** Limits of a stored report, whose whole text stays at the API: code units, or counts. */
const limits = {
  title: 300,
  text: 4000,
  highlights: 10,
  highlight: 500,
  related: 50,
  uid: 512,
  tags: 100,
  tag: 200,
}

/**
 * A report as an event of the type `threat_flow_report`; one that failed or is overdue as one too. Its
 * fields stand in the highlights, where `messages/describe-report.ts` reads them by these names. Never
 * throws: a report without a readable id goes by its request's, and what else cannot be read is named.
 */
export function parseReport(
  { requestId, outcome, report }: ReportOutcome,
  severity: string,
): ThreatEvent {
  const reader = createFieldReader()
  const isThere = outcome === 'completed' && report !== null
  const members = isThere ? reader.object('report', report) : {}
  const id = readId(members['id'])
  if (isThere && id === null) reader.note('id')
  const tags = reader.texts('tags', members['tags'], limits.tags)
  const texts = isThere ? readTexts(members, reader) : { outcome: [outcome] }
  return {
    // without a date, so never below the start bound: it was requested by name
    ...blankEvent('threat_flow_report'),
    uid: id === null ? `threat_flow/request/${requestId}/${outcome}` : `threat_flow/report/${id}`,
    kind: 'report',
    source: 'threat_flow',
    severity,
    tags: tags.map((tag) => cut(withholdTag(cut(tag, 4 * limits.tag)), limits.tag)),
    highlights: nonEmptyFields({ ...texts, request: [requestId] }),
    ...reader.unread(),
  }
}

function readTexts(report: JsonObject, reader: FieldReader): Record<string, string[]> {
  const text = (field: UnreadField, most: number): string[] =>
    texts(field, 1).map((one) => readText(one, most))
  const texts = (field: UnreadField, most: number): string[] =>
    reader.texts(field, report[field], most).filter((one) => one !== '')
  const summary = text('summary', limits.text)
  return {
    title: text('title', limits.title),
    subtitle: text('subtitle', limits.title),
    summary,
    highlights: texts('highlights', limits.highlights).map((one) =>
      readText(one, limits.highlight),
    ),
    related_activity_uids: texts('related_activity_uids', limits.related).map((uid) =>
      cut(uid, limits.uid),
    ),
    content: summary.length > 0 ? [] : text('content', limits.text),
    created_at: text('created_at', 40),
    format_type: text('format_type', 100),
    intel_type: text('intel_type', 100),
    reading_time: text('reading_time', 100),
  }
}

function nonEmptyFields(fields: Record<string, string[]>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(fields).filter(([, values]) => values.length > 0))
}

/** Cuts before judging too, so that a long text does not block the process. */
function readText(text: string, most: number): string {
  return cut(withhold(cut(text, 4 * most)), most)
}
