/**
 * `events list` and `deliveries list`: what came in and what was sent, newest first, from the
 * ledger. Neither asks the service.
 */
import { Command, InvalidArgumentError, Option } from 'commander'
import type { Config } from '../../config/config.ts'
import { isKnownSeverity, noSeverity, severities, severityRank } from '../../event.ts'
import { formatSeverity } from '../../messages/summary.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { readAccounting } from '../../store/accounts.ts'
import { readMessageAttempts, readSinkNames } from '../../store/pending-items.ts'
import {
  type AttemptNote,
  deliveryId,
  type Item,
  type ItemState,
  lastAttemptMs,
  type LedgerRecord,
  readPayloads,
  scanNewestRecords,
} from '../../store/records.ts'
import { redisNow } from '../../redis/scripts.ts'
import { createPrinter, type Listing, severityStyle, shortTime } from '../api/listing.ts'
import { addCommonOptions, type CommonOptions, type Context, loadConfigFile } from '../context.ts'
import {
  destinationLabels,
  type DestinationLabels,
  ledgerFor,
  type OpenStore,
  requireLedger,
  withStore,
} from '../open/open-store.ts'
import {
  addPeriodOptions,
  addWideOption,
  listParser,
  parseList,
  type Period,
  type PeriodOptions,
  parseWord,
  wordsOption,
  resolvePeriod,
  sizeParser,
  type WideOption,
} from '../options.ts'
import { findNamed, formatIsoTime, pluralize, sanitize } from '../terminal.ts'
import { formatAttempt, formatSuppressed, historyJson, renderRecordMessage } from './explain.ts'

/** Bounds what a list holds in memory. */
const maxRows = 1_000

interface LedgerListOptions extends CommonOptions, WideOption, PeriodOptions {
  account?: string
  limit: number
}

function ledgerListCommand(description: string, whenInPeriod: string): Command {
  const command = addWideOption(addCommonOptions(new Command('list'))).description(description)
  return addPeriodOptions(command, whenInPeriod)
    .option('--account <name>', 'only of this account')
    .option('--limit <n>', `how many, up to ${maxRows}`, sizeParser(maxRows), 50)
}

/** Opens the ledgers that the options name. Throws CommandError. */
function withLedgers<Result>(
  config: Config,
  options: LedgerListOptions,
  use: (store: OpenStore, ledgers: readonly AccountLedger[], period: Period) => Promise<Result>,
): Promise<Result> {
  return withStore(config, async (store) => {
    const { account } = options
    const ledgers = account === undefined ? store.ledgers : [requireLedger(store, account)]
    const period = resolvePeriod(options, await redisNow(store))
    return use(store, ledgers, period)
  })
}

interface DatedRow {
  key: string
  atMs: number
}

/** The newest rows of those added in any order, of one time by key; one more than are shown. */
interface NewestRows<Row> {
  /** Returns the row of this key as it stands. */
  get(key: string): Row | undefined
  add(row: Row): void
  /** Whatever is older than this can no longer be among them. */
  leastMs: () => number
  end(): { rows: Row[]; hasMore: boolean }
}

function createNewestRows<Row extends DatedRow>(limit: number, sinceMs: number): NewestRows<Row> {
  let rows = new Map<string, Row>()
  let last: DatedRow | undefined
  const trim = (): void => {
    const newest = [...rows.values()].toSorted(newestFirst).slice(0, limit + 1)
    if (newest.length > limit) last = newest.at(-1)
    rows = new Map(newest.map((row) => [row.key, row]))
  }
  return {
    get: (key) => rows.get(key),
    add(row) {
      if (last !== undefined && newestFirst(row, last) > 0) return
      rows.set(row.key, row)
      if (rows.size > 2 * (limit + 1)) trim()
    },
    leastMs: () => last?.atMs ?? sinceMs,
    end() {
      trim()
      const newest = [...rows.values()]
      return { rows: newest.slice(0, limit), hasMore: newest.length > limit }
    },
  }
}

