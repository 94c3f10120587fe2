/**
 * What a demo run leaves behind, read after the last write: the whole ledger and the messages that
 * arrived.
 */
import { isKnownSeverity, noSeverity, severities, severityRank } from '../../event.ts'
import { refang } from '../../messages/sanitize.ts'
import { severityLabel, type SummaryKind } from '../../messages/summary.ts'
import { redisNow } from '../../redis/scripts.ts'
import type { Received } from '../../sandbox/receivers/received.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { type Accounting, readAccounting, scanPendingCounts } from '../../store/accounts.ts'
import { type Item, type LedgerRecord, scanRecords } from '../../store/records.ts'
import { pluralize, sanitize } from '../terminal.ts'

export const demoSinks = ['slack', 'email', 'webhook'] as const

export type DemoSink = (typeof demoSinks)[number]

/** The demo's daemon has one sink for each of these receivers alone. */
export type DemoMessage = Received & { sink: DemoSink }

export function isDemoMessage(message: Received): message is DemoMessage {
  return demoSinks.some((sink) => sink === message.sink)
}

/** The parts of an arrived message that are compared. */
export type Receipt = Pick<
  Arrival,
  'sink' | 'id' | 'form' | 'events' | 'items' | 'uids' | 'isComplete' | 'mayBeRepeat'
>

export interface Difference {
  count: number
  what: string
}

/** The ledger's counters when the run began. */
export interface Baseline {
  accounting: Accounting
  /** Redis' clock. */
  atMs: number
}

export interface Evidence {
  baseline: Baseline
  accounting: Accounting
  /** Pending items by sink, from a scan of the records. */
  pendingFound: Record<string, number>
  records: readonly LedgerRecord[]
  quarantinedUids: ReadonlySet<string>
  /** Every message that arrived in this run, in order. */
  received: readonly Receipt[]
  /** Uids of the events that the sandbox showed to a poll. */
  shown: readonly string[]
}

export async function readBaseline(ledger: AccountLedger): Promise<Baseline> {
  const atMs = await redisNow(ledger)
  return { accounting: await readAccounting(ledger), atMs }
}

export async function readEvidence(
  ledger: AccountLedger,
  known: Pick<Evidence, 'baseline' | 'received' | 'shown'>,
): Promise<Evidence> {
  const records: LedgerRecord[] = []
  for await (const record of scanRecords(ledger)) records.push(record)
  return {
    ...known,
    accounting: await readAccounting(ledger),
    pendingFound: await scanPendingCounts(ledger),
    records,
    quarantinedUids: new Set(await ledger.redis.hkeys(ledger.key('quarantine-uids'))),
  }
}

export function sumBy<Entry>(entries: Iterable<Entry>, count: (entry: Entry) => number): number {
  let sum = 0
  for (const entry of entries) sum += count(entry)
  return sum
}

/** Deliveries of this run by the counters. */
export function deliveredBySink({ accounting, baseline }: Evidence): Record<DemoSink, number> {
  const delivered = (sink: DemoSink): number =>
    (accounting.sinks[sink]?.delivered ?? 0) - (baseline.accounting.sinks[sink]?.delivered ?? 0)
  return { slack: delivered('slack'), email: delivered('email'), webhook: delivered('webhook') }
}

/** Deliveries of this run by the records. */
export function deliveredItems({ records, baseline }: Evidence): Item[] {
  return records
    .flatMap(({ items }) => items)
    .filter(({ state, endedAtMs = 0 }) => state === 'delivered' && endedAtMs >= baseline.atMs)
}

/** A message that a mock receiver took, as the view and the accounting use it. */
export interface Arrival {
  sink: DemoSink
  atMs: number
  /** Delivery id: `e…` for one item, `b…` for a frozen message; '' when the message names none. */
  id: string
  form: MessageForm
  /** How many events the message says it stands for. */
  events: number
  /** Ids of the items that it names; a message for people about several events names none. */
  items: string[]
  /** Uids of the events that it shows. */
  uids: string[]
  /** It shows every event that it stands for. */
  isComplete: boolean
  /** It is marked as a possible repeat. */
  mayBeRepeat: boolean
  /** The highest severity in it; sanitized, since the feed may hold any word. */
  severity: string
  /** One sanitized line: "HIGH Stealer log: …". */
  text: string
}

