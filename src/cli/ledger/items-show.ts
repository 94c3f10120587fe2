/** `items show`: the whole history of an event, the events of a message, or a quarantined item. */
import { lookUpInLedger } from '../../audit/audit-feed.ts'
import type { Config } from '../../config/config.ts'
import { toDeliveryMember } from '../../delivery/delivery-member.ts'
import { buildMemberOptions } from '../../delivery/member-options.ts'
import { severityRank } from '../../event.ts'
import { type Message, renderMessage } from '../../messages/message.ts'
import { refang } from '../../messages/sanitize.ts'
import { severityLabel } from '../../messages/summary.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { readAccounting } from '../../store/accounts.ts'
import { findQuarantined, type QuarantineEntry } from '../../store/feed-state.ts'
import { quarantineIdPattern } from '../../store/items.ts'
import { readMessageAttempts } from '../../store/pending-items.ts'
import {
  findDeliveryItems,
  type Item,
  type LedgerRecord,
  type Payload,
  readPayload,
  readRecord,
} from '../../store/records.ts'
import { type KnownWrite, readWrites } from '../../store/service-writes.ts'
import { fieldLines } from '../api/listing.ts'
import { type CommonOptions, type Context, loadConfigFile, print } from '../context.ts'
import {
  destinationLabels,
  type DestinationLabels,
  ledgerFor,
  ledgersFor,
  type OpenStore,
  withStore,
} from '../open/open-store.ts'
import { formatIsoTime, formatUtcTime, pluralize, sanitize } from '../terminal.ts'
import { findGiven, parseDeliveryId } from './item-selection.ts'
import {
  formatAttempt,
  formatState,
  historyJson,
  historyLines,
  linkLines,
  messageLines,
} from './item-text.ts'

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
  const known = await withStore(config, async (store) => {
    const ledgers = ledgersFor(store, options)
    if (quarantineIdPattern.test(uid)) {
      const [found] = await findGiven(ledgers, uid)
      const { entry, ledger } = found ?? {}
      if (entry && entry.uid === null) {
        return [{ account: entry.account, uid: null, quarantined: entry }]
      }
      if (entry?.uid && ledger) return [await readKnownEvent(config, store, ledger, entry.uid)]
    }
    const events = ledgers.map((ledger) => readKnownEvent(config, store, ledger, uid))
    return (await Promise.all(events)).filter(isKnown)
  })
  const labels = destinationLabels(config)
  print(context, options, {
    json: known.map((one) => knownJson(one, labels)),
    lines: () =>
      known.length === 0
        ? [unknownLine(uid, options)]
        : known.flatMap((one) => knownLines(one, labels)),
  })
  if (known.length === 0) context.exitCode = 1
}

interface KnownEvent {
  account: string
  uid: string | null
  record?: LedgerRecord | undefined
  /** undefined: the payload is past its retention. */
  message?: Message | undefined
  quarantined?: QuarantineEntry | undefined
  /** The feeds that showed it, from their dedupe fingerprints, once its history is gone. */
  shownBy?: string[]
  /** What commands did to it at the service, and who asked for it. */
  writes?: KnownWrite[]
}

function knownJson(
  { account, uid, record, message, quarantined, shownBy = [], writes = [] }: KnownEvent,
  labels: DestinationLabels,
): Record<string, unknown> {
  return {
    ...(record ? historyJson(record, labels) : { account, uid }),
    title: message?.title ?? null,
    facts: message?.facts.map(({ label, value }) => ({ label, value })) ?? [],
    link: message?.link ?? null,
    unverified_link: message?.unverifiedLink ?? null,
    quarantined: quarantined ? entryJson(quarantined) : null,
    ...(shownBy.length > 0 && { dropped: true, shown_by: shownBy }),
    ...(writes.length > 0 && {
      writes: writes.map(({ atMs, ...note }) => ({ at: formatIsoTime(atMs), ...note })),
    }),
  }
}

function entryJson({ id, feed, atMs, problem, raw }: QuarantineEntry): Record<string, unknown> {
  return { id, feed, at: formatIsoTime(atMs), problem, kept: raw }
}