function newestFirst(a: DatedRow, b: DatedRow): number {
  if (a.atMs !== b.atMs) return a.atMs < b.atMs ? 1 : -1
  return a.key < b.key ? -1 : Number(a.key > b.key)
}

interface EventsListOptions extends LedgerListOptions {
  severity?: (severity: string) => boolean
  type?: string[]
  feed?: string
}

export function eventsListCommand(context: Context): Command {
  return ledgerListCommand('what the feeds took in, from the ledger (asks no service)', 'taken in')
    .addOption(
      wordsOption(
        '--severity <words>',
        'high: this or higher; high,critical: exactly these; "high,": exactly this',
        knownSeverities,
        parseSeverity,
      ),
    )
    .addOption(new Option('--type <types>', 'of these types, such as a,b').argParser(parseList))
    .option('--feed <name>', 'only what this feed showed; it may have left the configuration')
    .action((options: EventsListOptions) => listEvents(context, options))
}

const knownSeverities = [...severities, noSeverity]

/** A word alone includes what is not known, which counts as critical. */
function parseSeverity(text: string): (severity: string) => boolean {
  const words = text.trim().toLowerCase()
  if (words === ',' || words === '') {
    throw new InvalidArgumentError('Write a severity, such as high.')
  }
  if (!words.includes(',') && words !== noSeverity) {
    const rank = severityRank(parseWord(knownSeverities, words))
    return (severity) => severityRank(severity) >= rank
  }
  const chosen = listParser(knownSeverities)(words.replace(/,$/, ''))
  return (severity) => chosen.includes(isKnownSeverity(severity) ? severity : noSeverity)
}

interface EventRow extends DatedRow {
  record: LedgerRecord
}

/** A record with the title that its messages have. */
interface TitledRow extends EventRow {
  title: string | undefined
  link: string | null
}

async function listEvents(context: Context, options: EventsListOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { rows, hasMore } = await withLedgers(
    config,
    options,
    async (store, ledgers, { fromMs = 0, toMs = Infinity }) => {
      if (options.feed !== undefined) await requireFeed(config, ledgers, options.feed)
      const newest = createNewestRows<EventRow>(options.limit, fromMs)
      for (const ledger of ledgers) {
        for await (const record of scanNewestRecords(ledger, newest.leastMs)) {
          const atMs = record.firstSeenMs
          if (atMs < fromMs || atMs > toMs || !isWanted(record, options)) continue
          newest.add({ key: `${record.account} ${record.recordId}`, atMs, record })
        }
      }
      const found = newest.end()
      return { ...found, rows: await readTitles(store, config, found.rows) }
    },
  )
  printRows(context, options, eventsListing(destinationLabels(config)), { rows, hasMore })
}

function isWanted(
  { severity, type, sightings }: LedgerRecord,
  wanted: Pick<EventsListOptions, 'severity' | 'type' | 'feed'>,
): boolean {
  return (
    (wanted.severity?.(severity) ?? true) &&
    (wanted.type?.includes(type) ?? true) &&
    (wanted.feed === undefined || sightings.some(({ feed }) => feed === wanted.feed))
  )
}

/** Throws CommandError for a feed that is not configured and that no ledger knows. */
async function requireFeed(
  { feeds }: Config,
  ledgers: readonly AccountLedger[],
  name: string,
): Promise<void> {
  if (feeds.some((feed) => feed.name === name)) return
  const counted = await Promise.all(ledgers.map((ledger) => readAccounting(ledger)))
  const names = new Set([
    ...feeds.map((feed) => feed.name),
    ...counted.flatMap((accounting) => Object.keys(accounting.feeds)),
  ])
  findNamed(
    [...names].map((one) => ({ name: one })),
    name,
    'feed',
  )
}

/** Payloads are large: so many are in memory at a time. */
const payloadsAtOnce = 50

