/** `alerts get`: how an assets group is alerted on, read from the service, and without its secrets. */
import { Command } from 'commander'
import type { Context } from '../../context.ts'
import { alertListing } from './alert-listing.ts'
import { createPrinter } from '../listing.ts'
import { nameFailure } from '../name-failure.ts'
import { wholeId } from '../id-values.ts'
import { addRevealOption, type RevealOption } from '../reveal.ts'
import { addServiceOptions, withClient, type ServiceOptions } from '../service-command.ts'

interface AlertOptions extends ServiceOptions, RevealOption {}

export function alertsCommand(context: Context): Command {
  const get = addServiceOptions(addRevealOption(new Command('get'), revealed))
    .description('how an assets group is alerted on')
    .argument('<group>', 'id of the assets group', wholeId)
    .action((group: number, options: AlertOptions) => getAlerts(context, group, options))
  return new Command('alerts').addCommand(get)
}

const revealed = 'show secrets and addresses as they are'

async function getAlerts(context: Context, groupId: number, options: AlertOptions): Promise<void> {
  const alerts = await withClient(context, options, ({ client, asked }) =>
    nameFailure(`assets group ${groupId}`, client.groupAlerts({ groupId, ...asked() })),
  )
  const printer = createPrinter(context, options.output, alertListing(options.reveal === true))
  printer.add(alerts)
  printer.end(null)
}
