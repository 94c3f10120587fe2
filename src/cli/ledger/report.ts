/** `report`: what came in, what was told to whom, and how soon, by day or by whatever else. */
import { Command, Option } from 'commander'
import type { Config } from '../../config/config.ts'
import { sinkTypeOf } from '../../sinks/sink-types.ts'
import { redisNow } from '../../redis/scripts.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { type CountSpan, readCounts } from '../../store/dated-counts.ts'
import {
  createReport,
  type Delay,
  formatDay,
  type Grouping,
  groupings,
  type Report,
  type ReportRow,
  type ReportSum,
} from '../../store/report.ts'
import { createPrinter } from '../api/listing.ts'
import { type Context, loadConfigFile } from '../context.ts'
import { destinationLabels, ledgersFor, withStore } from '../open/open-store.ts'
import {
  addPeriodOptions,
  parseWord,
  type PeriodOptions,
  resolvePeriod,
  wordsOption,
} from '../options.ts'
import {
  CommandError,
  formatDuration,
  formatIsoTime,
  formatTable,
  formatUtcTime,
  jsonText,
  pluralize,
  sanitize,
} from '../terminal.ts'

interface ReportOptions extends PeriodOptions {
  config?: string
  account?: string
  by: Grouping
  output: 'text' | 'json' | 'csv'
}

export function reportCommand(context: Context): Command {
  const command = new Command('report')
    .option('--config <file>', 'the configuration (default: tocsin.yaml, then config/tocsin.yaml)')
    .option('--account <name>', 'of this account')
    .addOption(
      wordsOption('--by <what>', 'a row for each', groupings, (word) =>
        parseWord(groupings, word),
      ).default('day'),
    )
  return addPeriodOptions(command, 'counted on the day (UTC)')
    .addOption(
      new Option('--output <form>', 'for people or for machines')
        .choices(['text', 'json', 'csv'])
        .default('text'),
    )
    .addHelpText('after', help)
    .action((options: ReportOptions) => report(context, options))
}

const help = `
Without --since, of the last seven days. Days are whole, in UTC, and kept as
long as the history (retention.history). SEEN counts events, MESSAGES messages,
all else an event for each recipient. P50, P95 and WORST tell how long the API
had shown an event when its recipient got it.`

interface Period {
  fromMs: number
  toMs: number
  nowMs: number
}

async function report(context: Context, options: ReportOptions): Promise<void> {
  const { terminal } = context
  const { config } = loadConfigFile(context, options.config)
  const result = createReport({ by: options.by, isForPeople: isForPeopleIn(config) })
  const period = await withStore(config, async (store) => {
    const asked = readPeriod(options, await redisNow(store), config.ledger.historyRetentionMs)
    await addCounts(result, ledgersFor(store, options), { by: 'day', ...asked })
    return asked
  })
  const total = result.total()
  const rows = result.rows().map((row) => ({ ...row, name: labelOf(config, options.by, row.name) }))
  const found = { period, total, rows }
  if (options.output === 'json') return terminal.print(jsonText(foundJson(options.by, found), 2))
  if (options.output === 'text') return terminal.print(foundLines(options.by, found).join('\n'))
  const csv = {
    columns: [],
    json: (row: ReportRow) => rowJson(options.by, row),
    csv: [options.by, ...columnsBy[options.by].flatMap(csvColumns)],
  }
  const printer = createPrinter(context, 'csv', csv, { wide: true })
  printer.add(rows)
  printer.end(null)
}

/** Whole days: seven, or since the time asked for, as far as they are kept. */
function readPeriod(options: ReportOptions, nowMs: number, keptMs: number): Period {
  const { fromMs, toMs = nowMs } = resolvePeriod(options, nowMs)
  if (toMs < nowMs - keptMs) {
    const since = `counts are kept since ${formatDay(nowMs - keptMs)} (retention.history)`
    throw new CommandError('mistake', `--until: ${since}; name a later time`)
  }
  return { fromMs: Math.max(fromMs ?? toMs - 6 * dayMs, nowMs - keptMs), toMs, nowMs }
}

const dayMs = 86_400_000

/** Ledgers read at a time: the counts of one are some hundreds for each day. */
const ledgersAtOnce = 20

export async function addCounts(
  report: Report,
  ledgers: readonly AccountLedger[],
  span: CountSpan,
): Promise<void> {
  for (let at = 0; at < ledgers.length; at += ledgersAtOnce) {
    const some = ledgers.slice(at, at + ledgersAtOnce)
    const read = some.map(async (ledger) => report.add(await readCounts(ledger, span)))
    await Promise.all(read)
  }
}

/** Whether people read a sink; one that left the configuration counts as read. */
export function isForPeopleIn({ sinks }: Config): (sink: string) => boolean {
  const machines = new Set(
    sinks.filter((sink) => sinkTypeOf(sink).audience === 'machines').map(({ name }) => name),
  )
  return (sink) => !machines.has(sink)
}

