/** How listings choose what they show: by name and account, the worst first, or problems alone. */
import type { Command } from 'commander'
import type { CommonOptions } from './context.ts'
import { addWideOption, type WideOption } from './options.ts'
import { findNamed, pluralize } from './terminal.ts'

export interface NarrowingOptions extends WideOption {
  account?: string
  problems?: true
}

export function addNarrowingOptions(command: Command, thing: string): Command {
  return addWideOption(command)
    .argument(`[${thing}]`, `name of the ${thing}`)
    .option('--problems', `only each ${thing} that is not well`)
}

export function addAccountOption(command: Command): Command {
  return command.option('--account <name>', 'of this account')
}

/** So many are listed for people; of more, only those that are not well. */
const listedAtMost = 40

interface Choice<Thing> {
  /** Of each thing how bad it is: 0 well, the worst the highest. */
  badness: (thing: Thing) => number
  thing: string
  name: string | undefined
}

/**
 * The things to list, for people the worst first, and a line of what is left out. Throws CommandError for a
 * name that is not there.
 */
export function chooseListed<Thing extends { name: string }>(
  things: readonly Thing[],
  { problems, wide, output }: NarrowingOptions & CommonOptions,
  { badness, thing, name }: Choice<Thing>,
): { shown: Thing[]; left: string[] } {
  if (name !== undefined) {
    findNamed(things, name, thing)
    return { shown: things.filter((one) => one.name === name), left: [] }
  }
  const isForPeople = output === 'text'
  const sorted = isForPeople
    ? things.toSorted((one, other) => badness(other) - badness(one))
    : [...things]
  const bad = sorted.filter((one) => badness(one) > 0)
  if (problems) return { shown: bad, left: bad.length === 0 ? [`no ${thing} has a problem`] : [] }
  if (wide || !isForPeople || sorted.length <= listedAtMost) return { shown: sorted, left: [] }
  const well = pluralize(sorted.length - bad.length, thing)
  return { shown: bad, left: [`${well} without a problem: --wide lists them`] }
}
