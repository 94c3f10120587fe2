/** The `users` commands: the hash of a password, for `http.users`. */
import { Argument, Command } from 'commander'
import { hashPassword, leastPasswordLength } from '../lib/password-hash.ts'
import { secretLimits } from '../lib/config/private-files.ts'
import { type Context, readText } from './context.ts'
import { CommandError } from './terminal.ts'

export function usersCommand(context: Context): Command {
  const input = new Argument('[input]', 'read the password from standard input, without asking')
  const hash = new Command('hash')
    .description('ask for a password twice and print its hash, for password_hash of http.users')
    .addArgument(input.choices(['-']))
    .action((given: '-' | undefined) => printHash(context, given))
  return new Command('users').addCommand(hash)
}

/** Throws CommandError. */
async function printHash(context: Context, input: '-' | undefined): Promise<void> {
  const typed = input === undefined ? await askTwice(context) : undefined
  const password = typed ?? (await readText(context, '-', secretLimits)).replace(/\r?\n$/, '')
  if (Array.from(password).length < leastPasswordLength) {
    throw new CommandError('mistake', `too short; take ${leastPasswordLength} characters or more`)
  }
  if (/\p{Cc}/u.test(password)) {
    throw new CommandError('mistake', 'more than one line; take a password that can be typed')
  }
  context.terminal.print(await hashPassword(password))
}

/** Returns undefined without a terminal. Throws CommandError. */
async function askTwice({ terminal }: Context): Promise<string | undefined> {
  const first = await terminal.askSecret('Password (not shown):')
  if (first === undefined) return undefined
  if ((await terminal.askSecret('The same again:')) === first) return first
  throw new CommandError('mistake', 'the two are not the same; try again')
}
