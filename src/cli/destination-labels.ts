import type { Config } from '../config/config.ts'
import { destinationsOf } from '../sinks/destinations.ts'
import type { Destination } from '../sinks/sink.ts'

/** What an operator reads instead of a destination's id, e.g. the recipient's address. */
export type DestinationLabels = ReadonlyMap<string, string>

/** Of every destination that the configuration has. */
export function destinationLabels(config: Config): DestinationLabels {
  const destinations = [...destinationsBySink(config).values()].flat()
  return new Map(destinations.map(({ id, label }) => [id, label]))
}

/** Every sink's destinations, by the sink's name. Loads no sink: most commands name them and send nothing. */
export function destinationsBySink({
  sinks,
}: Pick<Config, 'sinks'>): ReadonlyMap<string, readonly Destination[]> {
  return new Map(sinks.map((sink) => [sink.name, destinationsOf(sink)]))
}