async function readTitles(
  store: OpenStore,
  config: Config,
  rows: readonly EventRow[],
): Promise<TitledRow[]> {
  const titled = new Map<string, TitledRow>()
  for (const [account, own] of Map.groupBy(rows, ({ record }) => record.account)) {
    for (let at = 0; at < own.length; at += payloadsAtOnce) {
      const some = own.slice(at, at + payloadsAtOnce)
      const ids = some.map(({ record }) => record.recordId)
      const payloads = await readPayloads(ledgerFor(store, account), ids)
      for (const [i, row] of some.entries()) {
        const payload = payloads[i]
        const message = payload && renderRecordMessage(config, row.record, payload)
        titled.set(row.key, { ...row, title: message?.title, link: message?.link ?? null })
      }
    }
  }
  return rows.flatMap(({ key }) => titled.get(key) ?? [])
}

function eventsListing(labels: DestinationLabels): Listing<TitledRow> {
  return {
    columns: [
      {
        title: 'TAKEN IN (UTC)',
        width: 16,
        text: ({ atMs }) => shortTime(formatIsoTime(atMs)),
      },
      {
        title: 'SEVERITY',
        width: 8,
        text: ({ record }) => formatSeverity(record.severity),
        style: ({ record }) => severityStyle(record.severity),
      },
      { title: 'FEED', width: 16, text: ({ record }) => record.sightings[0]?.feed ?? '' },
      { title: 'TITLE', width: 60, text: ({ title, record }) => title ?? record.type },
    ],
    below: ({ record }) => [sanitize(record.uid, 600), formatStanding(record)],
    json: ({ record, title = null, link }) => ({ ...historyJson(record, labels), title, link }),
    csv: [],
  }
}

/** Where an event stands, by sink: `delivered to soc; waits for oncall`. */
function formatStanding({ items, account }: LedgerRecord): string {
  const sinks = Map.groupBy(items, formatItemStanding)
  const parts = [...sinks].map(
    ([words, those]) => `${words} ${[...new Set(those.map(({ sink }) => sink))].join(', ')}`,
  )
  const text = parts.length === 0 ? 'no destination' : parts.join('; ')
  return `account ${account}: ${sanitize(text, 600)}`
}

function formatItemStanding(item: Item): string {
  switch (item.state) {
    case 'delivered':
      return 'delivered to'
    case 'dead':
      return 'undeliverable to'
    case 'discarded':
      return 'given up for'
    case 'diverted':
      return 'moved to another sink from'
    case 'suppressed':
      return `${formatSuppressed(item)}, not sent to`
    case 'held':
    case 'queued':
    case 'group':
    case 'digest':
    case 'batch':
    case 'sending':
    case 'retrying':
      return 'waits for'
  }
}

const deliveryStates = ['pending', 'delivered', 'dead', 'discarded'] as const

type DeliveryState = (typeof deliveryStates)[number]

interface DeliveriesListOptions extends LedgerListOptions {
  sink?: string
  state?: DeliveryState[]
}

export function deliveriesListCommand(context: Context): Command {
  return ledgerListCommand('the messages that were sent, or are about to be', 'last tried')
    .option('--sink <name>', 'only to this sink; it may have left the configuration')
    .addOption(wordsOption('--state <words>', 'only these, such as dead,pending', deliveryStates))
    .action((options: DeliveriesListOptions) => listDeliveries(context, options))
}

/** After any date: what is pending comes before all that is over, the longest waiting first. */
const pendingMs = 8.64e15

/** One message, or one event that waits for its message. */
interface DeliveryRow extends DatedRow {
  /** Of the worst of its events. */
  uid: string

  /** When the last attempt ended; undefined: none did. */
  triedMs: number | undefined
  accounts: Set<string>
  sink: string
  destination: string
  state: DeliveryState
  events: number
  severity: string
  attempts: number
  last: AttemptNote | undefined
}