function knownLines(known: KnownEvent, labels: DestinationLabels): string[] {
  const { account, uid, record, message, quarantined, shownBy = [], writes = [] } = known
  const [head = '', ...history] = record ? historyLines(record, labels) : []
  const bare = `${sanitize(uid ?? 'no uid could be read', 600)}, account ${account}`
  const isBare = !record && !quarantined && shownBy.length === 0
  return [
    ...(record ? [head, ...(message ? messageLines(message) : [payloadGoneText]), ...history] : []),
    ...(quarantined ? entryLines(bare, quarantined) : []),
    ...(shownBy.length > 0 ? [droppedLine(bare, shownBy)] : []),
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
    `${head}: quarantined, nothing was sent; to read it as new: tocsin items resend ${shortId(entry)}`,
    ...fieldLines(fields).map((line) => `  ${line}`),
  ]
}

/** Long enough to be unique among the few thousand possible entries. */
export function shortId({ id }: Pick<QuarantineEntry, 'id'>): string {
  return id.slice(0, 12)
}

function droppedLine(head: string, feeds: string[]): string {
  return `${head}: taken in by ${feeds.join(', ')}; its history is no longer kept (retention.history, retention.max_bytes)`
}

function unknownLine(uid: string, { account }: ShowOptions): string {
  const whom = account === undefined ? 'any account' : `the account ${account}`
  return `${sanitize(uid, 600)} was never taken in by ${whom}, or its history has expired (retention.history).`
}

/** One event of a delivery. */
interface DeliveredEvent {
  record: LedgerRecord
  item: Item
  message: Message | undefined
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
      `No event that the ledger still knows went under the id ${id}: its history has expired, or the message was a test.`,
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

async function readKnownEvent(
  config: Config,
  store: OpenStore,
  ledger: AccountLedger,
  uid: string,
): Promise<KnownEvent> {
  const id = ledger.fingerprints.recordId(uid)
  const [stored, payload, quarantined, writes] = await Promise.all([
    readRecord(ledger, id),
    readPayload(ledger, id),
    findQuarantined(ledger, uid),
    readWrites(ledger, uid),
  ])
  const record = stored && (await withAttempts(store, stored))
  const message = record && payload && renderRecordMessage(config, record, payload)
  const shownBy = record ? [] : await findFeedsThatShowed(config, ledger, uid)
  return { account: ledger.account, uid, record, message, quarantined, shownBy, writes }
}

async function withAttempts({ ledgers }: OpenStore, record: LedgerRecord): Promise<LedgerRecord> {
  const items = record.items.map(async (item) => ({
    ...item,
    ...(item.state === 'batch' && (await readMessageAttempts(ledgers, item.messageId ?? ''))),
  }))
  return { ...record, items: await Promise.all(items) }
}

/** Finds the feeds by their dedupe fingerprints, which outlive the history. */
async function findFeedsThatShowed(
  { feeds }: Config,
  ledger: AccountLedger,
  uid: string,
): Promise<string[]> {
  const own = feeds.filter(({ account }) => account === ledger.account).map(({ name }) => name)
  const counted = Object.keys((await readAccounting(ledger)).feeds) // of feeds that left, too
  const names = [...new Set([...own, ...counted])].map(async (name) => {
    const { events } = await lookUpInLedger(ledger, name, { uids: [uid] })
    return events[0] === 'unrecorded' ? [name] : []
  })
  return (await Promise.all(names)).flat()
}

function isKnown({ record, quarantined, shownBy = [], writes = [] }: KnownEvent): boolean {
  return [record, quarantined, ...shownBy, ...writes].some((one) => one !== undefined)
}

/**
 * Renders an event as its messages do, for an item as its sink has it, secrets masked; possible
 * only while its payload is retained.
 */
function renderRecordMessage(
  config: Pick<Config, 'accounts' | 'messages' | 'route' | 'sinks'>,
  { account, uid, sightings }: LedgerRecord,
  payload: Payload,
  item?: Item,
): Message | undefined {
  const { feed = '', labels = {} } = sightings[item?.sighting ?? 0] ?? {}
  const { severity = payload.event.severity, routes = [], raisedFrom } = item ?? {}
  const about = { id: '', uid, severity, routes, feed, labels, raisedFrom, payload }
  const member = toDeliveryMember({}, account, about, buildMemberOptions(config))
  const sink = config.sinks.find(({ name }) => name === item?.sink)
  const timeZone = sink && 'timeZone' in sink ? sink.timeZone : undefined
  return member && renderMessage(member, { timeZone })
}
