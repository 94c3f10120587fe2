import { Command } from 'commander'
import { lookUp } from '../audit/look-up.ts'
import type { Config } from '../config/config.ts'
import { severityRank } from '../events/severity.ts'
import { readAccounting } from '../ledger/accounting.ts'
import type { Book } from '../ledger/book.ts'
import {
  deliveryIdPattern,
  itemsOfDelivery,
  readPayload,
  readRecord,
  type Item,
  type LedgerRecord,
} from '../ledger/records.ts'
import { refang } from '../messages/defang.ts'
import type { Message } from '../messages/message.ts'
import { severityLabel } from '../messages/severity-counts.ts'
import { aboutEvent, headLines, linkLines } from './about.ts'
import { loadConfigFile } from './config-file.ts'
import { addCommonOptions, print, type CommonOptions, type Context } from './context.ts'
import { destinationLabels, type DestinationLabels } from './destination-labels.ts'
import { findBook, needIndex, withLedger } from './open-ledger.ts'
import { findQuarantined, type Quarantined } from '../ledger/quarantine.ts'
import { stateInWords, storyJson, storyLines } from './story.ts'
import { counted, harmless, isoTime, timeInWords } from './words.ts'

interface ExplainOptions extends CommonOptions {
  account?: string
}

export function explainCommand(context: Context): Command {
  return addCommonOptions(new Command('explain'))
    .argument('<uid>', 'of the event, or the id of a delivery; as it stands in a message will do')
    .option('--account <name>', 'only what this account knows of it')
    .action((given: string, options: ExplainOptions) => {
      const id = deliveryIdIn(given)
      return id === undefined
        ? explain(context, given, options)
        : explainDelivery(context, id, options)
    })
}

/** Also as `delivery b…`, and as the id of a mail: `<b….recipient@domain>`. */
function deliveryIdIn(given: string): string | undefined {
  const text = given
    .trim()
    .replace(/^delivery:? +/u, '')
    .replace(/^<|>$/gu, '')
  const id = /^([eb][0-9a-f]+)\.[0-9a-f]{16}@\S+$/u.exec(text)?.[1] ?? text
  return deliveryIdPattern.test(id) ? id : undefined
}

interface Known {
  account: string
  record: LedgerRecord | undefined
  /** undefined when the payload is no longer kept. */
  about: Message | undefined
  quarantined: Quarantined | undefined
  /** The feeds that showed it before its story was dropped. */
  shownBy: string[]
}

async function explain(context: Context, given: string, options: ExplainOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const uid = refang(given.trim())
  const known = await withLedger(config, async (ledger) => {
    const asked = options.account === undefined ? ledger.books : [findBook(ledger, options.account)]
    return (await Promise.all(asked.map((book) => findOut(config, book, uid)))).filter(isKnown)
  })
  const labels = destinationLabels(config)
  print(context, options, {
    json: known.map((one) => knownJson(one, uid, labels)),
    lines: () =>
      known.length === 0
        ? unknownLines(uid, options)
        : known.flatMap((one) => knownLines(one, uid, labels)),
  })
  if (known.length === 0) context.exitCode = 1
}

function knownJson(
  { account, record, about, quarantined, shownBy }: Known,
  uid: string,
  labels: DestinationLabels,
): Record<string, unknown> {
  return {
    ...(record ? storyJson(record, labels) : { account, uid }),
    title: about?.title ?? null,
    link: about?.link ?? null,
    unverified_link: about?.unverifiedLink ?? null,
    quarantined: quarantined
      ? { ...quarantined, atMs: undefined, at: isoTime(quarantined.atMs) }
      : null,
    ...(shownBy.length > 0 && { dropped: true, shown_by: shownBy }),
  }
}

function knownLines(
  { account, record, about, quarantined, shownBy }: Known,
  uid: string,
  labels: DestinationLabels,
): string[] {
  const [head = '', ...story] = record ? storyLines(record, labels) : []
  return [
    ...(record ? [head, ...(about ? headLines(about) : []), ...story] : []),
    ...(quarantined ? quarantineLines(uid, account, quarantined) : []),
    ...(shownBy.length > 0 ? droppedLines(uid, account, shownBy) : []),
  ]
}

/** One event of a delivery. */
interface Delivered {
  record: LedgerRecord
  item: Item
  about: Message | undefined
}

