import type { Config } from '../config/config.ts'
import { hasDigest, type DigestSink } from '../digest/digest-turn.ts'
import { CommandError, findNamed } from './command-error.ts'
import type { CommandTurns } from './command-turns.ts'

/** The sink with its digest. Throws CommandError. */
export function digestSinkOf({ turns }: CommandTurns, { sinks }: Config, name: string): DigestSink {
  findNamed(sinks, name, 'sink')
  const sink = turns.sinks.get(name)
  if (sink && hasDigest(sink)) return sink
  const others = [...turns.sinks.values()].filter(hasDigest).map((other) => other.name)
  const remedy =
    others.length === 0
      ? 'no sink has one; give it a digest in the configuration'
      : `those that have one: ${others.join(', ')}`
  throw new CommandError('mistake', `the sink "${name}" has no digest; ${remedy}`)
}
