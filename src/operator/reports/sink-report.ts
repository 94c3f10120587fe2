/** The state of each sink, read from Redis without changing it. */
import type { Config } from '../../config/config.ts'
import type { Circuit, CircuitReading } from '../../delivery/circuit.ts'
import { describeFallback } from '../../delivery/relief/fallback.ts'
import { groupingSinks } from '../../delivery/relief/grouping-sinks.ts'
import { openCircuit } from '../../delivery/sink-address.ts'
import { type DigestState, readDigestState } from '../../grouping/flusher.ts'
import { formatUtcTime } from '../../lib/time-zone.ts'
import { redisNow } from '../../redis/scripts.ts'
import { listDestinations } from '../../sinks/destinations.ts'
import type { Destination } from '../../sinks/sink.ts'
import type { SinkConfig } from '../../sinks/sink-types.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { readAccounting } from '../../store/accounts.ts'
import { countByState } from '../../store/item-states.ts'
import { countDeadLetters, readSinkNames } from '../../store/pending-items.ts'
import { type Column, formatIsoTime, standstillJson, troubleJson } from './columns.ts'
import type { OpenLedgers } from '../open-ledgers.ts'

export interface SinkReport {
  name: string
  /** undefined: the sink left the configuration. */
  type: SinkConfig['type'] | undefined
  fallback: string | undefined
  /** Who gets what waits for it, in words; undefined: it takes messages. */
  relief: string | undefined
  circuit: CircuitReading
  /** Of several recipients those that take nothing. */
  recipients: { label: string; circuit: CircuitReading }[]
  /** Items by state over all accounts; only states that occur. */
  pending: Record<string, number>
  /** Items that ever went to a fallback, over all accounts. */
  diverted: number
  deadLetters: number
  /** When the work that has waited longest became or becomes due; undefined: none waits. */
  firstDueMs: number | undefined
  digest: DigestState | undefined
}

/**
 * Sinks that left the configuration come last, and only while they still have items; `counted`: what
 * these ledgers have, and of some of all only sinks that ever had an item of them.
 */
export async function reportSinks(
  store: OpenLedgers,
  config: Config,
  counted: readonly AccountLedger[] = store.ledgers,
): Promise<SinkReport[]> {
  const nowMs = await redisNow(store)
  const counts = await sumBySink(counted)
  const circuit = openCircuit(store, config)
  const destinationsOf = new Map(config.sinks.map((sink) => [sink.name, listDestinations(sink)]))
  const grouping = groupingSinks(config.sinks)
  const configured = new Map(config.sinks.map((sink) => [sink.name, sink]))
  const { names, ledgersOf } = await findSinks(counted, config)
  const readings = names.map(async (name): Promise<[string, CircuitReading]> => {
    return [name, await circuit.read(name, nowMs, destinationsOf.get(name))]
  })
  const circuits = new Map(await Promise.all(readings))
  const reports = [...circuits].map(async ([name, reading]): Promise<SinkReport> => {
    const sink = grouping.get(name)
    const settings = configured.get(name)
    const own = ledgersOf(name)
    return {
      name,
      type: settings?.type,
      fallback: settings?.fallback,
      relief: settings && describeFallback(settings, circuits, nowMs),
      circuit: reading,
      recipients: await readRecipients(circuit, destinationsOf.get(name) ?? [], nowMs),
      ...(counts.get(name) ?? { pending: {}, diverted: 0 }),
      deadLetters: await countAllDeadLetters(own, name),
      firstDueMs: await readFirstDueMs(own, name),
      digest: sink && (await readDigestState(store, sink, { nowMs, counted: own })),
    }
  })
  const isAll = counted.length === store.ledgers.length
  return (await Promise.all(reports)).filter(({ name, type, ...report }) =>
    type === undefined ? hasSomethingLeft(report) : isAll || ledgersOf(name).length > 0,
  )
}

interface FoundSinks {
  /** Configured sinks in their order, then those that only the ledger knows. */
  names: string[]
  /** The ledgers that ever had an item for the sink. */
  ledgersOf: (sink: string) => AccountLedger[]
}

async function findSinks(
  ledgers: readonly AccountLedger[],
  { sinks }: Config,
): Promise<FoundSinks> {
  const stored = await Promise.all(ledgers.map(readSinkNames))
  const bySink = Map.groupBy(
    stored.flatMap((names, at) => names.map((name) => ({ name, at }))),
    ({ name }) => name,
  )
  const names = [...new Set([...sinks.map(({ name }) => name), ...[...bySink.keys()].toSorted()])]
  const ledgersOf = (sink: string): AccountLedger[] => {
    const places = new Set(bySink.get(sink)?.map(({ at }) => at))
    return ledgers.filter((_ledger, at) => places.has(at))
  }
  return { names, ledgersOf }
}

/** Of a sink with several destinations those that take nothing. */
async function readRecipients(
  circuit: Circuit,
  destinations: readonly Destination[],
  nowMs: number,
): Promise<SinkReport['recipients']> {
  if (destinations.length < 2) return []
  const all = await Promise.all(
    destinations.map(async ({ id, label }) => ({ label, circuit: await circuit.read(id, nowMs) })),
  )
  return all.filter(({ circuit: own }) => own.state !== 'closed')
}

