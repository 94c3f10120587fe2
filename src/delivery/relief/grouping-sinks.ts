/** The sinks of a configuration, as grouping knows them. */
import type { GroupingSink } from '../../grouping/placement.ts'
import { createSchedule } from '../../lib/cron-schedule.ts'
import { listDestinations } from '../../sinks/destinations.ts'
import type { Destination } from '../../sinks/sink.ts'
import { type SinkConfig, sinkTypeOf } from '../../sinks/sink-types.ts'

/** By name. */
export function groupingSinks(
  configs: readonly SinkConfig[],
  destinationsOf: (name: string) => readonly Destination[] = destinationsIn(configs),
): Map<string, GroupingSink> {
  return new Map(
    configs.map((sink) => {
      const { digest } = sink
      const groupingSink: GroupingSink = {
        name: sink.name,
        isForPeople: sinkTypeOf(sink).audience === 'people',
        destinations: destinationsOf(sink.name),
        digest: digest && {
          schedule: createSchedule(digest),
          timeZone: readersZone(sink) ?? digest.timeZone,
          immediate: digest.immediate,
          sendsEmpty: digest.sendsEmpty,
          maxItems: digest.maxItems,
        },
      }
      return [sink.name, groupingSink]
    }),
  )
}

function destinationsIn(configs: readonly SinkConfig[]): (name: string) => readonly Destination[] {
  const known = new Map(configs.map((sink) => [sink.name, listDestinations(sink)]))
  return (name) => known.get(name) ?? []
}

/** The zone of the times that its readers see; undefined: it has none of its own. */
function readersZone(sink: SinkConfig): string | undefined {
  return 'timeZone' in sink ? sink.timeZone : undefined
}
