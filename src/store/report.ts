/** Sums of the counts by day, for whoever asks what was told to whom in a period. */
import { type DatedCount, sinkOfDestination } from './dated-counts.ts'

export const groupings = [
  'day',
  'account',
  'feed',
  'severity',
  'sink',
  'destination',
  'reason',
] as const

export type Grouping = (typeof groupings)[number]

/** How long events were visible before they were told: upper bounds in s, Infinity beyond a day. */
export interface Delay {
  events: number
  p50S: number
  p95S: number
  worstS: number
}

/** One row of a report. Counts of items, but `seen` of events and `messages` of messages. */
export interface ReportRow {
  name: string
  seen: number
  told: number
  messages: number
  suppressed: number
  diverted: number
  dead: number
  /** undefined: nobody was told. */
  toPeople: Delay | undefined
  toMachines: Delay | undefined
}

interface ReportOptions {
  by: Grouping
  /** Whether people read what the sink gets. */
  isForPeople: (sink: string) => boolean
}

/**
 * One row a name, by name; severities and reasons the most first. What a grouping cannot tell, such
 * as the feed of an item, is left out of its rows.
 */
export function groupCounts(counts: readonly DatedCount[], options: ReportOptions): ReportRow[] {
  const named = counts.map((count) => ({ count, name: nameIn(options.by, count) }))
  const groups = Map.groupBy(named, ({ name }) => name)
  groups.delete(undefined)
  const rows = [...groups].map(([name = '', some]) => ({
    name,
    ...sumCounts(
      some.map(({ count }) => count),
      options,
    ),
  }))
  const size = (row: ReportRow): number => row.suppressed + row.diverted + row.dead
  return options.by === 'reason'
    ? rows.toSorted((a, b) => size(b) - size(a))
    : rows.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** `YYYY-MM-DD`. */
export function formatDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

function nameIn(by: Grouping, count: DatedCount): string | undefined {
  if (by === 'day') return formatDay(count.atMs)
  if (by === 'account') return count.account
  if (by === 'feed') return count.kind === 'new' ? count.feed : undefined
  if (by === 'severity') return 'severity' in count ? count.severity : undefined
  if (count.kind === 'new') return undefined
  if (by === 'destination') return count.destination
  if (by === 'sink') return sinkOfDestination(count.destination)
  return count.kind === 'ended' && count.outcome !== 'delivered' ? count.reason : undefined
}

/** The sum of all counts. */
export function sumCounts(
  counts: readonly DatedCount[],
  { isForPeople }: Pick<ReportOptions, 'isForPeople'>,
): Omit<ReportRow, 'name'> {
  const sum = { seen: 0, told: 0, messages: 0, suppressed: 0, diverted: 0, dead: 0 }
  const delays = { people: new Map<number, number>(), machines: new Map<number, number>() }
  for (const count of counts) {
    if (count.kind === 'new') sum.seen += count.count
    else if (count.kind === 'message') sum.messages += count.count
    else if (count.kind === 'ended') {
      sum[count.outcome === 'delivered' ? 'told' : count.outcome] += count.count
    } else {
      const isPeople = isForPeople(sinkOfDestination(count.destination))
      const buckets = delays[isPeople ? 'people' : 'machines']
      buckets.set(count.withinS, (buckets.get(count.withinS) ?? 0) + count.count)
    }
  }
  return { ...sum, toPeople: readDelay(delays.people), toMachines: readDelay(delays.machines) }
}

function readDelay(buckets: ReadonlyMap<number, number>): Delay | undefined {
  const sorted = [...buckets].toSorted(([one], [other]) => one - other)
  const events = sorted.reduce((sum, [, count]) => sum + count, 0)
  if (events === 0) return undefined
  const quantile = (share: number): number => {
    let passed = 0
    for (const [withinS, count] of sorted) {
      passed += count
      if (passed >= share * events) return withinS
    }
    return Infinity
  }
  return { events, p50S: quantile(0.5), p95S: quantile(0.95), worstS: quantile(1) }
}
