/** The `items` commands: everything that the ledger holds, by one selection. */
import { Command } from 'commander'
import { discardAct, moveAct, resendAct } from '../../delivery/item-acts.ts'
import { formatSeverity } from '../../messages/summary.ts'
import { itemStates } from '../../store/item-states.ts'
import { type LedgerItem, listItems, needyStates, orderOf } from '../../store/items.ts'
import { deliveryId } from '../../store/records.ts'
import { createPrinter, type Listing, shortTime } from '../api/listing.ts'
import { addCommonOptions, type Context, loadConfigFile } from '../context.ts'
import { addByOption, withStore } from '../open/open-store.ts'
import { sizeParser } from '../options.ts'
import { CommandError, findNamed, formatIsoTime, sanitize } from '../terminal.ts'
import { addSelectionOptions, readSelection, type SelectionOptions } from './item-selection.ts'
import { type ActOptions, runAct } from './items-act.ts'
import { showItem, type ShowOptions } from './items-show.ts'
import { destinationLabels, type DestinationLabels } from '../../operator/recipients.ts'
import { itemJson } from '../../operator/item-words.ts'

export function itemsCommand(context: Context): Command {
  const show = addCommonOptions(new Command('show'))
    .description('show the history of an event, the events of a message, or a quarantined item')
    .argument('<uid>', 'of an event, or an id; as it stands in a message will do')
    .option('--account <name>', 'only what this account knows of it')
    .action((given: string, options: ShowOptions) => showItem(context, given, options))
  return new Command('items')
    .addCommand(listCommand(context))
    .addCommand(show)
    .addCommand(resendCommand(context))
    .addCommand(moveCommand(context))
    .addCommand(discardCommand(context))
}

function actCommand(name: string, description: string): Command {
  const command = new Command(name)
    .description(description)
    .argument('[ids...]', 'uids of events, or ids of items, messages or quarantined items')
  return addByOption(addSelectionOptions(command)).option('--yes', 'do not ask')
}

function resendCommand(context: Context): Command {
  return actCommand(
    'resend',
    'send items again: dead ones, others by --state delivered, diverted or discarded',
  ).action((ids: string[], options: ActOptions) =>
    runAct(context, { ids, options }, (config, by) => ({
      act: resendAct(config.sinks, by),
      verb: 'resend',
      done: 'queued again',
      effect: 'will be sent again under the same ids',
    })),
  )
}

function moveCommand(context: Context): Command {
  return actCommand('move', 'move what waits to another sink, the worst first')
    .requiredOption('--to <sink>', 'name of a configured sink')
    .action((ids: string[], options: ActOptions & { to: string }) =>
      runAct(context, { ids, options }, (config, by) => {
        const { to, sink } = options
        findNamed(config.sinks, to, 'sink')
        if (sink === to) {
          throw new CommandError('mistake', `--to: "${to}" is where they are; name another sink`)
        }
        return {
          act: moveAct(config.sinks, to, by),
          verb: 'move',
          done: `moved to ${to}`,
          effect: `will be moved to ${to}, which gets nothing twice`,
        }
      }),
    )
}

function discardCommand(context: Context): Command {
  return actCommand(
    'discard',
    'give up what waits; close dead letters and quarantined items',
  ).action((ids: string[], options: ActOptions) =>
    runAct(context, { ids, options }, (_config, by) => ({
      act: discardAct(by),
      verb: 'discard',
      done: 'discarded',
      effect: 'will be given up and never sent',
    })),
  )
}

/** Bounds what a list holds in memory. */
const maxRows = 1_000

interface ListOptions extends SelectionOptions {
  limit: number
}

function listCommand(context: Context): Command {
  const command = new Command('list').description(
    'list items; without --state dead letters and quarantined items, the worst first',
  )
  return addSelectionOptions(command)
    .option('--limit <n>', `how many, up to ${maxRows}`, sizeParser(maxRows), 50)
    .addHelpText('after', stateHelp)
    .action((options: ListOptions) => list(context, options))
}

const stateHelp = `\nStates:\n${Object.entries(itemStates)
  .map(([state, says]) => `  ${state.padEnd(12)} ${says}`)
  .join('\n')}`

async function list(context: Context, options: ListOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const isNeedy = options.state === undefined
  const { rows, hasMore, order } = await withStore(config, async (store) => {
    const { ledgers, filter } = await readSelection(store, config, options)
    const wanted = isNeedy ? { ...filter, states: needyStates } : filter
    const by = orderOf(wanted, isNeedy)
    const found = await listItems(ledgers, wanted, { limit: options.limit, order: by })
    return { rows: found.items, hasMore: found.hasMore, order: by }
  })
  const { terminal } = context
  if (rows.length === 0 && options.output === 'text') {
    terminal.print(isNeedy ? 'no dead letter or quarantined item was found' : 'nothing was found')
    return
  }
  const listing = itemsListing(destinationLabels(config))
  const printer = createPrinter(context, options.output, listing)
  printer.add(rows)
  const next = hasMore && order !== 'worst' ? formatIsoTime(rows.at(-1)?.sinceMs) : null
  if (rows.length > 0 || options.output === 'json') printer.end(next)
  if (options.output === 'text' && rows.some(({ state }) => state === 'dead')) {
    terminal.printError('once it is mended: tocsin items resend --sink <sink> --state dead')
  }
  if (!hasMore) return
  const option = order === 'oldest' ? '--since' : '--until'
  const on = next === null ? '' : `, or what comes next: ${option} ${next}`
  terminal.printError(`there is more: a higher --limit shows it, up to ${maxRows}${on}`)
}

function itemsListing(labels: DestinationLabels): Listing<LedgerItem> {
  const place = ({ item }: LedgerItem): string => {
    if (item === undefined) return '-'
    const label = labels.get(item.destination) ?? item.destination
    return label === item.sink ? item.sink : `${item.sink}, ${label}`
  }
  return {
    columns: [
      { title: 'SINCE (UTC)', text: ({ sinceMs }) => shortTime(formatIsoTime(sinceMs)) },
      { title: 'STATE', text: ({ state }) => state },
      { title: 'SEVERITY', text: ({ severity }) => formatSeverity(severity) },
      { title: 'TO', text: place },
      { title: 'REASON', text: ({ reason }) => reason ?? '-' },
      { title: 'UID', text: ({ uid, entry }) => uid ?? entry?.id ?? '' },
    ],
    below: (item) => [
      ...(item.title === undefined ? [] : [sanitize(item.title)]),
      ...(item.entry ? [quarantineLine(item.entry)] : []),
      ...answerLines(item),
    ],
    json: ({ item, ...one }) => ({
      account: one.ledger.account,
      uid: one.uid,
      type: one.type ?? null,
      feeds: one.feeds,
      since: formatIsoTime(one.sinceMs),
      reason: one.reason ?? null,
      title: one.title ?? null,
      ...(item
        ? { ...itemJson(item, labels), delivery: deliveryId(item) }
        : { id: one.ref, severity: one.severity, state: one.state, problem: one.entry?.problem }),
    }),
  }
}

function quarantineLine(entry: NonNullable<LedgerItem['entry']>): string {
  return `${entry.id}, feed ${entry.feed}: ${sanitize(entry.problem)}`
}

/** What its receiver answered last, where that failed. */
function answerLines({ state, item }: LedgerItem): string[] {
  const answer = state === 'delivered' ? undefined : item?.history.at(-1)?.answer
  return answer === undefined || answer === '' ? [] : [sanitize(answer)]
}
