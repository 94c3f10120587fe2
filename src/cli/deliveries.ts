import { Command } from 'commander'
import { refang } from '../messages/sanitize.ts'
import type { Book } from '../store/account-ledger.ts'
import {
  bySeverity,
  endedItems,
  endedOf,
  type Movable,
  type PlacedItem,
  type Redirected,
  resendItem,
} from '../store/pending-items.ts'
import { readRecord } from '../store/records.ts'
import { redisNow } from '../redis/scripts.ts'
import {
  addCommonOptions,
  askFirst,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from './context.ts'
import {
  addByOption,
  type ByOption,
  destinationsBySink,
  needIndex,
  type OpenLedger,
  operatorName,
  tellDaemon,
  withLedger,
} from './open-ledger.ts'
import { batchWaitOf, parseMoment } from './options.ts'
import { counted, findNamed, harmless, timeInWords } from './terminal.ts'

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
  return new Command('deliveries').addCommand(resend)
}

async function resendDeliveries(context: Context, options: ResendOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { name } = findNamed(config.sinks, options.sink, 'sink')
  const known = new Set(
    destinationsBySink(config)
      .get(name)
      ?.map(({ id }) => id),
  )
  const batchWaitMs = batchWaitOf(config, name)
  const by = `resent by ${operatorName(context, options) ?? 'an operator'}`
  const { counts, gone } = await withLedger(config, async (ledger) => {
    const sinceMs = parseMoment(options.since, await redisNow(ledger))
    const found = await gatherItems(context, ledger, (book) =>
      choose(book, { ...options, sink: name, sinceMs }),
    )
    const items = found.filter(({ item }) => known.has(item.destination)).toSorted(bySeverity)
    if (items.length > 0 && !options.yes) {
      const severities = tallyInWords(items.map(({ item }) => item.severity))
      const count = counted(items.length, 'item')
      const diverted = items.filter(({ item }) => item.state === 'diverted').length
      await askFirst(context, [
        `${count} (${severities}) that ${name} ${endedWords(items.length, diverted)} since ${timeInWords(sinceMs)} will be sent again, ${alone(batchWaitMs)}.`,
        'Their ids stay: a receiver that drops repeated ids drops these.',
      ])
    }
    const resent = await redirectAll(context, items, ({ book, ref }) =>
      resendItem(book, ref, { batchWaitMs, by }),
    )
    await tellDaemon(ledger, new Set(items.map(({ book }) => book.account)))
    return { counts: resent, gone: found.length - items.length }
  })
  print(context, options, {
    json: { sink: name, resent: counts.done, no_payload: counts.no_payload, no_recipient: gone },
    lines: () => resentLines(name, counts, gone),
  })
  if (counts.no_payload + gone > 0) context.exitCode = 1
}

function endedWords(count: number, diverted: number): string {
  if (diverted === 0) return 'accepted'
  return diverted === count
    ? 'did not get but its fallback did'
    : `accepted, or its fallback got instead (${diverted}),`
}

function alone(batchWaitMs: number | undefined): string {
  return batchWaitMs === undefined ? 'each in a message of its own' : 'in batches'
}

interface Choice {
  sink: string
  sinceMs: number
  uid?: string
  diverted?: true
}

async function* choose(book: Book, choice: Choice): AsyncGenerator<PlacedItem> {
  for await (const placed of ended(book, choice)) {
    if (!choice.diverted || placed.item.state === 'diverted') yield placed
  }
}

async function* ended(book: Book, { sink, sinceMs, uid }: Choice): AsyncGenerator<PlacedItem> {
  if (uid === undefined) {
    yield* endedItems(book, sink, sinceMs)
    return
  }
  const record = await readRecord(book, book.digests.recordId(refang(uid.trim())))
  if (record) yield* endedOf(record, sink, sinceMs)
}

function resentLines(sink: string, counts: RedirectCounts, gone: number): string[] {
  const { done, no_payload: withoutPayload, busy, other } = counts
  if (done + withoutPayload + gone + busy + other === 0) {
    return [`${sink} accepted nothing in that time that the ledger still knows of`]
  }
  const next = done > 0 ? '; a running daemon sends them again within seconds' : ''
  return [
    `${counted(done, 'item')} queued${next}`,
    ...(withoutPayload > 0
      ? [
          `${counted(withoutPayload, 'item')} left: the content is no longer kept (retention.payload)`,
        ]
      : []),
    ...(gone > 0 ? [`${counted(gone, 'item')} left: the recipient is no longer configured`] : []),
    ...(busy > 0 ? [`${counted(busy, 'item')} left: somebody is sending them again already`] : []),
  ]
}

/** What an operator does with many items at once: each in one script, so that an interruption loses none. */

/** An item and where it is; small, because there may be a hundred thousand. */
export interface BookedItem extends Movable {
  book: Book
  item: Pick<PlacedItem['item'], 'severity' | 'state' | 'destination'>
}

export type RedirectCounts = Record<Exclude<Redirected, 'collect'>, number>

/** Fewer are done before anybody wonders. */
const worthProgress = 100

/** Everything that `placed` finds in the books, with progress. */
export async function gatherItems(
  context: Context,
  ledger: OpenLedger,
  placed: (book: Book) => AsyncIterable<PlacedItem>,
): Promise<BookedItem[]> {
  await needIndex(context, ledger)
  const { terminal } = context
  const found: BookedItem[] = []
  for (const book of ledger.books) {
    for await (const { ref, record, item } of placed(book)) {
      const { severity, state, destination } = item
      found.push({ book, ref, record: { uid: record.uid }, item: { severity, state, destination } })
      if (found.length % 500 === 0) terminal.progress(`found ${found.length} items`)
    }
  }
  terminal.progress('')
  return found
}

export async function redirectAll(
  { terminal }: Context,
  items: readonly BookedItem[],
  redirect: (item: BookedItem) => Promise<Redirected>,
): Promise<RedirectCounts> {
  const counts: RedirectCounts = { done: 0, busy: 0, other: 0, no_payload: 0 }
  for (const [index, item] of items.entries()) {
    if (items.length > worthProgress && index % 50 === 0) {
      terminal.progress(`${index} of ${items.length}`)
    }
    const outcome = await redirect(item)
    counts[outcome === 'collect' ? 'done' : outcome] += 1
  }
  terminal.progress('')
  return counts
}

/** `10 queued, 2 held`; `3 critical, 1 high`. */
export function tallyInWords(words: readonly string[]): string {
  const counts = Map.groupBy(words, (word) => word)
  return [...counts].map(([word, all]) => `${all.length} ${harmless(word, 40)}`).join(', ')
}
