/**
 * Counts by day (UTC) of an account: what came in, what ended and how, what was sent, and how long
 * events were visible before they were told. The scripts write them in the step that changes the
 * ledger, so they add up with its counters; they are kept as long as the history.
 */
import type { AccountLedger } from './account-ledger.ts'

const dayMs = 86_400_000

/** How an item ended. */
export type Outcome = 'delivered' | 'suppressed' | 'diverted' | 'dead'

/** One count of one day. `day`: days since 1970; severities the API's words, or `unknown`. */
export type DayCount = { account: string; day: number; count: number } & (
  | { kind: 'new'; feed: string; severity: string }
  | {
      kind: 'ended'
      destination: string
      severity: string
      outcome: Outcome
      /** Of a dead letter its last error, else the rule's kind; empty: delivered. */
      reason: string
    }
  /** Messages that a destination accepted; one may carry many events. */
  | { kind: 'message'; destination: string }
  /** Events that a destination got for the first time, at most `withinS` seconds after they were visible. */
  | { kind: 'told'; destination: string; severity: string; withinS: number }
)

export function dayOf(ms: number): number {
  return Math.floor(ms / dayMs)
}

/** `YYYY-MM-DD`. */
export function formatDay(day: number): string {
  return new Date(day * dayMs).toISOString().slice(0, 10)
}

/** Reads the counts of `fromDay` to `toDay`, both included; an account or day without any has none. */
export async function readDayCounts(
  ledger: AccountLedger,
  { fromDay, toDay }: { fromDay: number; toDay: number },
): Promise<DayCount[]> {
  const days = Array.from({ length: toDay - fromDay + 1 }, (_one, at) => fromDay + at)
  const pipeline = ledger.redis.pipeline()
  for (const day of days) pipeline.hgetall(ledger.key('day', String(day)))
  const answers = (await pipeline.exec()) ?? []
  return answers.flatMap(([error, fields], at) => {
    if (error) throw error
    return Object.entries(fields as Record<string, string>).map(([field, count]) => ({
      account: ledger.account,
      day: days[at] ?? 0,
      count: Number(count),
      ...parseField(field),
    }))
  })
}

type Field = DayCount extends infer One
  ? One extends unknown
    ? Omit<One, 'account' | 'day' | 'count'>
    : never
  : never

function parseField(field: string): Field {
  const [kind, name = '', severity = '', third = '', reason = ''] = field.split('|')
  if (kind === 'new') return { kind, feed: name, severity }
  if (kind === 'message') return { kind, destination: name }
  if (kind === 'told') {
    const withinS = third === 'more' ? Infinity : Number(third)
    return { kind, destination: name, severity, withinS }
  }
  return { kind: 'ended', destination: name, severity, outcome: third as Outcome, reason }
}

/** The sink of a destination's id. */
export function sinkOfDestination(destination: string): string {
  return destination.split(':')[0] ?? destination
}