function labelOf(config: Config, by: Grouping, name: string): string {
  return by === 'destination' ? (destinationLabels(config).get(name) ?? name) : name
}

interface Found {
  period: Period
  total: ReportSum
  rows: readonly ReportRow[]
}

type ReportColumn = Exclude<keyof ReportRow, 'name'>

const allColumns = [
  'seen',
  'told',
  'messages',
  'suppressed',
  'diverted',
  'dead',
  'toPeople',
  'toMachines',
] as const satisfies readonly ReportColumn[]

function without(...left: readonly ReportColumn[]): ReportColumn[] {
  return allColumns.filter((column) => !left.includes(column))
}

/** What a grouping can tell: an event has no recipient yet, and an item no longer its feed. */
const columnsBy: Record<Grouping, readonly ReportColumn[]> = {
  day: allColumns,
  account: allColumns,
  severity: without('messages'),
  feed: ['seen'],
  sink: without('seen'),
  destination: without('seen'),
  reason: ['suppressed', 'diverted', 'dead'],
}

const delayNames = { toPeople: 'delay_people', toMachines: 'delay_machines' } as const

function isDelay(column: ReportColumn): column is keyof typeof delayNames {
  return column in delayNames
}

function csvColumns(column: ReportColumn): string[] {
  if (!isDelay(column)) return [column]
  return ['events', 'p50_s', 'p95_s', 'worst_s'].map((part) => `${delayNames[column]}.${part}`)
}

function foundJson(by: Grouping, { period, total, rows }: Found): object {
  return {
    from: formatDay(period.fromMs),
    to: formatDay(period.toMs),
    as_of: formatIsoTime(period.nowMs),
    by,
    total: sumJson(total),
    rows: rows.map((row) => rowJson(by, row)),
  }
}

function rowJson(by: Grouping, row: ReportRow): Record<string, unknown> {
  return { [by]: row.name, ...sumJson(row, columnsBy[by]) }
}

export function sumJson(
  sum: Found['total'],
  columns: readonly ReportColumn[] = allColumns,
): Record<string, unknown> {
  const fields = columns.map((column) =>
    isDelay(column) ? [delayNames[column], delayJson(sum[column])] : [column, sum[column]],
  )
  return Object.fromEntries(fields) as Record<string, unknown>
}

/** Seconds; null: more than a day. */
function delayJson(delay: Delay | undefined): object | null {
  if (delay === undefined) return null
  const bound = (seconds: number): number | null => (seconds === Infinity ? null : seconds)
  const { events, p50S, p95S, worstS } = delay
  return { events, p50_s: bound(p50S), p95_s: bound(p95S), worst_s: bound(worstS) }
}

function foundLines(by: Grouping, { period, total, rows }: Found): string[] {
  const columns = columnsBy[by]
  const table = [
    [by.toUpperCase(), ...columns.map((column) => columnTitles[column])],
    ...rows.map((row) => [sanitize(row.name), ...columns.map((column) => cellOf(row, column))]),
  ]
  return [...sumLines(period, total), ...(rows.length === 0 ? [] : formatTable(table))]
}

const columnTitles: Record<ReportColumn, string> = {
  seen: 'SEEN',
  told: 'TOLD',
  messages: 'MESSAGES',
  suppressed: 'SUPPRESSED',
  diverted: 'DIVERTED',
  dead: 'DEAD',
  toPeople: 'PEOPLE P50, P95, WORST',
  toMachines: 'MACHINES P50, P95, WORST',
}

function cellOf(row: ReportRow, column: ReportColumn): string {
  if (!isDelay(column)) return String(row[column])
  const delay = row[column]
  return delay === undefined ? '-' : boundsOf(delay).join(', ')
}

export function boundsOf({ p50S, p95S, worstS }: Delay): string[] {
  return [p50S, p95S, worstS].map((seconds) =>
    seconds === Infinity ? '> 1 d' : `≤ ${formatDuration(seconds * 1000)}`,
  )
}

function sumLines({ fromMs, toMs, nowMs }: Period, total: Found['total']): string[] {
  const days = [...new Set([fromMs, toMs].map(formatDay))].join(' to ')
  return [
    `${days} in UTC, as of ${formatUtcTime(nowMs)}: ${sumText(total)}`,
    ...delayLine('people', total.toPeople),
    ...delayLine('machines', total.toMachines),
  ]
}

export function sumText(sum: Found['total']): string {
  const { seen, told, messages, suppressed, diverted, dead } = sum
  const sums = [
    `${pluralize(seen, 'event')} seen`,
    `told ${pluralize(told, 'time')} in ${pluralize(messages, 'message')}`,
    `${suppressed} suppressed`,
    `${diverted} diverted`,
    `${dead} dead`,
  ]
  return sums.join(', ')
}

function delayLine(whom: string, delay: Delay | undefined): string[] {
  if (delay === undefined) return []
  const [half, most, worst] = boundsOf(delay)
  return [`from visible to told, ${whom}: p50 ${half}, p95 ${most}, worst ${worst}`]
}
