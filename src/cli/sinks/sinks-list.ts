import { reportSinks, type SinkReport } from '../../daemon/for-commands/sink-report.ts'
import type { CircuitReading } from '../../delivery/circuit.ts'
import { redisNow } from '../../redis/scripts.ts'
import { findRemedy } from '../../self-alerts/troubles.ts'
import { countByState } from '../../store/item-states.ts'
import { type CommonOptions, type Context, loadConfigFile, print } from '../context.ts'
import { chooseListed, type NarrowingOptions } from '../narrowing.ts'
import { ledgersFor, withStore } from '../open/open-store.ts'
import {
  pluralize,
  sanitize,
  formatIsoTime,
  formatUtcTime,
  troubleJson,
  troubleLines,
} from '../terminal.ts'

export type ListOptions = CommonOptions & NarrowingOptions

export async function listSinks(
  context: Context,
  name: string | undefined,
  options: ListOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { reports, nowMs } = await withStore(config, async (store) => ({
    reports: await reportSinks(store, config, ledgersFor(store, options)),
    nowMs: await redisNow(store),
  }))
  const { shown, left } = chooseListed(reports, options, {
    badness: (report) => badness(report, nowMs),
    thing: 'sink',
    name,
  })
  print(context, options, {
    json: shown.map(sinkJson),
    lines: () => [...shown.flatMap((report) => sinkLines(context, report, nowMs)), ...left],
  })
}

/** Work may be overdue for so long before the alert rings. */
const patienceMs = 15 * 60_000

/** 3: it takes nothing; 2: something failed, is overdue or waits for somebody; 1: its next message is a test. */
function badness(report: SinkReport, nowMs: number): number {
  const { type, circuit, recipients, deadLetters, firstDueMs = nowMs } = report
  const { state, disabled, paused, trouble } = circuit
  if (disabled ?? state === 'open') return 3
  const isOverdue = nowMs - firstDueMs > patienceMs
  if (paused ?? trouble ?? (type === undefined || isOverdue)) return 2
  if (recipients.length + deadLetters > 0) return 2
  return state === 'closed' ? 0 : 1
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

function circuitRemedy(name: string, { disabled, state }: CircuitReading): string[] {
  if (disabled) return [`  ${findRemedy('sink-disabled', sanitize(name))}`]
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
