/** What product and README name for later versions: refused by name, never taken and ignored. */
import { Command } from 'commander'
import { CommandError } from './command-error.ts'

export const laterCommands = ['plan', 'bench'] as const

export const laterRouteCommands = ['test'] as const

/** Hidden commands below `parent` that refuse whatever they are given. */
export function addLaterCommands(parent: Command, names: readonly string[], noun = ''): void {
  for (const name of names) {
    const command = new Command(name)
      .argument('[anything...]')
      .allowUnknownOption()
      .helpOption(false)
      .action(() => refuseLater(noun === '' ? name : `${noun} ${name}`))
    parent.addCommand(command, { hidden: true })
  }
}

export function refuseLater(what: string): never {
  throw new CommandError('mistake', `${what}: not in this version`)
}
