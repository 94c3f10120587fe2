/** The `reports` commands: threat-flow reports requested, listed, printed, and sent to sinks. */

import { type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { Command, InvalidArgumentError, Option } from 'commander'
import { parseReport } from '../../feed-types/reports.ts'
import { systemClock } from '../../lib/clock.ts'
import { duration } from '../../lib/config-fields.ts'
import { errorCode } from '../../lib/errors.ts'
import { createPrivateFile, replacePrivateFile } from '../../lib/private-files.ts'
import { maskText } from '../../masking/masking.ts'
import { createPublisher } from '../../self-alerts/publisher.ts'
import {
  orders,
  reportFileFormats,
  reportTimeRanges,
  reportTypes,
} from '../../upstream/resources/enumerations.ts'
import {
  type ReportCreation,
  type ReportFileFormat,
  type WireReport,
  wireReport,
  type WireReportRequest,
} from '../../upstream/resources/reports.ts'
import { type Context, print } from '../context.ts'
import { ledgerFor, destinationsBySink, notifyDaemon } from '../open/open-store.ts'
import {
  addPeriodOptions,
  findBatchWaitMs,
  wordsOption,
  parseList,
  parseText,
  type PeriodOptions,
  resolvePeriod,
  toRangeFilter,
} from '../options.ts'
import { reportLines } from './report-text.ts'
import {
  CommandError,
  findNamed,
  sanitize,
  jsonText,
  formatDuration,
  pluralize,
} from '../terminal.ts'
import {
  addServiceOptions,
  callOptional,
  isTransient,
  nameFailure,
  nameFailureOrMissing,
  type ApiContext,
  parseRequestId,
  type ServiceOptions,
  parseId,
  withClient,
} from './api-command.ts'
import {
  addRevealOption,
  type Listing,
  parseRows,
  type RevealOption,
  shortTime,
} from './listing.ts'
import { listCommand, type ListOptions, printOne } from './pages.ts'

export function reportsCommand(context: Context): Command {
  const get = addServiceOptions(addRevealOption(new Command('get'), revealHelp), ['text', 'json'])
    .description('a threat-flow report, by its id or by the request that has it made')
    .argument('[id]', 'id of the report', parseId)
    .option('--request <id>', 'id of the request instead', parseRequestId)
    .action((id: number | undefined, options: GetReportOptions) => getReport(context, id, options))
  return new Command('reports')
    .addCommand(requestCommand(context))
    .addCommand(reportsListCommand(context))
    .addCommand(get)
    .addCommand(downloadCommand(context))
    .addCommand(reportsWaitCommand(context))
}

interface RequestReportOptions extends ServiceOptions, PeriodOptions {
  title: string
  question?: string
  range?: NonNullable<ReportCreation['time_range_type']>
  includedKeywords?: string[]
  excludedKeywords?: string[]
}

function requestCommand(context: Context): Command {
  const command = new Command('request')
    .description('have a report made; "reports wait" waits for it')
    .requiredOption('--title <text>', 'what it is called')
    .option('--question <text>', 'what it shall answer')
    .addOption(
      new Option('--range <span>', 'the time that it is about (default: all)').choices(
        reportTimeRanges.filter((range) => range !== 'range'),
      ),
    )
    .option('--included-keywords <words>', 'only what holds one of them', parseList)
    .option('--excluded-keywords <words>', 'only what holds none of them', parseList)
  return addServiceOptions(addPeriodOptions(command, 'about what came')).action(
    (options: RequestReportOptions) => requestReport(context, options),
  )
}

async function requestReport(context: Context, options: RequestReportOptions): Promise<void> {
  const report = toReportCreation(options)
  const requestId = await withClient(context, options, ({ client, callOptions }) =>
    callOptional(client, ordering, client.requestReport({ report, ...callOptions() })),
  )
  printOne(context, options, requestedListing, { request_id: requestId })
}

const ordering = {
  capability: 'reports/requests',
  operation: 'requests for reports',
  permission: 'to have reports made',
  instead: 'the web application has them made',
  namesNothing: true,
} as const

function toReportCreation(options: RequestReportOptions): ReportCreation {
  const { title, question, range, includedKeywords, excludedKeywords } = options
  const { gte, lte } = toRangeFilter(resolvePeriod(options, systemClock.now())) ?? {}
  if (range && (gte || lte)) {
    throw new CommandError('mistake', '--range goes without --since and --until; choose one')
  }
  if (lte && !gte) throw new CommandError('mistake', '--until goes with --since')
  return {
    report_title: title,
    ...(question !== undefined && { question }),
    ...(range && { time_range_type: range }),
    ...(gte && { time_range_type: 'range', time_range_from: gte }),
    ...(lte && { time_range_to: lte }),
    ...(includedKeywords && { included_keywords: includedKeywords }),
    ...(excludedKeywords && { excluded_keywords: excludedKeywords }),
  }
}

const requestedListing: Listing<{ request_id: string }> = {
  columns: [{ title: 'REQUEST', width: 36, text: ({ request_id: id }) => id }],
  below: ({ request_id: id }) => [`"tocsin reports wait ${sanitize(id)}" waits for the report`],
  json: (requested) => requested,
  csv: ['request_id'],
}

interface ListReportsOptions extends ListOptions {
  type?: (typeof reportTypes)[number][]
  order: (typeof orders)[number]
}

function reportsListCommand(context: Context): Command {
  return listCommand(context, {
    name: 'reports list',
    description: 'the reports that there are',
    options: (command) =>
      command
        .addOption(wordsOption('--type <types>', 'only of these types', reportTypes))
        .addOption(new Option('--order <order>', 'by creation').choices(orders).default('desc')),
    // No maximum is published (docs/api-notes.md, Page sizes); this one only catches typing errors.
    pageSize: { usual: 10, most: 1_000, mostInWords: '1 or more' },
    reveal: revealHelp,
    ask: ({ type: types, order }: ListReportsOptions) => ({ types, order }),
    listing: () => reportsListing,
    async fetch({ client, callOptions, options, asked, position: { cursor: from, size } }) {
      const request = client.listReports({ ...asked, from, size, ...callOptions() })
      const page = await callOptional(client, reportList, request)
      const reports = parseRows(context, wireReport, page.items)
      return { rows: options.reveal ? reports : reports.map(maskReport), next: page.next }
    },
  })
}

const reportList = {
  capability: 'reports/list',
  operation: 'the list of reports',
  permission: 'to read reports',
  instead: 'read a report by its id, or by its request',
  namesNothing: true,
} as const

const reportsListing: Listing<WireReport> = {
  columns: [
    { title: 'ID', width: 14, text: ({ id }) => String(id) },
    { title: 'CREATED (UTC)', width: 16, text: ({ created_at: at }) => shortTime(at) },
    { title: 'TITLE', width: 60, text: ({ title }) => title ?? '' },
  ],
  json: (report) => report,
  csv: ['id', 'title', 'subtitle', 'summary', 'tags', 'created_at', 'format_type', 'intel_type'],
}

const revealHelp = 'show what reads as a secret as it is'

export interface GetReportOptions extends ServiceOptions, RevealOption {
  request?: string
}

/** As JSON, prints the API's response: the report, or the request with its status and report. */
export async function getReport(
  context: Context,
  id: number | undefined,
  options: GetReportOptions,
): Promise<void> {
  const { request } = options
  if (id !== undefined && request === undefined) return printReport(context, id, options)
  if (id === undefined && request !== undefined) return printRequest(context, request, options)
  throw new CommandError('mistake', 'name a report: either its id or --request <id>')
}

async function printReport(context: Context, id: number, options: GetReportOptions): Promise<void> {
  const report = await withClient(context, options, ({ client, callOptions }) =>
    nameFailure(`report ${id}`, client.getReport({ id, ...callOptions() })),
  )
  printShown(context, options, { json: (shown) => shown, report })
}

/** Throws CommandError for a request without a report: the caller has nothing to read. */
async function printRequest(
  context: Context,
  requestId: string,
  options: GetReportOptions,
): Promise<void> {
  const thing = `report request ${requestId}`
  const found = await withClient(context, options, ({ client, callOptions }) =>
    nameFailure(thing, client.getReportRequest({ requestId, ...callOptions() })),
  )
  const { report } = found
  if (report !== undefined && report !== null) {
    const read = readReport(report, requestId)
    printShown(context, options, { json: (shown) => ({ ...found, report: shown }), report: read })
    return
  }
  if (options.output === 'json') context.terminal.print(jsonText(found, 2))
  throw new CommandError('refused', `${thing}: ${formatRequestState(found, requestId)}`)
}

function printShown(
  { terminal }: Context,
  { output, reveal }: GetReportOptions,
  { report, json }: { report: WireReport; json: (shown: WireReport) => unknown },
): void {
  const shown = reveal ? report : maskReport(report)
  if (output === 'json') terminal.print(jsonText(json(shown), 2))
  else terminal.print(reportLines(shown, (text) => terminal.paint('bold', text)).join('\n'))
}

/** Any status but `processing` and `completed` is a failure (docs/api-notes.md, Reports). */
function formatRequestState({ status }: WireReportRequest, requestId: string): string {
  if (status === 'processing') {
    return `the report is still being made; "tocsin reports wait ${requestId}" waits for it`
  }
  if (status === 'completed') return 'completed, and yet there is no report'
  return `no report was made, the service says "${sanitize(status, 100)}"`
}

interface DownloadOptions extends ServiceOptions {
  output: 'text' | 'json'
  format: ReportFileFormat
  out: string
  force?: true
}

function downloadCommand(context: Context): Command {
  return addServiceOptions(new Command('download'), ['text', 'json'])
    .description('a report as a docx or pdf file, with nothing masked')
    .argument('<id>', 'id of the report', parseId)
    .addOption(
      new Option('--format <format>', 'of the file').choices(reportFileFormats).default('docx'),
    )
    .requiredOption('--out <file>', 'where to write it; - for standard output', parseText)
    .option('--force', 'replace the file if it is there')
    .action((id: number, options: DownloadOptions) => downloadReport(context, id, options))
}

/** Writes a report as the service formats it, with nothing masked. */
async function downloadReport(
  context: Context,
  id: number,
  options: DownloadOptions,
): Promise<void> {
  const { terminal } = context
  const { format, out, force } = options
  if (out !== '-') refuseTarget(out, force === true)
  else if (terminal.isInteractive) throw new CommandError('mistake', terminalProblem)
  const file = await withClient(context, options, ({ client, callOptions }) => {
    const request = client.downloadReport({ id, format, ...callOptions() })
    return nameFailureOrMissing(`report ${id}`, request, noDownloadRemedy)
  })
  if (out === '-') return terminal.printBytes(file)
  writeReportFile(out, file, force === true)
  const json = { id, format, file: out, bytes: file.length }
  const line = `report ${id} is in ${sanitize(out)} (${pluralize(file.length, 'byte')})`
  return print(context, options, { json, lines: () => [line] })
}

const terminalProblem =
  '--out -: a terminal does not show such a file; redirect standard output, or name a file'

const noDownloadRemedy =
  'this server has no files of reports; "tocsin reports get" prints a report as text'

/** Throws CommandError unless a file can be created, or replaced, under this name. */
function refuseTarget(path: string, mayReplace: boolean): void {
  const problem = findTargetProblem(path, mayReplace)
  if (problem !== undefined) throw new CommandError('mistake', `--out ${path}: ${problem}`)
}

function findTargetProblem(path: string, mayReplace: boolean): string | undefined {
  const target = statIfThere(path)
  if (target?.isDirectory()) return 'it is a folder; name a file in it'
  if (target !== undefined && !target.isFile()) return 'it is no regular file'
  if (target !== undefined && !mayReplace) return existsProblem
  if (target !== undefined || statIfThere(dirname(path))?.isDirectory()) return undefined
  return 'there is no such folder; create it first'
}

function statIfThere(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}

const existsProblem = 'there is such a file already; name another, or replace it with --force'

/** The file is there whole or not at all. */
function writeReportFile(path: string, content: Uint8Array, mayReplace: boolean): void {
  try {
    if (mayReplace) replacePrivateFile(path, content)
    else createPrivateFile(path, content)
  } catch (cause) {
    const code = errorCode(cause)
    const problem = code === 'EEXIST' ? existsProblem : `cannot be written (${code})`
    throw new CommandError('refused', `--out ${path}: ${problem}`, { cause })
  }
}

interface WaitOptions extends ServiceOptions {
  sink?: string[]
  timeout: number
}

const timeoutField = duration('How long.', '1s')
/**
 * The first wait, as in the official guide (docs/api-notes.md, Reports); later waits are longer.
 */
const firstPollMs = 5_000
const maxPollMs = 60_000

export function reportsWaitCommand(context: Context): Command {
  return addServiceOptions(new Command('wait'), ['text', 'json'])
    .description('wait until a report is made; with --sink, send it there')
    .argument('<request id>', 'as the service gave it when the report was ordered', parseRequestId)
    .option('--sink <name...>', 'sinks that get the report; a running daemon delivers it')
    .addOption(
      new Option('--timeout <duration>', 'how long to wait')
        .argParser(parseDuration)
        .default(1_800_000, '30m'),
    )
    .action((requestId: string, options: WaitOptions) => waitForReport(context, requestId, options))
}

function parseDuration(text: string): number {
  const parsed = timeoutField.safeParse(text)
  if (parsed.success) return parsed.data
  throw new InvalidArgumentError('Write a number and its unit, such as 90s or 30m.')
}

/** Waits for a report and delivers it to sinks like any event. */
async function waitForReport(
  context: Context,
  requestId: string,
  options: WaitOptions,
): Promise<void> {
  await withClient(context, options, async (api) => {
    const sinks = (options.sink ?? []).map((name) => findNamed(api.config.sinks, name, 'sink').name)
    const report = await pollReport(context, api, { requestId, timeoutMs: options.timeout })
    const uid =
      sinks.length === 0 ? undefined : await sendToSinks(api, { requestId, report, sinks })
    const { terminal } = context
    if (options.output === 'json') return terminal.print(jsonText(report, 2))
    terminal.print(`report ${report.id} is ready: ${sanitize(report.title ?? 'without a title')}`)
    if (uid === undefined) return terminal.print(`read it with: tocsin reports get ${report.id}`)
    return terminal.print(
      `in the ledger for ${sinks.join(', ')}; a running daemon delivers it: tocsin items show ${uid}`,
    )
  })
}

/** Throws CommandError when the request fails or takes too long. */
async function pollReport(
  { terminal, stop }: Context,
  { client, callOptions }: ApiContext,
  { requestId, timeoutMs }: { requestId: string; timeoutMs: number },
): Promise<WireReport> {
  const startedMs = systemClock.monotonic()
  let hasAnswered = false
  for (let waitMs = firstPollMs; ; waitMs = Math.min(maxPollMs, waitMs * 1.5)) {
    const request = client.getReportRequest({ requestId, ...callOptions() })
    const { status, report } = await nameFailure(`report request ${requestId}`, request).catch(
      (error: unknown) => asProcessing(error, hasAnswered),
    )
    hasAnswered = true
    terminal.progress('')
    if (status === 'completed' && report) return readReport(report, requestId)
    if (status !== 'processing' && status !== 'completed') {
      const problem = `report request ${sanitize(requestId)}: the service reports "${sanitize(status)}"`
      throw new CommandError('refused', `${problem}; order the report again`)
    }
    const waitedMs = systemClock.monotonic() - startedMs
    if (waitedMs >= timeoutMs || stop.aborted) {
      const problem = `report request ${sanitize(requestId)}: still being made after ${formatDuration(Math.round(waitedMs / 1000) * 1000)}`
      throw new CommandError('refused', `${problem}; wait again, or longer with --timeout`)
    }
    terminal.progress(`still being made, ${formatDuration(Math.round(waitedMs / 1000) * 1000)}`)
    await systemClock.sleep(Math.min(waitMs, timeoutMs - waitedMs), stop)
  }
}

/** After a first answer, a transient error counts as still processing. */
function asProcessing(error: unknown, hasAnswered: boolean): WireReportRequest {
  if (!isTransient(error) || !hasAnswered) throw error
  return { status: 'processing', report: null }
}

/**
 * Returns the event's uid. Deduplication applies: a sink that already has the report, from a feed
 * or an earlier command, does not get it again.
 */
async function sendToSinks(
  { config, store, client }: ApiContext,
  { requestId, report, sinks }: { requestId: string; report: WireReport; sinks: string[] },
): Promise<string> {
  const feed = config.feeds.find(
    (one) => one.type === 'reports' && one.requests.includes(requestId),
  )
  const severity = feed?.type === 'reports' ? feed.severity : 'info'
  const event = parseReport({ requestId, outcome: 'completed', report }, severity)
  const destinations = destinationsBySink(config)
  const publish = createPublisher({
    ledger: ledgerFor(store, client.account.name),
    destinationsFor: (name) => (destinations.get(name) ?? []).map(({ id }) => id),
    batchWaitMs: (name) => findBatchWaitMs(config, name),
    queue: (account) => notifyDaemon(store, [account]),
    generation: () => 0,
    clock: systemClock,
  })
  await publish(event, { route: 'reports', why: 'reports wait', sinks })
  return event.uid
}

/** Throws CommandError when the response holds no valid report. */
export function readReport(received: unknown, requestId: string): WireReport {
  const read = wireReport.safeParse(received)
  if (read.success) return read.data
  const problem = `report request ${sanitize(requestId)}: the report has no id that is a whole number`
  throw new CommandError('refused', `${problem}; read it in the service`)
}

/** Masks the secrets that a report quotes, such as stolen logins. */
export function maskReport(report: WireReport): WireReport {
  const { title, subtitle, summary, content, highlights } = report
  return {
    ...report,
    ...maskTexts({ title, subtitle, summary, content }),
    ...(highlights && { highlights: highlights.map((highlight) => maskText(highlight)) }),
  }
}

function maskTexts(
  texts: Readonly<Record<string, string | null | undefined>>,
): Record<string, string> {
  const masked = Object.entries(texts).flatMap(([key, text]) =>
    typeof text === 'string' ? [[key, maskText(text)] as const] : [],
  )
  return Object.fromEntries(masked)
}