/** The story of the event that went under this id, or the list of the events that did. */
async function explainDelivery(
  context: Context,
  id: string,
  options: ExplainOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const found = await withLedger(config, async (ledger) => {
    const asked = options.account === undefined ? ledger.books : [findBook(ledger, options.account)]
    await needIndex(context, ledger)
    const events: Delivered[] = []
    for (const book of asked) {
      for await (const { record, item } of itemsOfDelivery(book, id)) {
        const payload = await readPayload(book, record.recordId)
        events.push({ record, item, about: payload && aboutEvent(config, record, payload) })
        if (events.length % 500 === 0) context.terminal.progress(`found ${events.length} events`)
      }
    }
    context.terminal.progress('')
    return events.toSorted((a, b) => severityRank(b.item.severity) - severityRank(a.item.severity))
  })
  const labels = destinationLabels(config)
  print(context, options, {
    json: found.map(({ record, about }) => ({
      delivery: id,
      ...knownJson(knownOf(record, about), record.uid, labels),
    })),
    lines: () => deliveryLines(id, found, labels),
  })
  if (found.length === 0) context.exitCode = 1
}

function knownOf(record: LedgerRecord, about: Message | undefined): Known {
  return { account: record.account, record, about, quarantined: undefined, shownBy: [] }
}

function deliveryLines(id: string, found: Delivered[], labels: DestinationLabels): string[] {
  const [first] = found
  if (first === undefined) {
    return [
      `No event that the ledger still knows went under the id ${id}.`,
      'Its story has expired (retention.story), it was sent again under another id, or the message was a test.',
    ]
  }
  const { sink, destination } = first.item
  const place = labels.get(destination) ?? destination
  const to = place === sink ? sink : `${sink}, ${place}`
  const head = `delivery ${id}: ${counted(found.length, 'event')} to ${harmless(to)}`
  if (found.length === 1) {
    return [head, ...knownLines(knownOf(first.record, first.about), first.record.uid, labels)]
  }
  return [
    head,
    ...found.flatMap(({ record, item, about }) => [
      `  ${severityLabel(item.severity)}  ${about?.title ?? harmless(record.type, 60)}`,
      `      ${harmless(record.uid, 600)}, account ${record.account}: ${stateInWords(item)}`,
      ...(about ? linkLines(about) : []).map((line) => `      ${line}`),
    ]),
    '"tocsin explain <uid>" tells the whole story of each.',
  ]
}

async function findOut(config: Config, book: Book, uid: string): Promise<Known> {
  const id = book.digests.recordId(uid)
  const [record, payload, quarantined] = await Promise.all([
    readRecord(book, id),
    readPayload(book, id),
    findQuarantined(book, uid),
  ])
  const about = record && payload && aboutEvent(config, record, payload)
  const shownBy = record ? [] : await feedsThatShowed(config, book, uid)
  return { account: book.account, record, about, quarantined, shownBy }
}

/** By their marks, which outlive the story. */
async function feedsThatShowed({ feeds }: Config, book: Book, uid: string): Promise<string[]> {
  const own = feeds.filter(({ account }) => account === book.account).map(({ name }) => name)
  const counted = Object.keys((await readAccounting(book)).feeds) // of feeds that left, too
  const words = [...new Set([...own, ...counted])].map(async (name) => {
    const { events } = await lookUp(book, name, { uids: [uid] })
    return events[0] === 'unrecorded' ? [name] : []
  })
  return (await Promise.all(words)).flat()
}

function isKnown({ record, quarantined, shownBy }: Known): boolean {
  return record !== undefined || quarantined !== undefined || shownBy.length > 0
}

function droppedLines(uid: string, account: string, feeds: string[]): string[] {
  return [
    `${harmless(uid, 600)}, account ${account}: taken in by the ${feeds.length === 1 ? 'feed' : 'feeds'} ${feeds.join(', ')}; its story is no longer kept`,
    '  it had been settled for longer than retention.story, or it made room (retention.max_bytes); otherwise somebody removed it',
  ]
}

function quarantineLines(
  uid: string,
  account: string,
  { feed, atMs, problem, raw }: Quarantined,
): string[] {
  return [
    `${harmless(uid, 600)}, account ${account}: quarantined, nothing was sent`,
    `  set aside ${timeInWords(atMs)} by the feed ${feed} because it does not read as an event: ${harmless(problem)}`,
    `  it came as: ${harmless(raw, 1_000)}`,
  ]
}

function unknownLines(uid: string, { account }: ExplainOptions): string[] {
  const whom = account === undefined ? 'any account' : `the account ${account}`
  return [
    `${harmless(uid, 600)} was never taken in by ${whom}, or its story has expired (retention.story).`,
    ...(uid.includes('/')
      ? []
      : [
          "A uid has the form type/source/id; a delivery's id is e and 32, or b and 40 digits of 0-9 and a-f.",
        ]),
  ]
}
