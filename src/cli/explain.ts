import { Command } from 'commander'
import { lookUp } from '../audit/audit-feed.ts'
import type { Config } from '../config/config.ts'
import { severityRank } from '../event.ts'
import { type Message, renderMessage, unverifiedLinkLabel } from '../messages/message.ts'
import { refang } from '../messages/sanitize.ts'
import { severityInWords, severityLabel } from '../messages/summary.ts'
import type { Book } from '../store/account-ledger.ts'
import { readAccounting } from '../store/accounts.ts'
import { findQuarantined, type Quarantined } from '../store/feed-state.ts'
import {
  type AttemptNote,
  deliveryIdPattern,
  type Item,
  itemsOfDelivery,
  type LedgerRecord,
  type Payload,
  readPayload,
  readRecord,
  type Sighting,
} from '../store/records.ts'
import { createServiceLink } from '../upstream/links.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from './context.ts'
import {
  destinationLabels,
  type DestinationLabels,
  findBook,
  needIndex,
  withLedger,
} from './open-ledger.ts'
import { counted, harmless, isoTime, timeInWords } from './terminal.ts'

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

/** What happened to one event, as the ledger has it: the words of `explain` and of a dead letter. */

/** The story for machines: times in ISO 8601, what is not known is null. */
export function storyJson(
  record: LedgerRecord,
  labels: DestinationLabels,
): Record<string, unknown> & { account: string } {
  const { account, uid, type, severity, firstSeenMs, sightings, items } = record
  return {
    account,
    uid,
    type,
    severity,
    first_seen: isoTime(firstSeenMs),
    closed: record.closed ?? null,
    seen_again: record.seenAgain ?? null,
    sightings: sightings.map(
      ({ feed, atMs, severity: then, labels: feedLabels, decisions, unread = [] }) => ({
        feed,
        at: isoTime(atMs),
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
    created_at: isoTime(item.createdAtMs),
    due_at: item.endedAtMs === undefined ? isoTime(item.atMs) : null,
    ended_at: isoTime(item.endedAtMs),
    attempts: item.attempts,
    answers_lost: item.repeatRisks,
    replays: item.replays,
    history: item.history.map(({ number, atMs, outcome, reason, answer }) => ({
      number,
      at: isoTime(atMs),
      outcome,
      reason: reason ?? null,
      answer: answer ?? null,
    })),
  }
}

/** The story for people. */
export function storyLines(record: LedgerRecord, labels: DestinationLabels): string[] {
  const { account, uid, type, severity, sightings, items } = record
  const head = `${harmless(uid, 600)} (${harmless(type, 60)}, ${severityInWords(severity)}), account ${account}`
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
  const named = sources.length > 0 ? `: ${sources.map((one) => harmless(one, 60)).join(', ')}` : ''
  return [
    ...(times > 0
      ? [`  the same login and secret came from ${counted(times, 'more source')}${named}`]
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
    `  ${verb} ${timeInWords(atMs)} by the feed ${feed}, severity ${severityInWords(severity)}`,
    ...(unread.length === 0 ? [] : [`    could not read: ${unread.join(', ')}`]),
    ...decisions.map(({ path, why }) => {
      const because = why.length === 0 ? 'no other route took it' : why.join(' and ')
      return `    route ${path.join(' > ')}: ${harmless(because, 600)}`
    }),
  ]
}

export function itemLines(item: Item, labels: DestinationLabels): string[] {
  return [
    `  → ${harmless(placeOf(item, labels))}, as ${severityInWords(item.severity)}: ${stateInWords(item)}`,
    ...item.history.map((note) => `      ${attemptInWords(note)}`),
    ...repeatLines(item),
  ]
}

function placeOf({ sink, destination }: Item, labels: DestinationLabels): string {
  const label = labels.get(destination) ?? destination
  const isGone = !labels.has(destination)
  const place = label === sink ? sink : `${sink}, ${label}`
  return isGone ? `${place} (no longer configured)` : place
}

function attemptInWords({ number, atMs, outcome, reason, answer }: AttemptNote): string {
  const why = reason === undefined ? '' : ` (${reason})`
  const said = answer === undefined || answer === '' ? '' : `: ${harmless(answer)}`
  return `attempt ${number}, ${timeInWords(atMs)}: ${outcomeWords[outcome] ?? outcome}${why}${said}`
}

const outcomeWords: Record<string, string> = {
  delivered: 'accepted',
  retry: 'failed, to be tried again',
  dead: 'failed, given up',
  split: 'refused as a batch, halved',
  released: 'given back unsent',
}

function repeatLines({ repeatRisks, replays, state }: Item): string[] {
  const lost = `${counted(repeatRisks, 'answer')} lost`
  const effect =
    state === 'delivered'
      ? 'it may have arrived more than once, under the same id'
      : 'it may have arrived nevertheless'
  return [
    ...(repeatRisks > 0 ? [`      ${lost}: ${effect}`] : []),
    ...(replays > 0 ? [`      replayed ${counted(replays, 'time')} by an operator`] : []),
  ]
}

/** An item's state in plain words, with its time and, where there is one, its cause. */
export function stateInWords(item: Item): string {
  const at = (ms: number | undefined): string =>
    ms === undefined ? 'at an unknown time' : timeInWords(ms)
  switch (item.state) {
    case 'queued':
      return `waiting for its turn since ${at(item.createdAtMs)}`
    case 'held':
      return heldInWords(item)
    case 'group':
      return `waiting for the next message of its group since ${at(item.createdAtMs)}`
    case 'digest':
      return `waiting for the next digest since ${at(item.createdAtMs)}`
    case 'batch':
      return 'in a sealed message, on its way'
    case 'sending':
      return `being sent since ${at(item.atMs)}`
    case 'retrying':
      return `retrying at ${at(item.atMs)}${lastReason(item)}`
    case 'delivered':
      return `delivered ${at(item.endedAtMs)}`
    case 'dead':
      return `dead since ${at(item.endedAtMs)}${lastReason(item)}`
    case 'discarded':
      return `dead since ${at(item.endedAtMs)}, and the letter discarded by an operator`
    case 'suppressed':
      return `not sent, ${suppressedInWords(item)}, ${at(item.endedAtMs)}`
    case 'diverted':
      return `moved to another sink${byWhom(item)} ${at(item.endedAtMs)}`
  }
}

/** Why an item was not sent, with the rule by its name. */
function suppressedInWords({ heldFor, rule }: Item): string {
  const named = harmless(rule ?? 'unknown', 200)
  switch (heldFor) {
    case 'silence':
      return `silenced by ${named}`
    case 'inhibition':
      return `inhibited by the rule ${named}`
    case 'mute':
      return `dropped because its route is muted (${named})`
    case 'shadow':
      return 'recorded only: its route is in stage shadow'
    case 'ignored':
    case 'remediated':
      return `marked as ${heldFor} at the service`
    case 'seen_again':
      return `seen again: the same login and secret came as ${named}`
    case 'superseded':
      return `came back as ${named} before it was sent, and goes as that`
    case undefined:
    default:
      return `suppressed (${harmless(heldFor ?? 'no reason is known', 60)})`
  }
}

function byWhom({ rule }: Item): string {
  return rule === undefined ? '' : ` (${harmless(rule, 200)})`
}

function heldInWords({ heldFor, atMs, sink, rule }: Item): string {
  if (heldFor === 'orphaned') return `held: the running configuration has no sink "${sink}"`
  const until = atMs === undefined ? '' : `, at the latest until ${timeInWords(atMs)}`
  if (heldFor === 'detail') return `held for its full event${until}`
  if (heldFor === 'mute')
    return `held because its route is muted (${harmless(rule ?? '', 200)})${until}`
  return `held (${heldFor})${until}`
}

/** Why the last attempt failed. */
export function reasonOf({ history }: Item): string {
  return history.at(-1)?.reason ?? 'unknown'
}

function lastReason(item: Item): string {
  const last = item.history.at(-1)
  if (last === undefined) return ''
  const said = last.answer === undefined || last.answer === '' ? '' : `: ${harmless(last.answer)}`
  return ` because of ${reasonOf(item)}${said}`
}

/** What an event is about, in the words of its messages; only while its payload is kept. */

export function aboutEvent(
  { accounts }: Pick<Config, 'accounts'>,
  { account, sightings }: LedgerRecord,
  payload: Payload,
  routes: string[] = [],
): Message {
  const link = createServiceLink(accounts)(account, payload.event.url)
  const subject = { account, feed: sightings[0]?.feed ?? '', routes, ...payload, link }
  return renderMessage(subject, { attempt: 1, mayBeRepeat: false })
}

/** Headline and link, indented. */
export function headLines({ title, ...message }: Message): string[] {
  return [title, ...linkLines(message)].map((line) => `  ${line}`)
}

export function linkLines({
  link,
  unverifiedLink,
}: Pick<Message, 'link' | 'unverifiedLink'>): string[] {
  if (link !== null) return [link]
  return unverifiedLink === null ? [] : [`${unverifiedLinkLabel}: ${unverifiedLink}`]
}
