import { CommandError } from './command-error.ts'
import type { Context } from './context.ts'

/** Throws CommandError unless somebody says yes. */
export async function askFirst({ terminal }: Context, told: readonly string[]): Promise<void> {
  const isWanted = await terminal.confirm([...told, 'Go on?'].join('\n'))
  if (isWanted === undefined) {
    throw new CommandError('mistake', `${told.join(' ')} Nobody is there to ask; say --yes`)
  }
  if (!isWanted) throw new CommandError('refused', 'nothing was changed')
}
