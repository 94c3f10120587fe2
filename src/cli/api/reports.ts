/** `reports download`: a threat-flow report as a file. */
import { Command, Option } from 'commander'
import { errorCode } from '../../lib/errors.ts'
import { createPrivateFile } from '../../lib/config/private-files.ts'
import type { ReportFileFormat } from '../../upstream/documents.ts'
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
}

function downloadCommand(context: Context): Command {
  return addServiceOptions(new Command('download'), ['text', 'json'])
    .description('a report as a docx or pdf file, with nothing masked')
    .argument('<id>', 'id of the report', parseId)
    .addOption(
      new Option('--format <format>', 'of the file').choices(reportFileFormats).default('docx'),
    )
    .requiredOption('--out <file>', 'where to write it', parseText)
    .action((id: number, options: DownloadOptions) => downloadReport(context, id, options))
}

/** Writes a report as the service formats it, with nothing masked. */
async function downloadReport(
  context: Context,
  id: number,
  options: DownloadOptions,
): Promise<void> {
  const { format, out } = options
  if (out === '-') throw new CommandError('mistake', '--out -: write the name of a file')
  const file = await withClient(context, options, ({ client, callOptions }) => {
    const request = client.downloadReport({ id, format, ...callOptions() })
    const named = nameFailure(`report ${id}`, request)
    return explainRefusal(reportOperations.download, named)
  })
  try {
    createPrivateFile(out, file) // there whole or not at all
  } catch (cause) {
    const code = errorCode(cause)
    const problem =
      code === 'EEXIST'
        ? 'there is such a file already; name another'
        : `cannot be written (${code})`
    throw new CommandError('refused', `--out ${out}: ${problem}`, { cause })
  }
  const json = { id, format, file: out, bytes: file.length }
  const line = `report ${id} is in ${sanitize(out)} (${pluralize(file.length, 'byte')})`
  print(context, options, { json, lines: () => [line] })
}
