/** The sinks of a configuration, as grouping and delivery know them. */
import type { Outlet } from '../grouping/placement.ts'
import { createSchedule } from '../lib/cron-schedule.ts'
import { listDestinations } from '../sinks/destinations.ts'
import type { Sink } from '../sinks/sink.ts'
import { type SinkConfig, sinkTypeOf } from '../sinks/sink-types.ts'
import type { SinkBatchWaits } from '../store/pending-items.ts'

/** By name. */
export function outletsOf(
  configs: readonly SinkConfig[],
  sinks?: ReadonlyMap<string, Pick<Sink, 'sendTimeoutMs'>>,
): Map<string, Outlet> {
  return new Map(
    configs.map((config) => {
      const { name, digest, fallback, fallbackAfterMs } = config
      const outlet: Outlet = {
        name,
        isForPeople: sinkTypeOf(config).audience === 'people',
        destinations: listDestinations(config),
        digest: digest && {
          schedule: createSchedule(digest),
          timeZone: readersZone(config) ?? digest.timeZone,
          immediate: digest.immediate,
          sendsEmpty: digest.sendsEmpty,
          maxItems: digest.maxItems,
        },
        batchWaitMs: config.batch?.waitMs,
        fallback,
        fallbackAfterMs,
        sendTimeoutMs: sinks?.get(name)?.sendTimeoutMs ?? 0,
      }
      return [name, outlet]
    }),
  )
}

/** The zone of the times that its readers see; undefined: it has none of its own. */
function readersZone(sink: SinkConfig): string | undefined {
  return 'timeZone' in sink ? sink.timeZone : undefined
}

/** As the scripts take it. */
export function batchWaitsOf(outlets: ReadonlyMap<string, Outlet>): SinkBatchWaits {
  return Object.fromEntries(
    [...outlets.values()].map(({ name, batchWaitMs }) => [name, batchWaitMs ?? false]),
  )
}