async function listDeliveries(context: Context, options: DeliveriesListOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const found = await withLedgers(config, options, async (store, ledgers, period) => {
    if (options.sink !== undefined) await requireSink(config, ledgers, options.sink)
    const newest = createNewestRows<DeliveryRow>(options.limit, period.fromMs ?? 0)
    for (const ledger of ledgers) await addDeliveries(ledger, newest, { ...options, ...period })
    const { rows, hasMore } = newest.end()
    return { rows: await Promise.all(rows.map((row) => countAttempts(store, row))), hasMore }
  })
  printRows(context, options, deliveriesListing(destinationLabels(config)), found)
}

/**
 * Adds what the items of an account were sent in. A settled record holds nothing sent later than it
 * was settled, and all items of a settled message have the time of its last attempt, so where a
 * scan may end, the counts of all messages that are listed are whole. What was sent of a pending
 * record may be of any time: all of them are read.
 */
async function addDeliveries(
  ledger: AccountLedger,
  newest: NewestRows<DeliveryRow>,
  { sink, state, fromMs = 0, toMs = Infinity }: Partial<DeliveriesListOptions> & Period,
): Promise<void> {
  const leastMs = (isPending: boolean): number => (isPending ? -Infinity : newest.leastMs())
  for await (const record of scanNewestRecords(ledger, leastMs)) {
    for (const item of record.items) {
      const sent = toDelivery(record, item)
      const isWantedItem =
        sent !== undefined &&
        (sink === undefined || item.sink === sink) &&
        (state?.includes(sent.state) ?? true)
      if (!isWantedItem || sent.atMs < fromMs || sent.atMs > toMs) continue
      const known = newest.get(sent.key)
      newest.add(known ? mergeDeliveries(known, sent) : sent)
    }
  }
}

/** undefined for what is held or waits for a digest, and for what ended without a try. */
function toDelivery({ account, uid }: LedgerRecord, item: Item): DeliveryRow | undefined {
  const state = deliveryStateOf(item)
  const triedMs = lastAttemptMs(item)
  if (state === undefined || (state !== 'pending' && triedMs === undefined)) return undefined
  const { sink, destination, severity, attempts, history } = item
  return {
    key: deliveryId(item),
    uid,
    atMs: state === 'pending' ? pendingMs - item.createdAtMs : (triedMs ?? 0),
    triedMs,
    accounts: new Set([account]),
    sink,
    destination,
    state,
    events: 1,
    severity,
    attempts,
    last: history.at(-1),
  }
}

/** Pending is what its sink owes, as the ledger counts it. */
const owedStates: ReadonlySet<ItemState> = new Set([
  'queued',
  'group',
  'batch',
  'sending',
  'retrying',
])

function deliveryStateOf({ state }: Item): DeliveryState | undefined {
  if (state === 'delivered' || state === 'dead' || state === 'discarded') return state
  return owedStates.has(state) ? 'pending' : undefined
}

/** Of a message whose items differ in state, what needs looking at. */
const gravestState = ['pending', 'dead', 'discarded', 'delivered'] as const

function mergeDeliveries(one: DeliveryRow, other: DeliveryRow): DeliveryRow {
  const isWorse = severityRank(other.severity) > severityRank(one.severity)
  return {
    ...one,
    uid: isWorse ? other.uid : one.uid,
    atMs: Math.max(one.atMs, other.atMs),
    triedMs: latest(one.triedMs, other.triedMs),
    accounts: new Set([...one.accounts, ...other.accounts]),
    state: gravestState.find((state) => [one.state, other.state].includes(state)) ?? one.state,
    events: one.events + other.events,
    severity: isWorse ? other.severity : one.severity,
    attempts: Math.max(one.attempts, other.attempts),
  }
}

