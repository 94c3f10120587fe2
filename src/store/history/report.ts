/** Sums of the dated counts, for whoever asks what was told to whom in a period. */
import { severityRank } from '../../event.ts'
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

/** Counts of items, but `seen` of events and `messages` of messages. */
export interface ReportSum {
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

export interface ReportRow extends ReportSum {
  name: string
}

export interface Report {
  add(counts: readonly DatedCount[]): void
  total(): ReportSum
  /**
   * By name; severities by rank, reasons by how much was not told. What a grouping cannot tell, such
   * as the feed of an item, is left out of its rows.
   */
  rows(): ReportRow[]
}

/** What routes took and rules suppressed are the same events and items again. */
type ReportedCount = Exclude<DatedCount, { kind: 'route' | 'rule' }>

function isReported(count: DatedCount): count is ReportedCount {
  return count.kind !== 'route' && count.kind !== 'rule'
}

interface ReportOptions {
  by: Grouping
  /** Whether people read what the sink gets. */
  isForPeople: (sink: string) => boolean
}

/** A report that grows: the counts of hundreds of accounts are never in memory at once. */
export function createReport({ by, isForPeople }: ReportOptions): Report {
  const total = createTally(isForPeople)
  const groups = new Map<string, Tally>()
  return {
    add(counts) {
      for (const count of counts.filter(isReported)) {
        // the feeds of one account may show the same event: only by feed each counts it
        if (count.kind !== 'new') total.add(count)
        const name = nameIn(by, count)
        if (name === undefined) continue
        const group = groups.get(name) ?? createTally(isForPeople)
        groups.set(name, group)
        group.add(count)
      }
    },
    total: () => total.sum(),
    rows() {
      const rows = [...groups].map(([id, group]) => {
        const name = by === 'day' ? formatDay(Number(id)) : id
        return { name, ...group.sum() }
      })
      return rows.toSorted(comparers[by] ?? byName)
    },
  }
}

function byName(one: ReportRow, other: ReportRow): number {
  return one.name < other.name ? -1 : 1
}

function notTold({ suppressed, diverted, dead }: ReportRow): number {
  return suppressed + diverted + dead
}

const comparers: Partial<Record<Grouping, (one: ReportRow, other: ReportRow) => number>> = {
  severity: (one, other) => severityRank(other.name) - severityRank(one.name) || byName(one, other),
  reason: (one, other) => notTold(other) - notTold(one) || byName(one, other),
}

/** `YYYY-MM-DD`. */
export function formatDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

const dayMs = 86_400_000

function nameIn(by: Grouping, count: ReportedCount): string | undefined {
  if (by === 'feed') return count.kind === 'new' ? count.feed : undefined
  if (count.kind === 'new') return undefined
  // rows() writes it: once, not for each count
  if (by === 'day') return String(count.atMs - (count.atMs % dayMs))
  if (by === 'account') return count.account
  if (by === 'severity') return 'severity' in count ? count.severity : undefined
  if (count.kind === 'event') return undefined
  if (by === 'destination') return count.destination
  if (by === 'sink') return sinkOfDestination(count.destination)
  return count.kind === 'ended' && count.outcome !== 'delivered' ? count.reason : undefined
}

interface Tally {
  add(count: ReportedCount): void
  sum(): ReportSum
}

function createTally(isForPeople: ReportOptions['isForPeople']): Tally {
  const sum = { seen: 0, told: 0, messages: 0, suppressed: 0, diverted: 0, dead: 0 }
  const delays = { people: new Map<number, number>(), machines: new Map<number, number>() }
  return {
    add(one) {
      const { kind, count } = one
      if (kind === 'new' || kind === 'event') sum.seen += count
      else if (kind === 'message') sum.messages += count
      else if (kind === 'ended') {
        sum[one.outcome === 'delivered' ? 'told' : one.outcome] += count
      } else {
        const isPeople = isForPeople(sinkOfDestination(one.destination))
        const buckets = delays[isPeople ? 'people' : 'machines']
        buckets.set(one.withinS, (buckets.get(one.withinS) ?? 0) + count)
      }
    },
    sum: () => ({
      ...sum,
      toPeople: readDelay(delays.people),
      toMachines: readDelay(delays.machines),
    }),
  }
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
