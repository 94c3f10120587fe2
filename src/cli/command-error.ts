import { TocsinError } from '../runtime/errors.ts'
import { suggestion } from '../runtime/nearest.ts'

/** `mistake`: the operator must ask differently; `refused`: the world said no. */
type CommandReason = 'mistake' | 'refused'

/** A command that cannot do what it was asked. */
export class CommandError extends TocsinError {
  override readonly name = 'CommandError'
  readonly code = 'TOCSIN_COMMAND'
  readonly reason: CommandReason

  constructor(reason: CommandReason, message: string, options: { cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.reason = reason
  }
}

/** The member called `name`; throws CommandError with the nearest name, or all there are. */
export function findNamed<Named extends { name: string }>(
  members: readonly Named[],
  name: string,
  thing: string,
): Named {
  const found = members.find((member) => member.name === name)
  if (found !== undefined) return found
  const names = members.map((member) => member.name)
  const remedy = names.length === 0 ? 'there is none' : suggestion(name, names, 'there are')
  throw new CommandError('mistake', `there is no ${thing} "${name}"; ${remedy}`)
}
