/** `sinks move` and `sinks discard`: settle the items that wait for a sink. */
import type { Config } from '../../config/config.ts'
import { groupingSinks } from '../../daemon/grouping.ts'
import { listMoveTargets, movedGroup } from '../../grouping/placement.ts'
import { redisNow } from '../../redis/scripts.ts'
import {
  worstFirst,
  discardItem,
  moveItem,
  type MoveTarget,
  scanPendingItems,
} from '../../store/pending-items.ts'
import {
  requireConfirmation,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import {
  type LedgerItem,
  findItems,
  redirectAll,
  type RedirectCounts,
  formatTally,
} from '../ledger/deliveries.ts'
import {
  type ByOption,
  destinationsBySink,
  type OpenStore,
  operatorName,
  notifyDaemon,
  withStore,
} from '../open/open-store.ts'
import { findBatchWaitMs } from '../options.ts'
import { listSinkNames } from './sinks-list.ts'
import { CommandError, pluralize, findNamed } from '../terminal.ts'

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
  const targetsFor = findMoveTargets(config, { from, to })
  const by = `to ${to}, by ${operatorName(context, options) ?? 'an operator'}`
  await settlePending(context, options, {
    config,
    sink: from,
    verb: 'moved',
    question: (count, states) => [
      `${count} of ${from} will be moved to ${to}: ${states}.`,
      `What ${to} had already is not sent to it again.`,
    ],
    done: (count) =>
      `moved ${count} from ${from} to ${to}; a running daemon sends them within seconds`,
    settle: async (item) => {
      const targets = targetsFor(item.item.severity, await redisNow(item.ledger))
      return moveItem(item.ledger, item, targets, by)
    },
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
    question: (count, states) => [
      `${count} of ${sink} will be given up and never sent: ${states}.`,
    ],
    done: (count) => `discarded ${count} of ${sink}`,
    settle: ({ ledger, ref }) => discardItem(ledger, ref, by),
  })
}

interface Settlement {
  config: Config
  sink: string
  verb: 'moved' | 'discarded'
  /** Text of the confirmation; `count` says how many items. */
  question: (count: string, states: string) => string[]
  done: (count: string) => string
  settle: Parameters<typeof redirectAll>[2]
}

async function settlePending(
  context: Context,
  options: SettleOptions,
  settlement: Settlement,
): Promise<void> {
  const { config, sink } = settlement
  const counts = await withStore(config, async (store) => {
    await requireSink(store, config, sink)
    const items = await findItems(context, store, (ledger) => scanPendingItems(ledger, sink))
    if (items.length > 0 && !options.yes) {
      const states = formatTally(items.map(({ item }) => item.state))
      await requireConfirmation(
        context,
        settlement.question(pluralize(items.length, 'pending item'), states),
      )
    }
    const redirected = await redirectAll(context, items.toSorted(worstFirst), settlement.settle)
    await notifyDaemon(store, new Set(items.map(({ ledger }) => ledger.account)))
    return redirected
  })
  const isConfigured = config.sinks.some(({ name }) => name === sink)
  print(context, options, {
    json: { sink, [settlement.verb]: counts.done, on_their_way: counts.busy },
    lines: () => settledLines(settlement, counts, isConfigured),
  })
  if (counts.busy > 0) context.exitCode = 1
}

async function requireSink(store: OpenStore, config: Config, sink: string): Promise<void> {
  const names = await listSinkNames(store, config)
  findNamed(
    names.map((name) => ({ name })),
    sink,
    'sink',
  )
}

function settledLines(
  { sink, verb, done }: Settlement,
  counts: RedirectCounts,
  isConfigured: boolean,
): string[] {
  if (counts.done + counts.busy === 0) return [`${sink} has nothing pending`]
  const busy = pluralize(counts.busy, 'item')
  const left = isConfigured ? `; they can be ${verb} once ${sink} is no longer configured` : ''
  return [
    done(pluralize(counts.done, 'item')),
    ...(counts.busy > 0
      ? [`left ${busy} in messages on their way just now: try again in a minute${left}`]
      : []),
    ...(isConfigured ? [`${sink} is still configured: what comes next for it goes there`] : []),
  ]
}

/** The targets of a moved item, by its severity. */
function findMoveTargets(
  config: Config,
  { from, to }: { from: string; to: string },
): (severity: LedgerItem['item']['severity'], nowMs: number) => MoveTarget[] {
  const destinations = destinationsBySink(config).get(to) ?? []
  const sink = groupingSinks({ config }, new Map([[to, { destinations }]])).get(to)
  return (severity, nowMs) =>
    sink
      ? listMoveTargets(sink, findBatchWaitMs(config, to), (destination) =>
          movedGroup(sink, { destination, severity, from }, nowMs),
        )
      : []
}
