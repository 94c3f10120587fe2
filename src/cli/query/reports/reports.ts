import { Command } from 'commander'
import type { Context } from '../../context.ts'
import { requestIdValue, wholeId } from '../id-values.ts'
import { getReport, type GetReportOptions } from './reports-get.ts'
import { reportsWaitCommand } from './reports-wait.ts'
import { addRevealOption } from '../reveal.ts'
import { addServiceOptions } from '../service-command.ts'

export function reportsCommand(context: Context): Command {
  const get = addServiceOptions(addRevealOption(new Command('get'), revealed), ['text', 'json'])
    .description('a threat-flow report, by its id or by the request that has it made')
    .argument('[id]', 'id of the report', wholeId)
    .option('--request <id>', 'id of the request instead', requestIdValue)
    .action((id: number | undefined, options: GetReportOptions) => getReport(context, id, options))
  return new Command('reports').addCommand(get).addCommand(reportsWaitCommand(context))
}

const revealed = 'show what reads as a secret as it is'
