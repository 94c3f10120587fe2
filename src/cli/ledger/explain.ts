/** The `explain` command: the history of an event, or the events of a delivery. */

import { Command } from 'commander'
import { lookUpInLedger } from '../../audit/audit-feed.ts'
import type { Config } from '../../config/config.ts'
import { buildMemberOptions } from '../../daemon/messages.ts'
import { toDeliveryMember } from '../../delivery/delivery-member.ts'
import { severityRank } from '../../event.ts'
import { type Message, renderMessage, unverifiedLinkLabel } from '../../messages/message.ts'
import { refang } from '../../messages/sanitize.ts'
import { formatSeverity, severityLabel } from '../../messages/summary.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { readAccounting } from '../../store/accounts.ts'
import { findQuarantined, type Quarantined } from '../../store/feed-state.ts'
import { readMessageAttempts } from '../../store/pending-items.ts'
import {
  type AttemptNote,
  deliveryIdPattern,
  type Item,
  findDeliveryItems,
  type LedgerRecord,
  type Payload,
  readPayload,
  readRecord,
  type Sighting,
} from '../../store/records.ts'
import { type KnownWrite, readWrites } from '../../store/service-writes.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import {
  destinationLabels,
  type DestinationLabels,
  ledgerFor,
  type OpenStore,
  requireLedger,
  withStore,
} from '../open/open-store.ts'
import { pluralize, sanitize, formatIsoTime, formatUtcTime } from '../terminal.ts'

export interface ExplainOptions extends CommonOptions {
  account?: string
}

export function explainCommand(context: Context): Command {
  return addCommonOptions(new Command('explain'))
    .argument('<uid>', 'of the event, or the id of a delivery; as it stands in a message will do')
    .option('--account <name>', 'only what this account knows of it')
    .action((given: string, options: ExplainOptions) => {
      const id = parseDeliveryId(given)
      return id === undefined
        ? explain(context, given, options)
        : explainDelivery(context, id, options)
    })
}

/** Accepts a bare delivery id, `delivery b…`, and a mail's Message-ID: `<b….recipient@domain>`. */
export function parseDeliveryId(given: string): string | undefined {
  const text = given
    .trim()
    .replace(/^delivery:? +/u, '')
    .replace(/^<|>$/gu, '')
  const id = /^([eb][0-9a-f]+)\.[0-9a-f]{16}@\S+$/u.exec(text)?.[1] ?? text
  return deliveryIdPattern.test(id) ? id : undefined
}

interface KnownEvent {
  account: string
  record: LedgerRecord | undefined
  /** undefined: the payload is past its retention. */
  message: Message | undefined
  quarantined: Quarantined | undefined
  /** The feeds that showed it, from their dedupe fingerprints, once its history is gone. */
  shownBy: string[]
  /** What commands did to it at the service, and who asked for it. */
  writes: KnownWrite[]
}

