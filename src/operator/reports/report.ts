/** What came in and what was told to whom in a period, from the dated counts of several ledgers. */
import type { Config } from '../../config/config.ts'
import { formatDuration } from '../../lib/time-zone.ts'
import { pluralize } from '../../lib/errors.ts'
import { sinkTypeOf } from '../../sinks/sink-types.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { type CountSpan, readCounts } from '../../store/history/dated-counts.ts'
import {
  type Delay,
  formatDay,
  type Grouping,
  type Report,
  type ReportRow,
  type ReportSum,
} from '../../store/history/report.ts'
import { type Column, formatIsoTime, toJson } from './columns.ts'
import { reasonText } from '../item-words.ts'
import type { DestinationLabels } from '../recipients.ts'

/** Ledgers read at a time: the counts of one are some hundreds for each day. */
const ledgersAtOnce = 20

export async function addCounts(
  report: Pick<Report, 'add'>,
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

type SumColumn = Column<ReportSum>

const count = (
  key: 'seen' | 'told' | 'messages' | 'suppressed' | 'diverted' | 'dead',
): SumColumn => ({
  key,
  title: key.toUpperCase(),
  json: (sum) => sum[key],
})

const delay = (whom: 'people' | 'machines', of: 'toPeople' | 'toMachines'): SumColumn => ({
  key: `delay_${whom}`,
  title: `${whom.toUpperCase()} P50, P95, WORST`,
  json: (sum) => delayJson(sum[of]),
  text: ({ [of]: found }) => (found ? boundsOf(found).join(', ') : '-'),
})

const [seen, told, messages] = [count('seen'), count('told'), count('messages')]
const kept = [count('suppressed'), count('diverted'), count('dead')]
const delays = [delay('people', 'toPeople'), delay('machines', 'toMachines')]
const allColumns = [seen, told, messages, ...kept, ...delays]

/** What a grouping can tell: an event has no recipient yet, and an item no longer its feed. */
const columnsBy: Record<Grouping, readonly SumColumn[]> = {
  day: allColumns,
  account: allColumns,
  severity: [seen, told, ...kept, ...delays],
  feed: [seen],
  sink: [told, messages, ...kept, ...delays],
  destination: [told, messages, ...kept, ...delays],
  reason: kept,
}

export function sumJson(sum: ReportSum): Record<string, unknown> {
  return toJson(allColumns, sum)
}

/** Seconds; null: more than a day. */
function delayJson(found: Delay | undefined): object | null {
  if (found === undefined) return null
  const bound = (seconds: number): number | null => (seconds === Infinity ? null : seconds)
  const { events, p50S, p95S, worstS } = found
  return { events, p50_s: bound(p50S), p95_s: bound(p95S), worst_s: bound(worstS) }
}

export function boundsOf({ p50S, p95S, worstS }: Delay): string[] {
  return [p50S, p95S, worstS].map((seconds) =>
    seconds === Infinity ? '> 1 d' : `≤ ${formatDuration(seconds * 1000)}`,
  )
}

export function sumText(sum: ReportSum): string {
  const sums = [
    `${pluralize(sum.seen, 'event')} seen`,
    `told ${pluralize(sum.told, 'time')} in ${pluralize(sum.messages, 'message')}`,
    `${sum.suppressed} suppressed`,
    `${sum.diverted} diverted`,
    `${sum.dead} dead`,
  ]
  return sums.join(', ')
}

/** The columns of its rows; destinations by their labels. */
export function reportColumns(by: Grouping, labels: DestinationLabels): Column<ReportRow>[] {
  const name = (row: ReportRow): string =>
    by === 'destination' ? (labels.get(row.name) ?? row.name) : row.name
  const words = { key: 'reason_text', json: (row: ReportRow) => reasonText(row.name) }
  return [
    { key: by, title: by.toUpperCase(), json: name },
    ...(by === 'reason' ? [words] : []),
    ...columnsBy[by],
  ]
}

export interface ReportAbout {
  by: Grouping
  labels: DestinationLabels
  fromMs: number
  toMs: number
  nowMs: number
}

/** The answer of `report --output json` and of the API. */
export function reportJson(
  report: Report,
  { by, labels, fromMs, toMs, nowMs }: ReportAbout,
): Record<string, unknown> {
  const columns = reportColumns(by, labels)
  return {
    from: formatDay(fromMs),
    to: formatDay(toMs),
    as_of: formatIsoTime(nowMs),
    by,
    total: sumJson(report.total()),
    rows: report.rows().map((row) => toJson(columns, row)),
  }
}
