import { CommandError } from '../command-error.ts'
import type { Context } from '../context.ts'

/**
 * A secret to search for: typed unseen, or all of standard input without its last line break. Never from
 * the command line, where every user of the machine could read it. Throws CommandError where there is none.
 */
export async function readSecret({ terminal }: Context, what: string): Promise<string> {
  const typed = await terminal.askSecret(`${what}:`)
  const secret = typed ?? (await terminal.readInput()).replace(/\r?\n$/, '')
  if (secret !== '') return secret
  throw new CommandError('mistake', `no ${what} was given; type it, or give it on standard input`)
}
