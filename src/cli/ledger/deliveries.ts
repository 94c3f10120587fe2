/** The `deliveries` commands, and the changes of many items at once that other commands share. */

import { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import { createAddressHasher } from '../../daemon/sinks.ts'
import { createCircuit } from '../../delivery/circuit.ts'
import { refang } from '../../messages/sanitize.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import {
  worstFirst,
  scanEndedItems,
  selectEndedItems,
  type MovableItem,
  type RecordItem,
  type RedirectStatus,
  resendItem,
} from '../../store/pending-items.ts'
import { troubleTexts } from '../../self-alerts/troubles.ts'
import { readRecord } from '../../store/records.ts'
import { redisNow } from '../../redis/scripts.ts'
import {
  addCommonOptions,
  requireConfirmation,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import {
  addByOption,
  type ByOption,
  destinationsBySink,
  type OpenStore,
  operatorName,
  notifyDaemon,
  withStore,
} from '../open/open-store.ts'
import { findBatchWaitMs, parsePastTime } from '../options.ts'
import { CommandError, pluralize, findNamed, sanitize, formatUtcTime } from '../terminal.ts'
import { describeBlock } from '../sinks/sinks-list.ts'
import { explainDelivery, type ExplainOptions, parseDeliveryId } from './explain.ts'
import { deliveriesListCommand } from './lists.ts'

interface ResendOptions extends CommonOptions, ByOption {
  sink: string
  since: string
  uid?: string
  diverted?: true
  yes?: true
}

export function deliveriesCommand(context: Context): Command {
  const resend = addByOption(addCommonOptions(new Command('resend')))
    .description('send again what a sink accepted, or its fallback got instead, under the same ids')
    .requiredOption('--sink <name>', 'name of the sink')
    .requiredOption(
      '--since <time>',
      'delivered or diverted since: how long ago, such as 2h, or a time such as 2026-11-01T12:00Z',
    )
    .option('--uid <uid>', 'only this event; as it stands in a message will do')
    .option('--diverted', 'only what its fallback got instead')
    .option('--yes', 'do not ask')
    .action((options: ResendOptions) => resendDeliveries(context, options))
  return new Command('deliveries')
    .addCommand(deliveriesListCommand(context))
    .addCommand(showCommand(context))
    .addCommand(resend)
}

function showCommand(context: Context): Command {
  return addCommonOptions(new Command('show'))
    .description('the events of one message, worst first; of a single event its history')
    .argument('<id>', 'as list shows it, or as it stands in a message')
    .option('--account <name>', 'only what this account knows of it')
    .action((given: string, options: ExplainOptions) => {
      const id = parseDeliveryId(given)
      if (id !== undefined) return explainDelivery(context, id, options)
      const remedy =
        'take one from "deliveries list" or the foot of a message: e and 32, or b and 40 digits of 0-9 and a-f; of a uid, "explain" tells'
      throw new CommandError(
        'mistake',
        `"${sanitize(given, 100)}" is not the id of a delivery; ${remedy}`,
      )
    })
}

async function resendDeliveries(context: Context, options: ResendOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { name } = findNamed(config.sinks, options.sink, 'sink')
  const known = new Set(
    destinationsBySink(config)
      .get(name)
      ?.map(({ id }) => id),
  )
  const batchWaitMs = findBatchWaitMs(config, name)
  const by = `resent by ${operatorName(context, options) ?? 'an operator'}`
  const { counts, gone: withoutRecipient } = await withStore(config, async (store) => {
    await requireTaking(store, config, name)
    const sinceMs = parsePastTime(options.since, await redisNow(store))
    const found = await findItems(context, store, (ledger) =>
      chooseItems(ledger, { ...options, sink: name, sinceMs }),
    )
    const items = found.filter(({ item }) => known.has(item.destination)).toSorted(worstFirst)
    if (items.length > 0 && !options.yes) {
      const severities = formatTally(items.map(({ item }) => item.severity))
      const count = pluralize(items.length, 'item')
      const diverted = items.filter(({ item }) => item.state === 'diverted').length
      await requireConfirmation(context, [
        `${count} (${severities}) that ${name} ${formatEnded(items.length, diverted)} since ${formatUtcTime(sinceMs)} will be sent again, ${formatBatching(batchWaitMs)}.`,
        'Their ids stay: a receiver that drops repeated ids drops these.',
      ])
    }
    const resent = await redirectAll(context, items, ({ ledger, ref }) =>
      resendItem(ledger, ref, { batchWaitMs, by }),
    )
    await notifyDaemon(store, new Set(items.map(({ ledger }) => ledger.account)))
    return { counts: resent, gone: found.length - items.length }
  })
  print(context, options, {
    json: {
      sink: name,
      resent: counts.done,
      no_payload: counts.no_payload,
      no_recipient: withoutRecipient,
    },
    lines: () => resentLines(name, counts, withoutRecipient),
  })
  if (counts.no_payload + withoutRecipient > 0) context.exitCode = 1
}

/** Throws CommandError for a sink that takes nothing: its fallback would get all at once, again. */
async function requireTaking(store: OpenStore, config: Config, name: string): Promise<void> {
  const { fallback } = findNamed(config.sinks, name, 'sink')
  if (fallback === undefined) return
  const circuit = createCircuit(store.redis, store.keys, createAddressHasher(config, store.ledgers))
  const destinations = destinationsBySink(config).get(name)
  const { state } = await circuit.read(name, await redisNow(store), destinations)
  const blocked = describeBlock({ state, paused: undefined }) // a pause keeps what waits
  if (blocked === undefined) return
  const remedy = troubleTexts({ kind: 'circuit-open', name }).toDo(name)
  const problem = `${name} ${blocked}: what is sent again goes to its fallback ${fallback} again`
  throw new CommandError('mistake', `${problem}; ${remedy}`)
}

function formatEnded(count: number, diverted: number): string {
  if (diverted === 0) return 'accepted'
  return diverted === count
    ? 'did not get but its fallback did'
    : `accepted, or its fallback got instead (${diverted}),`
}

function formatBatching(batchWaitMs: number | undefined): string {
  return batchWaitMs === undefined ? 'each in a message of its own' : 'in batches'
}

interface ResendChoice {
  sink: string
  sinceMs: number
  uid?: string
  diverted?: true
}

async function* chooseItems(
  ledger: AccountLedger,
  choice: ResendChoice,
): AsyncGenerator<RecordItem> {
  for await (const placed of listEndedItems(ledger, choice)) {
    if (!choice.diverted || placed.item.state === 'diverted') yield placed
  }
}

async function* listEndedItems(
  ledger: AccountLedger,
  { sink, sinceMs, uid }: ResendChoice,
): AsyncGenerator<RecordItem> {
  if (uid === undefined) {
    yield* scanEndedItems(ledger, sink, sinceMs)
    return
  }
  const record = await readRecord(ledger, ledger.fingerprints.recordId(refang(uid.trim())))
  if (record) yield* selectEndedItems(record, sink, sinceMs)
}

function resentLines(sink: string, counts: RedirectCounts, withoutRecipient: number): string[] {
  const { done, no_payload: withoutPayload, busy, other } = counts
  if (done + withoutPayload + withoutRecipient + busy + other === 0) {
    return [`${sink} accepted nothing in that time that the ledger still knows of`]
  }
  const next = done > 0 ? '; a running daemon sends them again within seconds' : ''
  return [
    `${pluralize(done, 'item')} queued${next}`,
    ...(withoutPayload > 0
      ? [
          `${pluralize(withoutPayload, 'item')} left: the content is no longer kept (retention.payload)`,
        ]
      : []),
    ...(withoutRecipient > 0
      ? [`${pluralize(withoutRecipient, 'item')} left: the recipient is no longer configured`]
      : []),
    ...(busy > 0
      ? [`${pluralize(busy, 'item')} left: somebody is sending them again already`]
      : []),
  ]
}

/** An item and its place, kept small because there may be a hundred thousand. */
export interface LedgerItem extends MovableItem {
  ledger: AccountLedger
  item: Pick<RecordItem['item'], 'severity' | 'state' | 'destination'>
}

export type RedirectCounts = Record<Exclude<RedirectStatus, 'collect'>, number>

/** Fewer are done before a progress line would help. */
const progressThreshold = 100

/** Collects everything that `find` yields in the account ledgers, with progress. */
export async function findItems(
  context: Context,
  store: OpenStore,
  find: (ledger: AccountLedger) => AsyncIterable<RecordItem>,
): Promise<LedgerItem[]> {
  const { terminal } = context
  const found: LedgerItem[] = []
  for (const ledger of store.ledgers) {
    for await (const { ref, record, item } of find(ledger)) {
      const { severity, state, destination } = item
      found.push({
        ledger,
        ref,
        record: { uid: record.uid },
        item: { severity, state, destination },
      })
      if (found.length % 500 === 0) terminal.progress(`found ${found.length} items`)
    }
  }
  terminal.progress('')
  return found
}

export async function redirectAll(
  { terminal }: Context,
  items: readonly LedgerItem[],
  redirect: (item: LedgerItem) => Promise<RedirectStatus>,
): Promise<RedirectCounts> {
  const counts: RedirectCounts = { done: 0, busy: 0, other: 0, no_payload: 0 }
  for (const [index, item] of items.entries()) {
    if (items.length > progressThreshold && index % 50 === 0) {
      terminal.progress(`${index} of ${items.length}`)
    }
    const outcome = await redirect(item)
    counts[outcome === 'collect' ? 'done' : outcome] += 1
  }
  terminal.progress('')
  return counts
}

/** `10 queued, 2 held`; `3 critical, 1 high`. */
export function formatTally(words: readonly string[]): string {
  const counts = Map.groupBy(words, (word) => word)
  return [...counts].map(([word, all]) => `${all.length} ${sanitize(word, 40)}`).join(', ')
}
