/** `reports download`: a threat-flow report as a file. */
import { type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { Command, Option } from 'commander'
import { errorCode } from '../../lib/errors.ts'
import { createPrivateFile, replacePrivateFile } from '../../lib/private-files.ts'
import type { ReportFileFormat } from '../../upstream/choices.ts'
import { reportFileFormats } from '../../upstream/resources/enumerations.ts'
import { reportOperations } from '../../upstream/resources/reports.ts'
import { type Context, print } from '../context.ts'
import { parseText } from '../options.ts'
import { CommandError, pluralize, sanitize } from '../terminal.ts'
import {
  addServiceOptions,
  explainRefusal,
  nameFailure,
  parseId,
  type ServiceOptions,
  withClient,
} from './api-command.ts'

export function reportsCommand(context: Context): Command {
  return new Command('reports').addCommand(downloadCommand(context))
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
    const named = nameFailure(`report ${id}`, request)
    return explainRefusal(client, reportOperations.download, { report_id: id }, named)
  })
  if (out === '-') return terminal.printBytes(file)
  writeReportFile(out, file, force === true)
  const json = { id, format, file: out, bytes: file.length }
  const line = `report ${id} is in ${sanitize(out)} (${pluralize(file.length, 'byte')})`
  return print(context, options, { json, lines: () => [line] })
}

const terminalProblem =
  '--out -: a terminal does not show such a file; redirect standard output, or name a file'

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
