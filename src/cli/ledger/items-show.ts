/** `items show`: the whole history of an event, the events of a message, or a quarantined item. */
import { severityRank } from '../../event.ts'
import type { EventWords } from '../../messages/message.ts'
import { refang } from '../../messages/sanitize.ts'
import { severityLabel } from '../../messages/summary.ts'
import { type QuarantineEntry, readQuarantined } from '../../store/feed-state.ts'
import { type Delivered, findDeliveryItems } from '../../store/deliveries.ts'
import { lookUpInLedger } from '../../store/intake.ts'
import { readPayload } from '../../store/records.ts'
import type { KnownWrite } from '../../store/history/service-writes.ts'
import { fieldLines } from '../api/listing.ts'
import { type CommonOptions, type Context, loadConfigFile, print } from '../context.ts'
import { ledgerFor, ledgersFor, withStore } from '../open/open-store.ts'
import { formatUtcTime, pluralize, sanitize } from '../terminal.ts'
import { parseDeliveryId } from './item-selection.ts'
import { historyLines, linkLines, messageLines } from './item-text.ts'
import {
  entryJson,
  isKnown,
  type KnownEvent,
  knownJson,
  readKnownEvent,
  renderRecordMessage,
  withAttempts,
} from '../../operator/event.ts'
import { destinationLabels, type DestinationLabels } from '../../operator/recipients.ts'
import { formatAttempt, formatState } from '../../operator/item-words.ts'

export interface ShowOptions extends CommonOptions {
  account?: string
}

export async function showItem(
  context: Context,
  given: string,
  options: ShowOptions,
): Promise<void> {
  const id = parseDeliveryId(given)
  if (id !== undefined) return showDelivery(context, id, options)
  const { config } = loadConfigFile(context, options.config)
  const uid = refang(given.trim())
  const { known, hasGone } = await withStore(config, async (store) => {
    const ledgers = ledgersFor(store, options)
    const events = ledgers.map(async (ledger): Promise<KnownEvent> => {
      const entry = await readQuarantined(ledger, uid)
      if (entry?.uid === null) return { account: entry.account, uid: null, quarantined: entry }
      return readKnownEvent(config, store, ledger, entry?.uid ?? uid)
    })
    const looks = ledgers.flatMap((ledger) =>
      config.feeds
        .filter(({ account }) => account === ledger.account)
        .map(({ name }) => lookUpInLedger(ledger, name, [uid])),
    )
    return {
      known: (await Promise.all(events)).filter(isKnown),
      hasGone: (await Promise.all(looks)).flat().includes('unrecorded'),
    }
  })
  const labels = destinationLabels(config)
  print(context, options, {
    json: known.map((one) => knownJson(one, labels)),
    lines: () =>
      known.length === 0
        ? [hasGone ? goneLine(uid) : unknownLine(uid, options)]
        : known.flatMap((one) => knownLines(one, labels)),
  })
  if (known.length === 0) context.exitCode = 1
}

function knownLines(known: KnownEvent, labels: DestinationLabels): string[] {
  const { account, uid, record, message, quarantined, writes = [] } = known
  const [head = '', ...history] = record ? historyLines(record, labels) : []
  const bare = `${sanitize(uid ?? 'no uid could be read', 600)}, account ${account}`
  const isBare = !record && !quarantined
  return [
    ...(record ? [head, ...(message ? messageLines(message) : [payloadGoneText]), ...history] : []),
    ...(quarantined ? entryLines(bare, quarantined) : []),
    ...(isBare ? [bare] : []),
    ...writes.map(formatWrite),
  ]
}

const payloadGoneText =
  '  its content is no longer kept (retention.payload): it cannot be sent again'

/** Words for an outcome that nobody knows. */
const unknownOutcomes: Readonly<Record<string, string>> = {
  asked: 'its outcome is not known',
  unclear: 'it may have been done, in whole or in part',
}

function formatWrite({ atMs, action, by, outcome }: KnownWrite): string {
  return `  ${formatUtcTime(atMs)}: "${action}" asked of the service by ${sanitize(by, 100)}: ${unknownOutcomes[outcome] ?? outcome}`
}

function entryLines(head: string, entry: QuarantineEntry): string[] {
  const fields = entryJson(entry)
  return [
    `${head}: quarantined, nothing was sent; to close it: tocsin items discard ${entry.id}`,
    ...fieldLines(fields).map((line) => `  ${line}`),
  ]
}

function goneLine(uid: string): string {
  return `${sanitize(uid, 600)} was taken in, and its history is gone (retention.history, retention.max_bytes).`
}

function unknownLine(uid: string, { account }: ShowOptions): string {
  const whom = account === undefined ? 'any account' : `the account ${account}`
  return `${sanitize(uid, 600)} was never taken in by ${whom}, or is forgotten (dedupe.horizon).`
}

/** One event of a delivery. */
interface DeliveredEvent extends Delivered {
  message: EventWords | undefined
}

/** Prints the history of the event that was delivered under this id, or the list of the events. */
async function showDelivery(context: Context, id: string, options: ShowOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const found = await withStore(config, async (store) => {
    const delivered: DeliveredEvent[] = []
    for await (const one of findDeliveryItems(ledgersFor(store, options), id)) {
      const record = await withAttempts(store, one.record)
      const item = record.items[one.item.index] ?? one.item
      const payload = await readPayload(ledgerFor(store, record.account), record.recordId)
      const message = payload && renderRecordMessage(config, record, payload, item)
      delivered.push({ record, item, message })
      if (delivered.length % 500 === 0)
        context.terminal.progress(`found ${delivered.length} events`)
    }
    context.terminal.progress('')
    return delivered.toSorted(
      (a, b) => severityRank(b.item.severity) - severityRank(a.item.severity),
    )
  })
  const labels = destinationLabels(config)
  print(context, options, {
    json: found.map((one) => ({ delivery: id, ...knownJson(toKnownEvent(one), labels) })),
    lines: () => deliveryLines(id, found, labels),
  })
  if (found.length === 0) context.exitCode = 1
}

function toKnownEvent({ record, message }: DeliveredEvent): KnownEvent {
  return { account: record.account, uid: record.uid, record, message }
}

function deliveryLines(id: string, found: DeliveredEvent[], labels: DestinationLabels): string[] {
  const [first] = found
  if (first === undefined) {
    return [
      `The ledger knows no event that went under the id ${id}: its history has expired, or the message was a test.`,
    ]
  }
  const { sink, destination } = first.item
  const place = labels.get(destination) ?? destination
  const to = place === sink ? sink : `${sink}, ${place}`
  const head = `delivery ${id}: ${pluralize(found.length, 'event')} to ${sanitize(to)}`
  if (found.length === 1) return [head, ...knownLines(toKnownEvent(first), labels)]
  return [
    head,
    ...first.item.history.map((note) => `  ${formatAttempt(note)}`),
    ...found.flatMap(({ record, item, message }) => [
      `  ${severityLabel(item.severity)}  ${message?.title ?? sanitize(record.title ?? record.type)}`,
      `      ${sanitize(record.uid, 600)}, account ${record.account}: ${formatState(item)}`,
      `      taken in ${formatUtcTime(record.firstSeenMs)}`,
      ...(message ? linkLines(message) : []).map((line) => `      ${line}`),
    ]),
    '"tocsin items show <uid>" prints the whole history of each.',
  ]
}
