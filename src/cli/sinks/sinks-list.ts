/** `sinks list`: whether each sink takes messages, what waits for it, and what is wrong with it. */
import type { SinkReport } from '../../daemon/for-commands/sink-report.ts'
import { countByState } from '../../store/item-states.ts'
import type { Column } from '../columns.ts'
import type { Context } from '../context.ts'
import { type ListOptions, printList, readListed } from '../list.ts'
import { formatIsoTime, formatUtcTime, standstillJson, troubleJson } from '../terminal.ts'

export async function listSinks(
  context: Context,
  name: string | undefined,
  options: ListOptions,
): Promise<void> {
  const { sinks, problems } = await readListed(context, options)
  printList(context, options, name, {
    thing: 'sink',
    rows: sinks,
    nameOf: (sink) => sink.name,
    columns,
    problems,
  })
}

const columns: readonly Column<SinkReport>[] = [
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

function timeText(ms: number | undefined): string {
  return ms === undefined ? 'never' : formatUtcTime(ms)
}

/** `10 queued, 2 held`. */
export function formatPending(pending: Readonly<Record<string, number>>): string {
  const states = Object.entries(countByState(pending))
  return states.map(([state, count]) => `${count} ${state}`).join(', ') || 'none'
}
