import { buildSinks } from '../app/build-sinks.ts'
import type { Config } from '../config/config.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Destination } from '../sinks/sink.ts'
import { quiet } from './context.ts'

/** What an operator reads instead of a destination's id, e.g. the recipient's address. */
export type DestinationLabels = ReadonlyMap<string, string>

/** Of every destination that the configuration has. */
export async function destinationLabels(config: Config): Promise<DestinationLabels> {
  const destinations = [...(await destinationsBySink(config)).values()].flat()
  return new Map(destinations.map(({ id, label }) => [id, label]))
}

/** Every sink's destinations, by the sink's name. */
export async function destinationsBySink({
  sinks,
}: Config): Promise<ReadonlyMap<string, readonly Destination[]>> {
  const made = await buildSinks(sinks, { logger: quiet, clock: systemClock })
  const built = [...made.values()]
  await Promise.all(built.map((sink) => sink.close()))
  return new Map(built.map(({ name, destinations }) => [name, destinations]))
}
