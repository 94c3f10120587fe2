import { buildSink } from '../app/build-sinks.ts'
import type { Config } from '../config/config.ts'
import { systemClock } from '../runtime/clock.ts'
import { quiet } from './context.ts'

/** What an operator reads instead of a destination's id, e.g. the recipient's address. */
export type DestinationLabels = ReadonlyMap<string, string>

/** Of every destination that the configuration has. */
export async function destinationLabels({ sinks }: Config): Promise<DestinationLabels> {
  const built = sinks.map((sink) => buildSink(sink, { logger: quiet, clock: systemClock }))
  const labels = built.flatMap(({ destinations }) =>
    destinations.map(({ id, label }): [string, string] => [id, label]),
  )
  await Promise.all(built.map((sink) => sink.close()))
  return new Map(labels)
}
