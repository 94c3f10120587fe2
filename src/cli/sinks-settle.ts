/** `sinks move` and `sinks discard`: what waits for a sink is settled by hand. */
import type { Config } from '../config/config.ts'
import { collectingSinks } from '../daemon/grouping.ts'
import { movedPlace } from '../grouping/placement.ts'
import { systemClock } from '../lib/clock.ts'
import {
  bySeverity,
  discardItem,
  moveItem,
  type MoveTarget,
  pendingItems,
} from '../store/pending-items.ts'
import { askFirst, type CommonOptions, type Context, loadConfigFile, print } from './context.ts'
import {
  type BookedItem,
  gatherItems,
  redirectAll,
  type RedirectCounts,
  tallyInWords,
} from './deliveries.ts'
import {
  type ByOption,
  destinationsBySink,
  type OpenLedger,
  operatorName,
  tellDaemon,
  withLedger,
} from './open-ledger.ts'
import { batchWaitOf } from './options.ts'
import { knownSinks } from './sinks-list.ts'
import { CommandError, counted, findNamed } from './terminal.ts'

export interface SettleOptions extends CommonOptions, ByOption {
  yes?: true
}

export interface MoveOptions extends SettleOptions {
  to: string
}

export async function movePending(
  context: Context,
  from: string,
  options: MoveOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { to } = options
  findNamed(config.sinks, to, 'sink')
  if (from === to) {
    throw new CommandError('mistake', `--to: "${to}" is where they are; name another sink`)
  }
  const targetsOf = await targetsIn(config, { from, to })
  const by = `to ${to}, by ${operatorName(context, options) ?? 'an operator'}`
  await settlePending(context, options, {
    config,
    sink: from,
    verb: 'moved',
    said: (count, states) => [
      `${count} of ${from} will be moved to ${to}: ${states}.`,
      `What ${to} had already is not sent to it again.`,
    ],
    done: (count) =>
      `moved ${count} from ${from} to ${to}; a running daemon sends them within seconds`,
    settle: (item) => moveItem(item.book, item, targetsOf(item.item.severity), by),
  })
}

export async function discardPending(
  context: Context,
  sink: string,
  options: SettleOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const by = `by ${operatorName(context, options) ?? 'an operator'}`
  await settlePending(context, options, {
    config,
    sink,
    verb: 'discarded',
    said: (count, states) => [`${count} of ${sink} will be given up and never sent: ${states}.`],
    done: (count) => `discarded ${count} of ${sink}`,
    settle: ({ book, ref }) => discardItem(book, ref, by),
  })
}

interface Settling {
  config: Config
  sink: string
  verb: 'moved' | 'discarded'
  /** What is asked; `count` says how many items. */
  said: (count: string, states: string) => string[]
  done: (count: string) => string
  settle: Parameters<typeof redirectAll>[2]
}

async function settlePending(
  context: Context,
  options: SettleOptions,
  settling: Settling,
): Promise<void> {
  const { config, sink } = settling
  const counts = await withLedger(config, async (ledger) => {
    await findSink(ledger, config, sink)
    const items = await gatherItems(context, ledger, (book) => pendingItems(book, sink))
    if (items.length > 0 && !options.yes) {
      const states = tallyInWords(items.map(({ item }) => item.state))
      await askFirst(context, settling.said(counted(items.length, 'pending item'), states))
    }
    const redirected = await redirectAll(context, items.toSorted(bySeverity), settling.settle)
    await tellDaemon(ledger, new Set(items.map(({ book }) => book.account)))
    return redirected
  })
  const isConfigured = config.sinks.some(({ name }) => name === sink)
  print(context, options, {
    json: { sink, [settling.verb]: counts.done, on_their_way: counts.busy },
    lines: () => settledLines(settling, counts, isConfigured),
  })
  if (counts.busy > 0) context.exitCode = 1
}

async function findSink(ledger: OpenLedger, config: Config, sink: string): Promise<void> {
  const names = await knownSinks(ledger, config)
  findNamed(
    names.map((name) => ({ name })),
    sink,
    'sink',
  )
}

function settledLines(
  { sink, verb, done }: Settling,
  counts: RedirectCounts,
  isConfigured: boolean,
): string[] {
  if (counts.done + counts.busy === 0) return [`${sink} has nothing pending`]
  const busy = counted(counts.busy, 'item')
  const left = isConfigured ? `; they can be ${verb} once ${sink} is no longer configured` : ''
  return [
    done(counted(counts.done, 'item')),
    ...(counts.busy > 0
      ? [`left ${busy} in messages on their way just now: try again in a minute${left}`]
      : []),
    ...(isConfigured ? [`${sink} is still configured: what comes next for it goes there`] : []),
  ]
}

/** Where an item goes that is moved: to every destination of the sink, as the sink collects. */
async function targetsIn(
  config: Config,
  { from, to }: { from: string; to: string },
): Promise<(severity: BookedItem['item']['severity']) => MoveTarget[]> {
  const destinations = destinationsBySink(config)
  const own = destinations.get(to) ?? []
  const collecting = collectingSinks({ config }, new Map([[to, { destinations: own }]])).get(to)
  const batchWaitMs = batchWaitOf(config, to)
  return (severity) =>
    own.map(({ id: destination }) => {
      const item = { destination, severity, from }
      const place = collecting && movedPlace(collecting, item, systemClock.now())
      return { sink: to, destination, batchWaitMs, place }
    })
}