export function toArrival(message: DemoMessage): Arrival {
  const { sink, atMs, uids } = message
  return { sink, atMs, uids, isComplete: false, ...readers[sink](message) }
}

/** Local time of day. */
export function clockTime(atMs: number): string {
  return new Date(atMs).toTimeString().slice(0, 8)
}

type ReadMessage = Omit<Arrival, 'sink' | 'atMs' | 'uids' | 'isComplete'> &
  Partial<Pick<Arrival, 'uids' | 'isComplete'>>

const readers: Record<DemoSink, (message: Received) => ReadMessage> = {
  slack: ({ json, body }) => {
    const text = unescapeEntities((json as { text: string }).text)
    // The last match is Tocsin's own; text of the feed stands above it.
    const id = [...body.matchAll(/\bdelivery ([eb][0-9a-f]{32,40})\b/g)].at(-1)?.[1] ?? ''
    return readPersonMessage(id, text, body.includes('May be a repeat:'))
  },
  email: ({ mail, id: messageId, headers }) => {
    const subject = mail?.subject ?? ''
    const [, id = ''] = /^<([eb][0-9a-f]{32,40})\./.exec(messageId ?? '') ?? []
    const table = readTableUids(mail?.attachments ?? [])
    return {
      ...readPersonMessage(id, subject, headers['tocsin-possible-repeat'] === 'true'),
      ...(table && { uids: table, isComplete: true }),
    }
  },
  webhook: ({ json, id, headers }) => {
    const elements = readElements(json)
    const [highest = '?'] = elements
      .map(({ severity }) => severity)
      .toSorted((left, right) => severityRank(right) - severityRank(left))
    return {
      id: id ?? '',
      form: elements.length === 1 ? 'single' : 'batch',
      events: elements.length,
      items: elements.map((element) => element.id),
      mayBeRepeat: headers['tocsin-possible-repeat'] === 'true',
      severity: firstWord(highest),
      text: sanitize(formatElements(elements)),
    }
  },
}

/** `headline`: the first line, the same on every sink for people except for the brackets. */
function readPersonMessage(id: string, headline: string, mayBeRepeat: boolean): ReadMessage {
  const isSealed = id.startsWith('b')
  const summary = isSealed ? readSummary(headline) : undefined
  const [, tag = '', rest = headline] = /^\[([^\]]*)\] (.*)$/s.exec(headline) ?? []
  return {
    id,
    form: summary?.form ?? 'single',
    events: summary?.events ?? 1,
    items: isSealed || id === '' ? [] : [id],
    mayBeRepeat,
    severity: summary?.severity ?? firstWord(tag === '' ? rest : tag),
    text: sanitize(summary ? headline : `${tag} ${rest}`.trimStart()),
  }
}

interface Element {
  id: string
  title: string
  severity: string
}

/** A message about one event has it in `data`, one about several in `data.items`. */
function readElements(json: unknown): Element[] {
  const { data } = json as { data: Element | { items: Element[] } }
  return 'items' in data ? data.items : [data]
}

function formatElements(elements: readonly Element[]): string {
  const [only] = elements
  if (only && elements.length === 1) return `${severityLabel(only.severity)} ${only.title}`
  const words = [noSeverity, ...severities.toReversed()]
  const counts = words.map((word) => ({
    word: word.toUpperCase(),
    count: elements.filter(({ severity }) => knownSeverityWord(severity) === word).length,
  }))
  const parts = counts.filter(({ count }) => count > 0).map(({ word, count }) => `${count} ${word}`)
  return `${pluralize(elements.length, 'event')}: ${parts.join(', ')}`
}

