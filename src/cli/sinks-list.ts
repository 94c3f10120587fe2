import type { CircuitReading } from '../delivery/circuit.ts'
import { loadConfigFile } from './config-file.ts'
import { print, type CommonOptions, type Context } from './context.ts'
import { withLedger } from './open-ledger.ts'
import { reportSinks, type SinkReport } from './sink-report.ts'
import { counted, harmless, isoTime, timeInWords } from './words.ts'

export async function listSinks(context: Context, options: CommonOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const reports = await withLedger(config, (ledger) => reportSinks(ledger, config))
  print(context, options, {
    json: reports.map(sinkJson),
    lines: () => reports.flatMap((report) => sinkLines(context, report)),
  })
}

function sinkJson(report: SinkReport): Record<string, unknown> {
  const { name, type, circuit, pending, deadLetters, digest } = report
  const { paused, disabled } = circuit
  return {
    sink: name,
    type: type ?? null,
    is_configured: type !== undefined,
    circuit: circuit.state,
    circuit_open_until: isoTime(circuit.untilMs),
    paused: paused ? { reason: paused.reason, since: isoTime(paused.sinceMs) } : null,
    disabled: disabled ? { reason: disabled.reason, since: isoTime(disabled.sinceMs) } : null,
    pending,
    dead_letters: deadLetters,
    last_success: isoTime(circuit.lastSuccessMs),
    digest: digest
      ? {
          next_due: isoTime(digest.nextDueMs),
          items: digest.items,
          last_sent: isoTime(digest.lastSentMs),
        }
      : null,
  }
}

function sinkLines(context: Context, report: SinkReport): string[] {
  const { name, type, circuit, deadLetters, digest } = report
  const time = (ms: number | undefined): string => (ms === undefined ? 'never' : timeInWords(ms))
  const head = `${context.terminal.paint('bold', harmless(name))} (${type ?? 'no longer configured'})`
  const waiting = `  ${pendingInWords(report.pending)}; ${counted(deadLetters, 'dead letter')}`
  if (type === undefined) return [head, waiting, ...remedyLines(report)]
  return [
    `${head}: ${circuitInWords(context, circuit)}`,
    ...disabledLines(name, circuit),
    waiting,
    `  last success ${time(circuit.lastSuccessMs)}`,
    ...(digest
      ? [
          `  digest: next due ${timeInWords(digest.nextDueMs)}, ${counted(digest.items, 'item')} so far, last sent ${time(digest.lastSentMs)}`,
        ]
      : []),
  ]
}

function circuitInWords({ terminal }: Context, circuit: CircuitReading): string {
  const { state, untilMs, paused, disabled } = circuit
  if (paused) {
    const since = timeInWords(paused.sinceMs)
    return terminal.paint('yellow', `paused since ${since}: ${harmless(paused.reason)}`)
  }
  if (disabled) {
    const since = timeInWords(disabled.sinceMs)
    return terminal.paint('red', `disabled since ${since}: ${harmless(disabled.reason)}`)
  }
  if (state === 'closed') return terminal.paint('green', 'circuit closed')
  if (state === 'half_open') return terminal.paint('yellow', 'circuit half open, one message tries')
  return terminal.paint('red', `circuit open until ${timeInWords(untilMs ?? 0)}`)
}

function disabledLines(name: string, { disabled }: CircuitReading): string[] {
  if (!disabled) return []
  return [
    `  nothing is sent until its address is another one, or "tocsin sinks resume ${harmless(name)}" has it tried again`,
  ]
}

/** `12 pending: 10 queued, 2 held`. */
export function pendingInWords(pending: Readonly<Record<string, number>>): string {
  const states = Object.entries(pending)
  if (states.length === 0) return 'nothing pending'
  const sum = states.reduce((total, [, count]) => total + count, 0)
  return `${sum} pending: ${states.map(([state, count]) => `${count} ${stateWords[state] ?? state}`).join(', ')}`
}

const stateWords: Record<string, string> = {
  group: 'in groups',
  digest: 'for the next digest',
  batch: 'in sealed messages',
}

function remedyLines({ name, pending, deadLetters }: SinkReport): string[] {
  const isWaiting = Object.keys(pending).length > 0
  return [
    ...(isWaiting
      ? [
          `  settle them with "tocsin sinks move ${harmless(name)} --to <sink>" or "tocsin sinks discard ${harmless(name)}"`,
        ]
      : []),
    ...(deadLetters > 0
      ? [`  close its letters with "tocsin dead-letters discard --sink ${harmless(name)} --all"`]
      : []),
  ]
}