function hasSomethingLeft({
  pending,
  deadLetters,
}: Pick<SinkReport, 'pending' | 'deadLetters'>): boolean {
  return deadLetters > 0 || Object.keys(pending).length > 0
}

type Counts = Pick<SinkReport, 'pending' | 'diverted'>

async function sumBySink(ledgers: readonly AccountLedger[]): Promise<Map<string, Counts>> {
  const counts = new Map<string, Counts>()
  for (const ledger of ledgers) {
    const { sinks } = await readAccounting(ledger)
    for (const [name, account] of Object.entries(sinks)) {
      const { pending, diverted } = counts.get(name) ?? { pending: {}, diverted: 0 }
      const sum = { diverted: diverted + account.diverted }
      counts.set(name, { ...sum, pending: addCounts(pending, account.pending) })
    }
  }
  return counts
}

async function readFirstDueMs(
  ledgers: readonly AccountLedger[],
  sink: string,
): Promise<number | undefined> {
  const first = await Promise.all(
    ledgers.map((one) => one.redis.zrange(one.key('due', sink), '0', '0', 'WITHSCORES')),
  )
  const due = first.flatMap(([, dueMs]) => (dueMs === undefined ? [] : [Number(dueMs)]))
  return due.length === 0 ? undefined : Math.min(...due)
}

function addCounts(
  sum: Record<string, number>,
  more: Record<string, number>,
): Record<string, number> {
  const states = Object.entries(more).filter(([, count]) => count !== 0)
  return { ...sum, ...Object.fromEntries(states.map(([s, count]) => [s, (sum[s] ?? 0) + count])) }
}

async function countAllDeadLetters(
  ledgers: readonly AccountLedger[],
  sink: string,
): Promise<number> {
  const counts = await Promise.all(ledgers.map((ledger) => countDeadLetters(ledger, sink)))
  return counts.reduce((sum, count) => sum + count, 0)
}

export const sinkColumns: readonly Column<SinkReport>[] = [
  { key: 'sink', title: 'SINK', json: ({ name }) => name },
  {
    key: 'type',
    title: 'TYPE',
    json: ({ type }) => type ?? null,
    text: ({ type = 'not configured' }) => type,
  },
  {
    key: 'circuit',
    title: 'CIRCUIT',
    json: ({ circuit }) => circuit.state,
    text: ({ circuit: { paused, state } }) => (paused ? 'paused' : state),
  },
  { key: 'circuit_open_since', json: ({ circuit }) => formatIsoTime(circuit.openedAtMs) },
  { key: 'circuit_open_until', json: ({ circuit }) => formatIsoTime(circuit.untilMs) },
  { key: 'trouble', json: ({ circuit }) => troubleJson(circuit.trouble) },
  {
    key: 'recipients',
    json: ({ recipients }) =>
      recipients.map(({ label, circuit: { state, trouble } }) => ({
        recipient: label,
        circuit: state,
        trouble: troubleJson(trouble),
      })),
  },
  { key: 'fallback', json: ({ fallback }) => fallback ?? null },
  { key: 'relief', json: ({ relief }) => relief ?? null },
  { key: 'paused', json: ({ circuit }) => standstillJson(circuit.paused) },
  { key: 'disabled', json: ({ circuit }) => standstillJson(circuit.disabled) },
  {
    key: 'pending',
    title: 'PENDING',
    json: ({ pending }) => countByState(pending),
    text: ({ pending }) => formatPending(pending),
  },
  { key: 'diverted', json: ({ diverted }) => diverted },
  { key: 'dead_letters', title: 'DEAD', json: ({ deadLetters }) => deadLetters },
  {
    key: 'last_success',
    title: 'LAST SUCCESS',
    json: ({ circuit }) => formatIsoTime(circuit.lastSuccessMs),
    text: ({ circuit: { lastSuccessMs } }) => timeText(lastSuccessMs),
  },
  {
    key: 'digest',
    title: 'NEXT DIGEST',
    json: ({ digest }) =>
      digest
        ? {
            next_due: formatIsoTime(digest.nextDueMs),
            items: digest.items,
            last_sent: formatIsoTime(digest.lastSentMs),
          }
        : null,
    text: ({ digest }) => (digest ? timeText(digest.nextDueMs) : '-'),
  },
]

const ownKeys = new Set(['sink', 'type', 'pending', 'dead_letters'])

/** For whoever may see some accounts alone: what of theirs a sink has; the rest is of all. */
export const ownSinkColumns = sinkColumns.filter(({ key }) => ownKeys.has(key))

function timeText(ms: number | undefined): string {
  return ms === undefined ? 'never' : formatUtcTime(ms)
}

/** `10 queued, 2 held`. */
export function formatPending(pending: Readonly<Record<string, number>>): string {
  const states = Object.entries(countByState(pending))
  return states.map(([state, count]) => `${count} ${state}`).join(', ') || 'none'
}
