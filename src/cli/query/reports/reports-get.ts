import type { WireReport, WireReportRequest } from '../../../service/wire/reports.ts'
import { CommandError } from '../../command-error.ts'
import type { Context } from '../../context.ts'
import { jsonText } from '../../json-text.ts'
import { harmless } from '../../words.ts'
import { nameFailure } from '../name-failure.ts'
import { maskReport, readReport, reportLines } from './report-text.ts'
import type { RevealOption } from '../reveal.ts'
import { withClient, type ServiceOptions } from '../service-command.ts'

export interface GetReportOptions extends ServiceOptions, RevealOption {
  request?: string
}

/** JSON as the service answers: the report, or the request with its status and its report. */
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
  const report = await withClient(context, options, ({ client, asked }) =>
    nameFailure(`report ${id}`, client.getReport({ id, ...asked() })),
  )
  print(context, options, { json: (shown) => shown, report })
}

/** A request without a report is no success: whoever asked has nothing to read. */
async function printRequest(
  context: Context,
  requestId: string,
  options: GetReportOptions,
): Promise<void> {
  const thing = `report request ${requestId}`
  const found = await withClient(context, options, ({ client, asked }) =>
    nameFailure(thing, client.getReportRequest({ requestId, ...asked() })),
  )
  const { report } = found
  if (report !== undefined && report !== null) {
    const read = readReport(report, requestId)
    print(context, options, { json: (shown) => ({ ...found, report: shown }), report: read })
    return
  }
  if (options.output === 'json') context.terminal.print(jsonText(found, 2))
  throw new CommandError('refused', `${thing}: ${stateInWords(found, requestId)}`)
}

function print(
  { terminal }: Context,
  { output, reveal }: GetReportOptions,
  { report, json }: { report: WireReport; json: (shown: WireReport) => unknown },
): void {
  const shown = reveal ? report : maskReport(report)
  if (output === 'json') terminal.print(jsonText(json(shown), 2))
  else terminal.print(reportLines(shown, (text) => terminal.paint('bold', text)).join('\n'))
}

/** Any status but two counts as a failure (facts.md 1, row 10). */
function stateInWords({ status }: WireReportRequest, requestId: string): string {
  if (status === 'processing') {
    return `the report is still being made; "tocsin reports wait ${requestId}" waits for it`
  }
  if (status === 'completed') return 'completed, and yet there is no report'
  return `no report was made, the service says "${harmless(status, 100)}"`
}