function knownSeverityWord(severity: string): string {
  return isKnownSeverity(severity) ? severity : noSeverity
}

function firstWord(text: string): string {
  return sanitize(text, 40).split(' ')[0]?.toLowerCase() ?? ''
}

/** Decodes Slack's three entities, the ampersand last. */
function unescapeEntities(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}

/**
 * `single`: one event; `batch`: several events for a machine, each in full; else a kind of summary.
 */
export type MessageForm = SummaryKind | 'single' | 'batch'

interface ReadSummary {
  form: SummaryKind
  /** How many events it stands for. */
  events: number
  /** The highest severity in lower case; '' when the headline names none. */
  severity: string
}

const countTag = String.raw`^(?:\[\d+ (?<severity>[^\s,\]]+)[^\]]*\] )?`

/** These patterns follow the headlines of messages/summary-message.ts. */
const summaryPatterns: readonly [SummaryKind, RegExp][] = [
  [
    'digest',
    /^Digest .*?: (?:\d[^;]* already sent[^;]*?, )?(?:nothing (?:else )?new|(?<count>\d+) (?:new )?events?\b(?: \(\d+ (?<severity>[^\s,)]+))?)/,
  ],
  ['group', new RegExp(String.raw`${countTag}(?<count>\d+) new events?\b`)],
  [
    'backlog',
    new RegExp(String.raw`${countTag}Backlog(?: of (?:feed )?\S+)?: (?<count>\d+) events?\b`),
  ],
  ['held', new RegExp(String.raw`${countTag}(?<count>\d+) held events?\b`)],
  ['storm', new RegExp(String.raw`${countTag}(?<count>\d+) events?(?: of \S+)? at once\b`)],
]

/**
 * Parses a headline (Slack text or mail subject). Returns undefined when the message is no summary.
 */
function readSummary(headline: string): ReadSummary | undefined {
  for (const [form, pattern] of summaryPatterns) {
    const { groups } = pattern.exec(headline) ?? {}
    if (!groups) continue
    const { count = '0', severity = '' } = groups
    return { form, events: Number(count), severity: severity.toLowerCase() }
  }
  return undefined
}

/**
 * Uids of the events in an attached table, which holds all of a message; undefined without a
 * readable table (a compressed one is not read).
 */
function readTableUids(
  attachments: readonly { name: string; content: string }[],
): string[] | undefined {
  const table = attachments.find(({ name }) => name.endsWith('.csv'))
  if (!table) return undefined
  const rows = table.content.split('\r\n').slice(1)
  const uids = rows.flatMap((row) => /^"[^"]*","[^"]*","([^"]+)"/.exec(row)?.[1] ?? [])
  return uids.map(refang)
}

/** The live output of a demo run. */

export interface DemoView {
  /** Called once at the start with what runs where. */
  introduce(lines: readonly string[]): void
  showArrival(arrival: Arrival): void
  /** Called a few times a second. */
  update(reading: DemoReading): void
  /** Leaves the cursor where later output may begin. */
  end(): void
}

/** Counts of this run, except lag and pending items, which are current. */
export interface DemoReading {
  /** The phase of the run, e.g. "ends in 12 s". */
  stage: string
  /** The time until which every feed was read to its end, wall clock ms; 0: one never was. */
  caughtUpMs: number
  feeds: FeedReading[]
  sinks: SinkReading[]
}

export interface FeedReading {
  name: string
  /** As `team=brand`. */
  labels: string
  fetched: number
  new: number
  /** New events that a rescan found. */
  late: number
  duplicate: number
  /** undefined: the feed never caught up. */
  lagMs: number | undefined
  lagObjectiveMs: number
}

export interface SinkReading {
  name: DemoSink
  /** Events, and the messages in which they arrived. */
  arrived: number
  messages: number
  /** Items that wait for a group or digest, and all other items on their way. */
  collected: number
  pending: number
}
