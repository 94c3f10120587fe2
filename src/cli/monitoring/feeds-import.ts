/** `feeds import`: what a group of assets is alerted on, as feeds to paste into the configuration. */
import { Command } from 'commander'
import { CommandError } from '../command-error.ts'
import { print, type CommonOptions, type Context } from '../context.ts'
import { wholeId } from '../query/id-values.ts'
import { nameFailure } from '../query/name-failure.ts'
import { addServiceOptions, withClient } from '../query/service-command.ts'
import { feedLines, feedsOfAlerts } from './feed-block.ts'

interface ImportOptions extends CommonOptions {
  account?: string
  group: number
}

export function feedsImportCommand(context: Context): Command {
  return addServiceOptions(new Command('import'), ['text', 'json'])
    .description("print a group's alerts at the service as feeds, to paste under feeds:")
    .requiredOption('--group <id>', 'id of the assets group', wholeId)
    .action((options: ImportOptions) => importFeeds(context, options))
}

async function importFeeds(context: Context, options: ImportOptions): Promise<void> {
  const { group: groupId } = options
  await withClient(context, options, async ({ client, config, asked }) => {
    const thing = `assets group ${groupId}`
    const alerts = await nameFailure(thing, client.groupAlerts({ groupId, ...asked() }))
    if (alerts.length === 0) {
      throw new CommandError('refused', `${thing}: it has no alert, so there is nothing to import`)
    }
    const account = config.accounts.length > 1 ? client.account.name : undefined
    const known = config.feeds.map(({ name }) => name)
    const feeds = feedsOfAlerts(alerts, { groupId, account, feeds: known })
    print(context, options, {
      json: feeds,
      lines: () => [
        `  # The alerts of assets group ${groupId}; its events are read by the same id.`,
        '  # A name that the configuration has got the id of the group; of two groups that are pasted',
        '  # one after the other, import the second one when the first one is there.',
        ...feeds.flatMap(feedLines),
      ],
    })
  })
}
