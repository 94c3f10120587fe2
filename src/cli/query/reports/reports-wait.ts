/** Waits for a report that is being made, and sends it to sinks on the way of every event. */
import { InvalidArgumentError, Option, Command } from 'commander'
import { parseReport } from '../../../feeds/parse-report.ts'
import { createTeller } from '../../../notices/teller.ts'
import { systemClock } from '../../../runtime/clock.ts'
import { duration } from '../../../runtime/config-fields.ts'
import type { WireReport, WireReportRequest } from '../../../service/wire/reports.ts'
import { batchWaitOf } from '../../batch-wait.ts'
import { CommandError, findNamed } from '../../command-error.ts'
import type { Context } from '../../context.ts'
import { jsonText } from '../../json-text.ts'
import { destinationsBySink } from '../../destination-labels.ts'
import { bookOf, tellDaemon } from '../../open-ledger.ts'
import { harmless, spanInWords } from '../../words.ts'
import { requestIdValue } from '../id-values.ts'
import { nameFailure } from '../name-failure.ts'
import { isPassing } from '../passing-failure.ts'
import {
  addServiceOptions,
  withClient,
  type OpenService,
  type ServiceOptions,
} from '../service-command.ts'
import { readReport } from './report-text.ts'

interface WaitOptions extends ServiceOptions {
  sink?: string[]
  timeout: number
}

const timeoutField = duration('How long.', '1s')
/** As the public guide polls; then ever more seldom. */
const firstWaitMs = 5_000
const longestWaitMs = 60_000

export function reportsWaitCommand(context: Context): Command {
  return addServiceOptions(new Command('wait'), ['text', 'json'])
    .description('wait until a report is made; with --sink, send it there')
    .argument('<request id>', 'as the service gave it when the report was ordered', requestIdValue)
    .option('--sink <name...>', 'sinks that get the report; a running daemon delivers it')
    .addOption(
      new Option('--timeout <duration>', 'how long to wait')
        .argParser(span)
        .default(1_800_000, '30m'),
    )
    .action((requestId: string, options: WaitOptions) => wait(context, requestId, options))
}

function span(text: string): number {
  const parsed = timeoutField.safeParse(text)
  if (parsed.success) return parsed.data
  throw new InvalidArgumentError('Write a number and its unit, such as 90s or 30m.')
}

async function wait(context: Context, requestId: string, options: WaitOptions): Promise<void> {
  await withClient(context, options, async (service) => {
    const sinks = (options.sink ?? []).map(
      (name) => findNamed(service.config.sinks, name, 'sink').name,
    )
    const report = await waitFor(context, service, { requestId, timeoutMs: options.timeout })
    const uid = sinks.length === 0 ? undefined : await send(service, { requestId, report, sinks })
    const { terminal } = context
    if (options.output === 'json') return terminal.print(jsonText(report, 2))
    terminal.print(`report ${report.id} is ready: ${harmless(report.title ?? 'without a title')}`)
    if (uid === undefined) return terminal.print(`read it with: tocsin reports get ${report.id}`)
    return terminal.print(
      `in the ledger for ${sinks.join(', ')}; a running daemon delivers it: tocsin explain ${uid}`,
    )
  })
}

/** Throws CommandError where it fails or takes too long. */
async function waitFor(
  { terminal, stop }: Context,
  { client, asked }: OpenService,
  { requestId, timeoutMs }: { requestId: string; timeoutMs: number },
): Promise<WireReport> {
  const begunMs = systemClock.monotonic()
  let hasAnswered = false
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(longestWaitMs, waitMs * 1.5)) {
    const asking = client.getReportRequest({ requestId, ...asked() })
    const { status, report } = await nameFailure(`report request ${requestId}`, asking).catch(
      (error: unknown) => passing(error, hasAnswered),
    )
    hasAnswered = true
    terminal.progress('')
    if (status === 'completed' && report) return readReport(report, requestId)
    if (status !== 'processing' && status !== 'completed') {
      const said = `report request ${harmless(requestId)}: the service reports "${harmless(status)}"`
      throw new CommandError('refused', `${said}; order the report again`)
    }
    const waitedMs = systemClock.monotonic() - begunMs
    if (waitedMs >= timeoutMs || stop.aborted) {
      const said = `report request ${harmless(requestId)}: still being made after ${spanInWords(Math.round(waitedMs / 1000) * 1000)}`
      throw new CommandError('refused', `${said}; wait again, or longer with --timeout`)
    }
    terminal.progress(`still being made, ${spanInWords(Math.round(waitedMs / 1000) * 1000)}`)
    await systemClock.sleep(Math.min(waitMs, timeoutMs - waitedMs), stop)
  }
}

/** What may be over at the next look ends no wait that has begun. */
function passing(error: unknown, hasAnswered: boolean): WireReportRequest {
  if (!isPassing(error) || !hasAnswered) throw error
  return { status: 'processing', report: null }
}

/** Its uid: a report that a feed, or an earlier command, sent there already is not sent again. */
async function send(
  { config, ledger, client }: OpenService,
  { requestId, report, sinks }: { requestId: string; report: WireReport; sinks: string[] },
): Promise<string> {
  const feed = config.feeds.find(
    (one) => one.type === 'reports' && one.requests.includes(requestId),
  )
  const severity = feed?.type === 'reports' ? feed.severity : 'info'
  const event = parseReport({ requestId, outcome: 'completed', report }, severity)
  const destinations = destinationsBySink(config)
  const tell = createTeller({
    book: bookOf(ledger, client.account.name),
    destinationsOf: (name) => (destinations.get(name) ?? []).map(({ id }) => id),
    batchWaitMs: (name) => batchWaitOf(config, name),
    queue: (account) => tellDaemon(ledger, [account]),
    generation: () => 0,
    clock: systemClock,
  })
  await tell(event, { route: 'reports', why: 'reports wait', sinks })
  return event.uid
}