/** Members of a frozen message know of its attempts once it is settled. */
async function countAttempts({ ledgers }: OpenStore, row: DeliveryRow): Promise<DeliveryRow> {
  if (row.state !== 'pending' || !row.key.startsWith('b')) return row
  const sent = await readMessageAttempts(ledgers, row.key.slice(1))
  const last = sent?.history.at(-1)
  return {
    ...row,
    ...(sent && { attempts: sent.attempts }),
    ...(last && { triedMs: last.atMs, last }),
  }
}

function latest(...timesMs: (number | undefined)[]): number | undefined {
  const known = timesMs.filter((atMs) => atMs !== undefined)
  return known.length === 0 ? undefined : Math.max(...known)
}

/** Throws CommandError for a sink that is not configured and that no ledger knows. */
async function requireSink(
  { sinks }: Config,
  ledgers: readonly AccountLedger[],
  name: string,
): Promise<void> {
  const known = await Promise.all(ledgers.map(readSinkNames))
  const names = new Set([...sinks.map((sink) => sink.name), ...known.flat()])
  findNamed(
    [...names].map((one) => ({ name: one })),
    name,
    'sink',
  )
}

function deliveriesListing(labels: DestinationLabels): Listing<DeliveryRow> {
  const formatTried = ({ triedMs }: DeliveryRow): string | null =>
    triedMs === undefined ? null : formatIsoTime(triedMs)
  return {
    columns: [
      {
        title: 'LAST TRIED (UTC)',
        width: 16,
        text: (row) => shortTime(formatTried(row) ?? '') || '-',
      },
      {
        title: 'STATE',
        width: 9,
        text: ({ state }) => state,
        style: ({ state }) => (state === 'dead' ? 'red' : undefined),
      },
      {
        title: 'WORST',
        width: 8,
        text: ({ severity }) => formatSeverity(severity),
        style: ({ severity }) => severityStyle(severity),
      },
      { title: 'EVENTS', width: 6, text: ({ events }) => String(events) },
      { title: 'TRIES', width: 5, text: ({ attempts }) => String(attempts) },
      {
        title: 'TO',
        width: 40,
        text: ({ sink, destination }) => {
          const place = labels.get(destination) ?? destination
          return place === sink ? sink : `${sink}, ${place}`
        },
      },
    ],
    below: ({ key, uid, events, accounts, state, last }) => [
      `${key}, account ${[...accounts].toSorted().join(', ')}`,
      ...(state === 'pending' ? [`${sanitize(uid, 600)}${formatOthers(events - 1)}`] : []),
      ...(last && state !== 'delivered' ? [formatAttempt(last)] : []),
    ],
    json: (row) => ({
      id: row.key,
      uid: row.uid,
      accounts: [...row.accounts].toSorted(),
      sink: row.sink,
      destination: labels.get(row.destination) ?? null,
      state: row.state,
      tried_at: formatTried(row),
      events: row.events,
      severity: row.severity,
      attempts: row.attempts,
      outcome: row.last?.outcome ?? null,
      reason: row.last?.reason ?? null,
      answer: row.last?.answer ?? null,
    }),
    csv: [],
  }
}

function formatOthers(count: number): string {
  return count === 0 ? '' : ` and ${pluralize(count, 'other')}`
}

/** In JSON, `next` is what to give to `--until` for what comes after. */
function printRows<Row extends DatedRow>(
  context: Context,
  options: LedgerListOptions,
  listing: Listing<Row>,
  { rows, hasMore }: { rows: readonly Row[]; hasMore: boolean },
): void {
  const printer = createPrinter(context, options.output, listing, options)
  printer.add(rows)
  const lastMs = rows.at(-1)?.atMs ?? pendingMs
  const next = hasMore && lastMs <= pendingMs / 2 ? formatIsoTime(lastMs) : null
  printer.end(next)
  if (!hasMore) return
  const earlier = next === null ? '' : `, or what is older: --until ${next}`
  context.terminal.printError(
    `there is more: a higher --limit shows it, up to ${maxRows}${earlier}`,
  )
}
