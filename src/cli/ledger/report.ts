/** `report`: what came in, what was told to whom, and how soon, by day or by whatever else. */
import { Command, Option } from 'commander'
import { byteOrderMark, csvLine } from '../../messages/csv.ts'
import { redisNow } from '../../redis/scripts.ts'
import { type Column, toJson } from '../../operator/reports/columns.ts'
import {
  addCounts,
  boundsOf,
  isForPeopleIn,
  reportColumns,
  reportJson,
  sumText,
} from '../../operator/reports/report.ts'
import {
  createReport,
  type Delay,
  formatDay,
  type Grouping,
  groupings,
  type ReportRow,
  type ReportSum,
} from '../../store/history/report.ts'
import { valueAt } from '../api/listing.ts'
import { tableLines } from '../columns.ts'
import { type Context, loadConfigFile } from '../context.ts'
import { ledgersFor, withStore } from '../open/open-store.ts'
import {
  addPeriodOptions,
  parseWord,
  type PeriodOptions,
  resolvePeriod,
  wordsOption,
} from '../options.ts'
import { CommandError, formatUtcTime, jsonText } from '../terminal.ts'
import { destinationLabels } from '../../operator/recipients.ts'

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
  const { by, output } = options
  const result = createReport({ by, isForPeople: isForPeopleIn(config) })
  const period = await withStore(config, async (store) => {
    const asked = readPeriod(options, await redisNow(store), config.ledger.historyRetentionMs)
    await addCounts(result, ledgersFor(store, options), { by: 'day', ...asked })
    return asked
  })
  const labels = destinationLabels(config)
  const columns = reportColumns(by, labels)
  const rows = result.rows()
  if (output === 'csv') return terminal.print(csvOf(columns, rows))
  if (output === 'json') {
    return terminal.print(jsonText(reportJson(result, { by, labels, ...period }), 2))
  }
  const total = result.total()
  const table = rows.length === 0 ? [] : tableLines(context, columns, rows)
  terminal.print([...sumLines(period, total), ...table].join('\n'))
}

/** Nested values have a column each. */
function csvOf(columns: readonly Column<ReportRow>[], rows: readonly ReportRow[]): string {
  const parts = ['events', 'p50_s', 'p95_s', 'worst_s']
  const keys = columns.flatMap(({ key }) =>
    key.startsWith('delay_') ? parts.map((part) => `${key}.${part}`) : [key],
  )
  const lines = rows.map((row) => {
    const fields = toJson(columns, row)
    return csvLine(keys.map((key) => `${(valueAt(fields, key) ?? '') as string | number}`))
  })
  return [`${byteOrderMark}${csvLine(keys)}`, ...lines].join('').trimEnd()
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

function sumLines({ fromMs, toMs, nowMs }: Period, total: ReportSum): string[] {
  const days = [...new Set([fromMs, toMs].map(formatDay))].join(' to ')
  return [
    `${days} in UTC, as of ${formatUtcTime(nowMs)}: ${sumText(total)}`,
    ...delayLine('people', total.toPeople),
    ...delayLine('machines', total.toMachines),
  ]
}

function delayLine(whom: string, found: Delay | undefined): string[] {
  if (found === undefined) return []
  const [half, most, worst] = boundsOf(found)
  return [`from visible to told, ${whom}: p50 ${half}, p95 ${most}, worst ${worst}`]
}
