import type { Config } from '../../config/config.ts'
import type { Circuit, CircuitReading } from '../../delivery/circuit.ts'
import { describeFallback } from '../../delivery/fallback.ts'
import { groupingSinks } from '../../delivery/grouping-sinks.ts'
import { openCircuit } from '../../delivery/sink-address.ts'
import { type DigestState, readDigestState } from '../../grouping/flusher.ts'
import { redisNow } from '../../redis/scripts.ts'
import { troubleTexts } from '../../self-alerts/troubles.ts'
import type { Destination } from '../../sinks/sink.ts'
import type { SinkConfig } from '../../sinks/sink-types.ts'
import { readAccounting } from '../../store/accounts.ts'
import { countByState } from '../../store/item-states.ts'
import { countDeadLetters, readSinkNames } from '../../store/pending-items.ts'
import { type CommonOptions, type Context, loadConfigFile, print } from '../context.ts'
import { destinationsBySink, type OpenStore, withStore } from '../open/open-store.ts'
import {
  pluralize,
  sanitize,
  formatIsoTime,
  formatUtcTime,
  troubleJson,
  troubleLines,
} from '../terminal.ts'

export async function listSinks(context: Context, options: CommonOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { reports, nowMs } = await withStore(config, async (store) => ({
    reports: await reportSinks(store, config),
    nowMs: await redisNow(store),
  }))
  print(context, options, {
    json: reports.map(sinkJson),
    lines: () => reports.flatMap((report) => sinkLines(context, report, nowMs)),
  })
}

function sinkJson(report: SinkReport): Record<string, unknown> {
  const { name, type, fallback, circuit, pending, diverted, deadLetters, digest } = report
  const { recipients } = report
  const { paused, disabled } = circuit
  return {
    sink: name,
    type: type ?? null,
    is_configured: type !== undefined,
    circuit: circuit.state,
    circuit_open_since: formatIsoTime(circuit.openedAtMs),
    circuit_open_until: formatIsoTime(circuit.untilMs),
    trouble: troubleJson(circuit.trouble),
    recipients: recipients.map(({ label, circuit: own }) => ({
      recipient: label,
      circuit: own.state,
      trouble: troubleJson(own.trouble),
    })),
    fallback: fallback ?? null,
    paused: paused ? { reason: paused.reason, since: formatIsoTime(paused.sinceMs) } : null,
    disabled: disabled ? { reason: disabled.reason, since: formatIsoTime(disabled.sinceMs) } : null,
    pending: countByState(pending),
    diverted,
    dead_letters: deadLetters,
    last_success: formatIsoTime(circuit.lastSuccessMs),
    digest: digest
      ? {
          next_due: formatIsoTime(digest.nextDueMs),
          items: digest.items,
          last_sent: formatIsoTime(digest.lastSentMs),
        }
      : null,
  }
}

function sinkLines(context: Context, report: SinkReport, nowMs: number): string[] {
  const { name, type, relief, circuit, deadLetters, digest } = report
  const time = (ms: number | undefined): string => (ms === undefined ? 'never' : formatUtcTime(ms))
  const head = `${context.terminal.paint('bold', sanitize(name))} (${type ?? 'no longer configured'})`
  const waiting = `  ${formatPending(report.pending)}; ${pluralize(deadLetters, 'dead letter')}`
  if (type === undefined) return [head, waiting, `  settle them: ${settleRemedy(sanitize(name))}`]
  return [
    `${head}: ${formatCircuit(context, circuit)}`,
    ...troubleLines(context.terminal, circuit.trouble, nowMs),
    ...report.recipients.flatMap(({ label, circuit: { trouble } }) =>
      troubleLines(context.terminal, trouble, nowMs, `${label} alone: `),
    ),
    ...circuitRemedy(name, circuit),
    waiting,
    ...(relief === undefined ? [] : [`  ${sanitize(relief)}`]),
    `  last success ${time(circuit.lastSuccessMs)}`,
    ...(digest
      ? [
          `  digest: next due ${formatUtcTime(digest.nextDueMs)}, ${pluralize(digest.items, 'item')} so far, last sent ${time(digest.lastSentMs)}`,
        ]
      : []),
  ]
}

function formatCircuit({ terminal }: Context, circuit: CircuitReading): string {
  const { state, untilMs, paused, disabled } = circuit
  if (paused) {
    const since = formatUtcTime(paused.sinceMs)
    return terminal.paint('yellow', `paused since ${since}: ${sanitize(paused.reason)}`)
  }
  if (disabled) {
    const since = formatUtcTime(disabled.sinceMs)
    return terminal.paint('red', `disabled since ${since}: ${sanitize(disabled.reason)}`)
  }
  if (state === 'closed') return terminal.paint('green', 'circuit closed')
  if (state === 'half_open') return terminal.paint('yellow', 'circuit half open, one message tries')
  return terminal.paint('red', `circuit open until ${formatUtcTime(untilMs ?? 0)}`)
}

/** Why nothing can be sent to the sink now; undefined when it can. */
export function describeBlock({
  state,
  paused,
}: Pick<CircuitReading, 'state' | 'paused'>): string | undefined {
  if (paused) return `is paused (${sanitize(paused.reason)})`
  if (state === 'disabled') return 'is disabled: its address is no more'
  return state === 'open' ? 'has its circuit open' : undefined
}

function circuitRemedy(name: string, { disabled, state }: CircuitReading): string[] {
  if (disabled) return [`  ${troubleTexts({ kind: 'sink-disabled', name }).toDo(sanitize(name))}`]
  const resume = `"tocsin sinks resume ${sanitize(name)}"`
  return state === 'open' ? [`  then one message tries; ${resume} has it tried at once`] : []
}

/** `12 pending: 10 queued, 2 held`. */
export function formatPending(pending: Readonly<Record<string, number>>): string {
  const states = Object.entries(countByState(pending))
  if (states.length === 0) return 'nothing pending'
  const sum = states.reduce((total, [, count]) => total + count, 0)
  return `${sum} pending: ${states.map(([state, count]) => `${count} ${state}`).join(', ')}`
}

/** What to do with the items of a sink that left the configuration. */
export function settleRemedy(name: string): string {
  return `tocsin items move --sink ${name} --to <sink>, or tocsin items discard --sink ${name}`
}

/** The state of a sink, read from Redis without changing it. */

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
export async function reportSinks(store: OpenStore, config: Config): Promise<SinkReport[]> {
  const nowMs = await redisNow(store)
  const counts = await sumBySink(store)
  const circuit = openCircuit(store, config)
  const destinationsOf = destinationsBySink(config)
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
async function listSinkNames({ ledgers }: OpenStore, { sinks }: Config): Promise<string[]> {
  const stored = await Promise.all(ledgers.map(readSinkNames))
  return [...new Set([...sinks.map(({ name }) => name), ...stored.flat().toSorted()])]
}

type Counts = Pick<SinkReport, 'pending' | 'diverted'>

async function sumBySink({ ledgers }: OpenStore): Promise<Map<string, Counts>> {
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

async function readFirstDueMs({ ledgers }: OpenStore, sink: string): Promise<number | undefined> {
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

async function countAllDeadLetters({ ledgers }: OpenStore, sink: string): Promise<number> {
  const counts = await Promise.all(ledgers.map((ledger) => countDeadLetters(ledger, sink)))
  return counts.reduce((sum, count) => sum + count, 0)
}
