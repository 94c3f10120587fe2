/** The state of each sink, read from Redis without changing it. */
import type { Config } from '../../config/config.ts'
import type { Circuit, CircuitReading } from '../../delivery/circuit.ts'
import { describeFallback } from '../../delivery/fallback.ts'
import { groupingSinks } from '../../delivery/grouping-sinks.ts'
import { openCircuit } from '../../delivery/sink-address.ts'
import { type DigestState, readDigestState } from '../../grouping/flusher.ts'
import { redisNow } from '../../redis/scripts.ts'
import { listDestinations } from '../../sinks/destinations.ts'
import type { Destination } from '../../sinks/sink.ts'
import type { SinkConfig } from '../../sinks/sink-types.ts'
import { readAccounting } from '../../store/accounts.ts'
import { countDeadLetters, readSinkNames } from '../../store/pending-items.ts'
import type { OpenLedgers } from './feed-report.ts'

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

/** Sinks that left the configuration come last, and only while they still have items. */
export async function reportSinks(store: OpenLedgers, config: Config): Promise<SinkReport[]> {
  const nowMs = await redisNow(store)
  const counts = await sumBySink(store)
  const circuit = openCircuit(store, config)
  const destinationsOf = new Map(config.sinks.map((sink) => [sink.name, listDestinations(sink)]))
  const grouping = groupingSinks(config.sinks)
  const configured = new Map(config.sinks.map((sink) => [sink.name, sink]))
  const circuits = new Map<string, CircuitReading>()
  for (const name of await listSinkNames(store, config))
    circuits.set(name, await circuit.read(name, nowMs, destinationsOf.get(name)))
  const reports: SinkReport[] = []
  for (const [name, reading] of circuits) {
    const sink = grouping.get(name)
    const own = destinationsOf.get(name) ?? []
    const settings = configured.get(name)
    reports.push({
      name,
      type: settings?.type,
      fallback: settings?.fallback,
      relief: settings && describeFallback(settings, circuits, nowMs),
      circuit: reading,
      recipients: await readRecipients(circuit, own, nowMs),
      ...(counts.get(name) ?? { pending: {}, diverted: 0 }),
      deadLetters: await countAllDeadLetters(store, name),
      firstDueMs: await readFirstDueMs(store, name),
      digest: sink && (await readDigestState(store, sink, nowMs)),
    })
  }
  return reports.filter(({ type, ...report }) => type !== undefined || hasSomethingLeft(report))
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

/** Configured sinks in their order, then those that only the ledger knows. */
async function listSinkNames({ ledgers }: OpenLedgers, { sinks }: Config): Promise<string[]> {
  const stored = await Promise.all(ledgers.map(readSinkNames))
  return [...new Set([...sinks.map(({ name }) => name), ...stored.flat().toSorted()])]
}

type Counts = Pick<SinkReport, 'pending' | 'diverted'>

async function sumBySink({ ledgers }: OpenLedgers): Promise<Map<string, Counts>> {
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

async function readFirstDueMs({ ledgers }: OpenLedgers, sink: string): Promise<number | undefined> {
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

async function countAllDeadLetters({ ledgers }: OpenLedgers, sink: string): Promise<number> {
  const counts = await Promise.all(ledgers.map((ledger) => countDeadLetters(ledger, sink)))
  return counts.reduce((sum, count) => sum + count, 0)
}
