import { createRelief, type Relief, type ReliefOptions } from '../delivery/relief/relief.ts'
import type { ReliefSink } from '../delivery/relief/relief-sink.ts'
import { fallbackPlace, keptPlace, type CollectingSink } from '../digest/placement.ts'
import type { Severity } from '../events/severity.ts'
import type { Gathering, SinkModes } from '../ledger/collecting.ts'
import type { MoveTarget } from '../ledger/redirect.ts'
import type { Timings } from '../runtime/timings.ts'
import type { Sink } from '../sinks/sink.ts'
import type { Shared } from './shared.ts'

interface ReliefParts {
  sinks: ReadonlyMap<string, Sink>
  collecting: ReadonlyMap<string, CollectingSink>
  modes: SinkModes
}

/** The sinks as they are relieved, and where the items of each go. */
export function reliefSinks(
  { config, timings }: Pick<Shared, 'config' | 'timings'>,
  { sinks, collecting, modes }: ReliefParts,
): Map<string, ReliefSink> {
  return new Map(
    config.sinks.map(({ name, fallback, fallbackAfterMs, pendingMax }) => {
      const other = fallback === undefined ? undefined : collecting.get(fallback)
      const sink: ReliefSink = {
        name,
        fallback,
        fallbackAfterMs,
        targets: (severity) =>
          other ? targetsIn({ sink: other, modes, timings }, name, severity) : [],
        pendingMax,
        sendTimeoutMs: sinks.get(name)?.sendTimeoutMs ?? 0,
        batchWaitMs: modes[name] || undefined,
        keptPlaces: keptPlaces(collecting.get(name)),
      }
      return [name, sink]
    }),
  )
}

function targetsIn(
  { sink, modes, timings }: { sink: CollectingSink; modes: SinkModes; timings: Timings },
  from: string,
  severity: Severity,
): MoveTarget[] {
  return sink.destinations.map(({ id: destination }) => ({
    sink: sink.name,
    destination,
    batchWaitMs: modes[sink.name] || undefined,
    place: fallbackPlace(sink, { from, severity, destination }, timings),
  }))
}

/** What cannot be sent to people comes as one message. */
function keptPlaces(sink: CollectingSink | undefined): Record<string, Gathering> {
  if (!sink?.isForPeople) return {}
  return Object.fromEntries(sink.destinations.map(({ id }) => [id, keptPlace(id)]))
}

export function buildRelief(
  { clock, logger, metrics }: Shared,
  parts: Pick<ReliefOptions, 'sinks' | 'circuit' | 'diverter' | 'wake' | 'drains'>,
): Relief {
  return createRelief({
    ...parts,
    clock,
    logger,
    onOverflow: (sink, items) => metrics.itemsSettledTotal.inc({ sink, outcome: 'dead' }, items),
  })
}
