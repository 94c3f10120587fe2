/**
 * Counts by day and by hour (UTC) of an account: what came in and by which routes, what ended and
 * how, what was sent, and which rules suppressed what. Also how long events were visible before
 * they were told. The scripts write them in the step that changes the ledger, so they add up with
 * its counters. Days are kept as long as the history, hours for two days.
 */
import type { AccountLedger } from '../account-ledger.ts'

const spanMs = { day: 86_400_000, hour: 3_600_000 } as const

/** How an item ended. */
export type Outcome = 'delivered' | 'suppressed' | 'diverted' | 'dead'

/** What is counted. Severities are the API's words, or `unknown`. */
type Counted =
  /** Events that nothing had shown before, and those that a feed had not. */
  | { kind: 'event'; severity: string }
  | { kind: 'new'; feed: string; severity: string }
  | {
      kind: 'ended'
      destination: string
      severity: string
      outcome: Outcome
      /** Of a dead letter its last error, else the kind of the rule; empty: delivered. */
      reason: string
    }
  /** Messages that a destination accepted; one may carry many events. */
  | { kind: 'message'; destination: string }
  /** Events that a route, or one below it, took: each once, whatever feeds showed it and however often. */
  | { kind: 'route'; route: string; severity: string }
  /**
   * Items that a rule suppressed or held, at each time that it began to. `rule`: the id of a silence, the
   * name of an inhibition or time interval, the route that is in shadow mode.
   */
  | { kind: 'rule'; reason: string; rule: string; severity: string }
  /** Events that a destination got for the first time at most `withinS` after they were visible. */
  | { kind: 'told'; destination: string; severity: string; withinS: number }

/** One count of one day or hour; `atMs`: when that began. */
export type DatedCount = Counted & { account: string; atMs: number; count: number }

/** Inclusive: from the day or hour of `fromMs` to that of `toMs`. */
export interface CountSpan {
  by: keyof typeof spanMs
  fromMs: number
  toMs: number
}

/** Reads the counts of a span; a day or hour in which nothing happened has none. */
export async function readCounts(
  ledger: AccountLedger,
  { by, fromMs, toMs }: CountSpan,
): Promise<DatedCount[]> {
  const first = Math.floor(fromMs / spanMs[by])
  const length = Math.floor(toMs / spanMs[by]) - first + 1
  const places = Array.from({ length }, (_one, at) => first + at)
  const pipeline = ledger.redis.pipeline()
  for (const place of places) pipeline.hgetall(ledger.key(by, String(place)))
  const answers = (await pipeline.exec()) ?? []
  const parsed = new Map<string, Counted>()
  const counts: DatedCount[] = []
  for (const [at, [error, fields]] of answers.entries()) {
    if (error) throw error
    const atMs = (places[at] ?? 0) * spanMs[by]
    for (const [field, text] of Object.entries(fields as Record<string, string>)) {
      if (field.startsWith('own|')) continue // what Tocsin itself tells is counted apart
      // the same fields on every day: to parse each of them anew takes longer than to read them
      const counted = parsed.get(field) ?? parseField(field)
      parsed.set(field, counted)
      counts.push({ ...counted, account: ledger.account, atMs, count: Number(text) })
    }
  }
  return counts
}

function parseField(field: string): Counted {
  const [kind, name = '', severity = '', third = '', reason = ''] = field.split('|')
  if (kind === 'route' || kind === 'rule') return parseNamed(kind, field.split('|').slice(1))
  if (kind === 'event') return { kind, severity: name }
  if (kind === 'new') return { kind, feed: name, severity }
  if (kind === 'message') return { kind, destination: name }
  if (kind === 'told') {
    const withinS = third === 'more' ? Infinity : Number(third)
    return { kind, destination: name, severity, withinS }
  }
  return { kind: 'ended', destination: name, severity, outcome: third as Outcome, reason }
}

/** Names of routes and rules are the operator's, and may have a bar in them. */
function parseNamed(kind: 'route' | 'rule', parts: string[]): Counted {
  const severity = parts.at(-1) ?? ''
  if (kind === 'route') return { kind, route: parts.slice(0, -1).join('|'), severity }
  const [reason = ''] = parts
  return { kind, reason, rule: parts.slice(1, -1).join('|'), severity }
}

/** The sink of a destination's id. */
export function sinkOfDestination(destination: string): string {
  return destination.split(':')[0] ?? destination
}