async function explain(context: Context, given: string, options: ExplainOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const uid = refang(given.trim())
  const known = await withStore(config, async (store) => {
    const ledgers =
      options.account === undefined ? store.ledgers : [requireLedger(store, options.account)]
    const events = ledgers.map((ledger) => readKnownEvent(config, { store, ledger }, uid))
    return (await Promise.all(events)).filter(isKnown)
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
  { account, record, message, quarantined, shownBy, writes }: KnownEvent,
  uid: string,
  labels: DestinationLabels,
): Record<string, unknown> {
  return {
    ...(record ? historyJson(record, labels) : { account, uid }),
    title: message?.title ?? null,
    link: message?.link ?? null,
    unverified_link: message?.unverifiedLink ?? null,
    quarantined: quarantined
      ? { ...quarantined, atMs: undefined, at: formatIsoTime(quarantined.atMs) }
      : null,
    ...(shownBy.length > 0 && { dropped: true, shown_by: shownBy }),
    ...(writes.length > 0 && {
      writes: writes.map(({ atMs, ...note }) => ({ at: formatIsoTime(atMs), ...note })),
    }),
  }
}

function knownLines(
  { account, record, message, quarantined, shownBy, writes }: KnownEvent,
  uid: string,
  labels: DestinationLabels,
): string[] {
  const [head = '', ...history] = record ? historyLines(record, labels) : []
  return [
    ...(record ? [head, ...(message ? titleLines(message) : []), ...history] : []),
    ...(quarantined ? quarantineLines(uid, account, quarantined) : []),
    ...(shownBy.length > 0 ? droppedLines(uid, account, shownBy) : []),
    ...writeLines(uid, { account, record, writes }),
  ]
}

function writeLines(
  uid: string,
  { account, record, writes }: Pick<KnownEvent, 'account' | 'record' | 'writes'>,
): string[] {
  const head = record || writes.length === 0 ? [] : [`${sanitize(uid, 600)}, account ${account}`]
  return [...head, ...writes.map(formatWrite)]
}

function formatWrite({ atMs, action, by, outcome }: KnownWrite): string {
  const outcomes = {
    asked: 'its outcome is not known',
    done: 'done',
    refused: 'refused by the service',
    unclear: 'it may have been done, in whole or in part',
    'not done': 'not done, the service could not take it',
  }
  return `  ${formatUtcTime(atMs)}: "${action}" asked of the service by ${sanitize(by, 100)}: ${outcomes[outcome]}`
}

/** One event of a delivery. */
interface DeliveredEvent {
  record: LedgerRecord
  item: Item
  message: Message | undefined
}

/** Prints the history of the event that was delivered under this id, or the list of the events. */
export async function explainDelivery(
  context: Context,
  id: string,
  options: ExplainOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const found = await withStore(config, async (store) => {
    const ledgers =
      options.account === undefined ? store.ledgers : [requireLedger(store, options.account)]
    const delivered: DeliveredEvent[] = []
    for await (const found of findDeliveryItems(ledgers, id)) {
      const record = await withAttempts(store, found.record)
      const item = record.items[found.item.index] ?? found.item
      const payload = await readPayload(ledgerFor(store, record.account), record.recordId)
      delivered.push({
        record,
        item,
        message: payload && renderRecordMessage(config, record, payload, item),
      })
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
    json: found.map(({ record, message }) => ({
      delivery: id,
      ...knownJson(toKnownEvent(record, message), record.uid, labels),
    })),
    lines: () => deliveryLines(id, found, labels),
  })
  if (found.length === 0) context.exitCode = 1
}

function toKnownEvent(record: LedgerRecord, message: Message | undefined): KnownEvent {
  return {
    account: record.account,
    record,
    message,
    quarantined: undefined,
    shownBy: [],
    writes: [],
  }
}

function deliveryLines(id: string, found: DeliveredEvent[], labels: DestinationLabels): string[] {
  const [first] = found
  if (first === undefined) {
    return [
      `No event that the ledger still knows went under the id ${id}.`,
      'Its history has expired (retention.history), it was sent again under another id, or the message was a test.',
    ]
  }
  const { sink, destination } = first.item
  const place = labels.get(destination) ?? destination
  const to = place === sink ? sink : `${sink}, ${place}`
  const head = `delivery ${id}: ${pluralize(found.length, 'event')} to ${sanitize(to)}`
  if (found.length === 1) {
    return [
      head,
      ...knownLines(toKnownEvent(first.record, first.message), first.record.uid, labels),
    ]
  }
  return [
    head,
    ...first.item.history.map((note) => `  ${formatAttempt(note)}`),
    ...found.flatMap(({ record, item, message }) => [
      `  ${severityLabel(item.severity)}  ${message?.title ?? sanitize(record.type, 60)}`,
      `      ${sanitize(record.uid, 600)}, account ${record.account}: ${formatState(item)}`,
      `      taken in ${formatUtcTime(record.firstSeenMs)}`,
      ...(message ? linkLines(message) : []).map((line) => `      ${line}`),
    ]),
    '"tocsin explain <uid>" tells the whole history of each.',
  ]
}

async function readKnownEvent(
  config: Config,
  { store, ledger }: { store: OpenStore; ledger: AccountLedger },
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
  return { account: ledger.account, record, message, quarantined, shownBy, writes }
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

function isKnown({ record, quarantined, shownBy, writes }: KnownEvent): boolean {
  return [record, quarantined, ...shownBy, ...writes].some((one) => one !== undefined)
}

function droppedLines(uid: string, account: string, feeds: string[]): string[] {
  return [
    `${sanitize(uid, 600)}, account ${account}: taken in by the ${feeds.length === 1 ? 'feed' : 'feeds'} ${feeds.join(', ')}; its history is no longer kept`,
    '  it had been settled for longer than retention.history, or it made room (retention.max_bytes); otherwise somebody removed it',
  ]
}

function quarantineLines(
  uid: string,
  account: string,
  { feed, atMs, problem, raw }: Quarantined,
): string[] {
  return [
    `${sanitize(uid, 600)}, account ${account}: quarantined, nothing was sent`,
    `  set aside ${formatUtcTime(atMs)} by the feed ${feed} because it does not read as an event: ${sanitize(problem)}`,
    `  it came as: ${sanitize(raw, 1_000)}`,
  ]
}

function unknownLines(uid: string, { account }: ExplainOptions): string[] {
  const whom = account === undefined ? 'any account' : `the account ${account}`
  return [
    `${sanitize(uid, 600)} was never taken in by ${whom}, or its history has expired (retention.history).`,
    ...(uid.includes('/')
      ? []
      : [
          "A uid has the form type/source/id; a delivery's id is e and 32, or b and 40 digits of 0-9 and a-f.",
        ]),
  ]
}

/** An event's history as JSON: times in ISO 8601, null for what is unknown. */
export function historyJson(
  record: LedgerRecord,
  labels: DestinationLabels,
): Record<string, unknown> & { account: string } {
  const { account, uid, type, severity, firstSeenMs, sightings, items } = record
  return {
    account,
    uid,
    type,
    severity,
    first_seen: formatIsoTime(firstSeenMs),
    closed: record.closed ?? null,
    seen_again: record.seenAgain ?? null,
    sightings: sightings.map(
      ({ feed, atMs, severity: then, labels: feedLabels, decisions, unread = [] }) => ({
        feed,
        at: formatIsoTime(atMs),
        severity: then,
        labels: feedLabels,
        routes: decisions,
        unread,
      }),
    ),
    items: items.map((item) => itemJson(item, labels)),
  }
}

export function itemJson(item: Item, labels: DestinationLabels): Record<string, unknown> {
  return {
    id: item.id,
    sink: item.sink,
    destination: labels.get(item.destination) ?? null,
    severity: item.severity,
    routes: item.routes,
    state: item.state,
    held_for: item.state === 'held' ? (item.heldFor ?? null) : null,
    suppressed_for: item.state === 'suppressed' ? (item.heldFor ?? null) : null,
    rule: item.rule ?? null,
    raised_from: item.raisedFrom ?? null,
    created_at: formatIsoTime(item.createdAtMs),
    due_at: item.endedAtMs === undefined ? formatIsoTime(item.atMs) : null,
    ended_at: formatIsoTime(item.endedAtMs),
    attempts: item.attempts,
    answers_lost: item.repeatRisks,
    replays: item.replays,
    history: item.history.map(({ number, atMs, outcome, reason, answer }) => ({
      number,
      at: formatIsoTime(atMs),
      outcome,
      reason: reason ?? null,
      answer: answer ?? null,
    })),
  }
}

/** An event's history for people. */
export function historyLines(record: LedgerRecord, labels: DestinationLabels): string[] {
  const { account, uid, type, severity, sightings, items } = record
  const head = `${sanitize(uid, 600)} (${sanitize(type, 60)}, ${formatSeverity(severity)}), account ${account}`
  const nothing = ['  No destination: every place it was routed to had it already.']
  return [
    head,
    ...sightings.flatMap((sighting, index) => sightingLines(sighting, index === 0)),
    ...seenAgainLines(record),
    ...(items.length === 0 ? nothing : items.flatMap((item) => itemLines(item, labels))),
  ]
}

function seenAgainLines({ seenAgain, closed }: LedgerRecord): string[] {
  const { times = 0, sources = [] } = seenAgain ?? {}
  const named = sources.length > 0 ? `: ${sources.map((one) => sanitize(one, 60)).join(', ')}` : ''
  return [
    ...(times > 0
      ? [`  the same login and secret came from ${pluralize(times, 'more source')}${named}`]
      : []),
    ...(closed ? [`  marked as ${closed} at the service`] : []),
  ]
}

function sightingLines(
  { feed, atMs, severity, decisions, unread = [] }: Sighting,
  isFirst: boolean,
): string[] {
  const verb = isFirst ? 'taken in' : 'seen again'
  return [
    `  ${verb} ${formatUtcTime(atMs)} by the feed ${feed}, severity ${formatSeverity(severity)}`,
    ...(unread.length === 0 ? [] : [`    could not read: ${unread.join(', ')}`]),
    ...decisions.map(({ path, why }) => {
      const because = why.length === 0 ? 'no other route took it' : why.join(' and ')
      return `    route ${path.join(' > ')}: ${sanitize(because, 600)}`
    }),
  ]
}

export function itemLines(item: Item, labels: DestinationLabels): string[] {
  return [
    `  → ${sanitize(formatDestination(item, labels))}, as ${formatSeverity(item.severity)}: ${formatState(item)}`,
    ...item.history.map((note) => `      ${formatAttempt(note)}`),
    ...repeatLines(item),
  ]
}

function formatDestination({ sink, destination }: Item, labels: DestinationLabels): string {
  const label = labels.get(destination) ?? destination
  const isGone = !labels.has(destination)
  const place = label === sink ? sink : `${sink}, ${label}`
  return isGone ? `${place} (no longer configured)` : place
}

export function formatAttempt({ number, atMs, outcome, reason, answer }: AttemptNote): string {
  const why = reason === undefined ? '' : ` (${reason})`
  const answerText = answer === undefined || answer === '' ? '' : `: ${sanitize(answer)}`
  return `attempt ${number}, ${formatUtcTime(atMs)}: ${outcomeWords[outcome] ?? outcome}${why}${answerText}`
}

const outcomeWords: Record<string, string> = {
  delivered: 'accepted',
  retry: 'failed, to be tried again',
  dead: 'failed, given up',
  split: 'refused as a batch, halved',
  released: 'given back unsent',
}

function repeatLines({ repeatRisks, replays, state }: Item): string[] {
  const lost = `${pluralize(repeatRisks, 'answer')} lost`
  const effect =
    state === 'delivered'
      ? 'it may have arrived more than once, under the same id'
      : 'it may have arrived nevertheless'
  return [
    ...(repeatRisks > 0 ? [`      ${lost}: ${effect}`] : []),
    ...(replays > 0 ? [`      replayed ${pluralize(replays, 'time')} by an operator`] : []),
  ]
}

/** An item's state in plain words, with its time and, where there is one, its cause. */
export function formatState(item: Item): string {
  const at = (ms: number | undefined): string =>
    ms === undefined ? 'at an unknown time' : formatUtcTime(ms)
  switch (item.state) {
    case 'queued':
      return `waiting to be sent since ${at(item.createdAtMs)}`
    case 'held':
      return formatHeld(item)
    case 'group':
      return `waiting for the next message of its group since ${at(item.createdAtMs)}`
    case 'digest':
      return `waiting for the next digest since ${at(item.createdAtMs)}`
    case 'batch':
      return `in a frozen message, ${item.atMs === undefined ? 'on its way' : `next try ${at(item.atMs)}`}`
    case 'sending':
      return `being sent since ${at(item.atMs)}`
    case 'retrying':
      return `retrying at ${at(item.atMs)}${formatLastReason(item)}`
    case 'delivered':
      return `delivered ${at(item.endedAtMs)}`
    case 'dead':
      return `dead since ${at(item.endedAtMs)}${formatLastReason(item)}`
    case 'discarded':
      return `dead since ${at(item.endedAtMs)}, and the letter discarded by an operator`
    case 'suppressed':
      return `not sent, ${formatSuppressed(item)}, ${at(item.endedAtMs)}`
    case 'diverted':
      return `moved to another sink${formatOperator(item)} ${at(item.endedAtMs)}`
  }
}

/** Why an item was suppressed, with the name of the rule. */
export function formatSuppressed({ heldFor, rule }: Item): string {
  const named = sanitize(rule ?? 'unknown', 200)
  switch (heldFor) {
    case 'silence':
      return `silenced by ${named}`
    case 'inhibition':
      return `inhibited by the rule ${named}`
    case 'mute':
      return `dropped because its route is muted (${named})`
    case 'shadow':
      return 'recorded only: its route has mode: shadow'
    case 'ignored':
    case 'remediated':
      return `marked as ${heldFor} at the service`
    case 'seen_again':
      return `seen again: the same login and secret came as ${named}`
    case 'superseded':
      return `came back as ${named} before it was sent, and goes as that`
    case undefined:
    default:
      return `suppressed (${sanitize(heldFor ?? 'no reason is known', 60)})`
  }
}

function formatOperator({ rule }: Item): string {
  return rule === undefined ? '' : ` (${sanitize(rule, 200)})`
}

function formatHeld({ heldFor, atMs, sink, rule }: Item): string {
  if (heldFor === 'orphaned') return `held: the running configuration has no sink "${sink}"`
  const until = atMs === undefined ? '' : `, at the latest until ${formatUtcTime(atMs)}`
  if (heldFor === 'detail') return `held for its full event${until}`
  if (heldFor === 'mute')
    return `held because its route is muted (${sanitize(rule ?? 'unknown', 200)})${until}`
  return `held (${sanitize(heldFor ?? 'no reason is known', 60)})${until}`
}

/** Why the last attempt failed. */
export function failureReason({ history }: Item): string {
  return history.at(-1)?.reason ?? 'unknown'
}

function formatLastReason(item: Item): string {
  const last = item.history.at(-1)
  if (last === undefined) return ''
  const answerText =
    last.answer === undefined || last.answer === '' ? '' : `: ${sanitize(last.answer)}`
  return ` because of ${failureReason(item)}${answerText}`
}

/**
 * Renders an event as its messages do, for an item as its sink has it, secrets masked; possible
 * only while its payload is retained.
 */
export function renderRecordMessage(
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
  return member && renderMessage(member, { attempt: 1, mayBeRepeat: false, timeZone })
}

/** Headline and link, indented. */
export function titleLines({ title, ...message }: Message): string[] {
  return [title, ...linkLines(message)].map((line) => `  ${line}`)
}

export function linkLines({
  link,
  unverifiedLink,
}: Pick<Message, 'link' | 'unverifiedLink'>): string[] {
  if (link !== null) return [link]
  return unverifiedLink === null ? [] : [`${unverifiedLinkLabel}: ${unverifiedLink}`]
}
