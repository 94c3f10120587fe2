import type { Config } from '../config/config.ts'
import { listDestinations } from '../sinks/destinations.ts'
import type { Destination } from '../sinks/sink.ts'

/** What operators read instead of a destination's id, e.g. the recipient's address. */
export type DestinationLabels = ReadonlyMap<string, string>

export function destinationLabels(config: Config): DestinationLabels {
  const destinations = [...destinationsBySink(config).values()].flat()
  return new Map(destinations.map(({ id, label }) => [id, label]))
}

/**
 * The destinations of every sink, by its name. Loads no sink: most commands name them and send
 * nothing.
 */
export function destinationsBySink({
  sinks,
}: Pick<Config, 'sinks'>): ReadonlyMap<string, readonly Destination[]> {
  return new Map(sinks.map((sink) => [sink.name, listDestinations(sink)]))
}
