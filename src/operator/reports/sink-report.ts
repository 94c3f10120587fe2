/** The state of each sink, as lists show it. */
import type { Config } from '../../config/config.ts'
import type { CircuitReading } from '../../delivery/circuit.ts'
import { describeFallback } from '../../delivery/relief/fallback.ts'
import { outletsOf } from '../../delivery/outlets.ts'
import { openCircuit } from '../../delivery/sink-address.ts'
import { type DigestTimes, readDigestTimes } from '../../grouping/digest-times.ts'
import { formatUtcTime } from '../../lib/time-zone.ts'
import type { SinkConfig } from '../../sinks/sink-types.ts'
import { countByState } from '../../store/item-states.ts'
import type { FleetState, SinkState } from '../fleet-state.ts'
import type { OpenLedgers } from '../open-ledgers.ts'
import { destinationsBySink } from '../recipients.ts'
import { type Column, formatIsoTime, standstillJson, troubleJson } from './columns.ts'

export interface SinkReport extends Omit<SinkState, 'replayed' | 'unaccounted'> {
  name: string
  /** undefined: the sink left the configuration. */
  type: SinkConfig['type'] | undefined
  fallback: string | undefined
  /** Who gets what waits for it, in words; undefined: it takes messages. */
  relief: string | undefined
  circuit: CircuitReading
  /** Of several recipients those that take nothing. */
  recipients: { label: string; circuit: CircuitReading }[]
  digest: DigestTimes | undefined
}

/** What Redis holds of sinks beside the accounts' ledgers. */
export interface SinkReadings {
  circuits: ReadonlyMap<string, CircuitReading>
  /** Of each sink with several recipients those that take nothing. */
  recipients: ReadonlyMap<string, SinkReport['recipients']>
  /** By sink with a digest. */
  digests: ReadonlyMap<string, DigestTimes>
}

/** Sinks that left the configuration come last, and only while something is left for them. */
export function reportSinks(
  { sinks: configured }: Config,
  { sinks, atMs }: FleetState,
  { circuits, recipients, digests }: SinkReadings,
): SinkReport[] {
  const settings = new Map(configured.map((sink) => [sink.name, sink]))
  return [...sinks].flatMap(([name, state]) => {
    const circuit = circuits.get(name)
    if (circuit === undefined) return []
    const sink = settings.get(name)
    return {
      ...state,
      pending: addCounts({}, state.pending),
      name,
      type: sink?.type,
      fallback: sink?.fallback,
      relief: sink && describeFallback(sink, circuits, atMs),
      circuit,
      recipients: recipients.get(name) ?? [],
      digest: digests.get(name),
    }
  })
}

/** Those to which a message that is sent now would not arrive, as far as is known. */
export function deafSinks(sinks: readonly Pick<SinkReport, 'name' | 'circuit'>[]): string[] {
  return sinks.flatMap(({ name, circuit }) =>
    circuit.state === 'closed' && circuit.paused === undefined ? [] : [name],
  )
}

/** Of the configured sinks and those that the fleet has something for. */
export async function readSinks(
  store: OpenLedgers,
  config: Config,
  { sinks, atMs }: FleetState,
): Promise<SinkReadings> {
  const circuit = openCircuit(store, config)
  const destinationsOf = destinationsBySink(config)
  const grouping = outletsOf(config.sinks)
  const [lead] = store.ledgers
  const [circuits, recipients, digests] = [
    new Map<string, CircuitReading>(),
    new Map<string, SinkReport['recipients']>(),
    new Map<string, DigestTimes>(),
  ]
  const reads = [...sinks.keys()].map(async (name) => {
    const destinations = destinationsOf.get(name) ?? []
    circuits.set(name, await circuit.read(name, atMs, destinations))
    const several = destinations.length < 2 ? [] : destinations
    const read = several.map(async ({ id, label }) => {
      return { label, circuit: await circuit.read(id, atMs) }
    })
    const all = await Promise.all(read)
    recipients.set(
      name,
      all.filter(({ circuit: own }) => own.state !== 'closed'),
    )
    const sink = grouping.get(name)
    const times = sink && lead && (await readDigestTimes({ ...store, lead }, sink, atMs))
    if (times) digests.set(name, times)
  })
  await Promise.all(reads)
  return { circuits, recipients, digests }
}

export function addCounts(
  sum: Record<string, number>,
  more: Record<string, number>,
): Record<string, number> {
  const states = Object.entries(more).filter(([, count]) => count !== 0)
  return { ...sum, ...Object.fromEntries(states.map(([s, count]) => [s, (sum[s] ?? 0) + count])) }
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
    json: ({ digest, pending }) =>
      digest
        ? {
            next_due: formatIsoTime(digest.nextDueMs),
            items: pending['digest'] ?? 0,
            last_sent: formatIsoTime(digest.lastSentMs),
          }
        : null,
    text: ({ digest }) => (digest ? timeText(digest.nextDueMs) : '-'),
  },
]

function timeText(ms: number | undefined): string {
  return ms === undefined ? 'never' : formatUtcTime(ms)
}

/** `10 queued, 2 held`. */
export function formatPending(pending: Readonly<Record<string, number>>): string {
  const states = Object.entries(countByState(pending))
  return states.map(([state, count]) => `${count} ${state}`).join(', ') || 'none'
}
