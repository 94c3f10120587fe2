import { duration, list, name } from '../runtime/config-fields.ts'
import { section } from '../runtime/config-section.ts'

export interface NoticesConfig {
  /** The operators' sink. */
  sink: string
  /** How long a condition lasts before it is said. */
  afterMs: number
}

export interface CanaryConfig {
  everyMs: number
  sinks: string[]
}

export const noticesConfig = section(
  {
    sink: name('The sink that is told when Tocsin itself is in trouble, and when that is over.'),
    after: duration('How long trouble lasts before it is told; a refused key at once.').prefault(
      '5m',
    ),
  },
  { describe: 'Tells operators of trouble: once when it begins, once when it is over.' },
).transform(({ sink, after }): NoticesConfig => ({ sink, afterMs: after }))

export const canaryConfig = section(
  {
    every: duration('Time between two test events.', '1m').prefault('1h'),
    sinks: list(name('A sink.'), 'Sinks that get the test event.', 'write names of sinks'),
  },
  { describe: 'A marked test event that goes the whole way, again and again.' },
).transform(({ every, sinks }): CanaryConfig => ({ everyMs: every, sinks }))
