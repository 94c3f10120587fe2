/** The commands, and how their ends become an exit code. */
import { Command } from 'commander'
import { environment } from '../config/environment.ts'
import { systemClock, type Clock } from '../runtime/clock.ts'
import { addCommands } from './commands.ts'
import type { Context } from './context.ts'
import { interruptedCode, reportError } from './report-error.ts'
import { createTerminal, type Streams, type Terminal } from './terminal.ts'
import { readVersion } from './version.ts'

/** These end by themselves when they are asked to stop; any other is left where it stands. */
const lasting = new Set(['run', 'sandbox', 'demo'])

interface Surroundings extends Streams {
  stop: AbortSignal
  reloads?: EventTarget
  clock?: Clock
}

/** Runs one command to its end; the exit code. Never throws. */
export async function runProgram(
  args: readonly string[],
  { stop, reloads = new EventTarget(), clock = systemClock, ...streams }: Surroundings,
): Promise<number> {
  const terminal = createTerminal(streams)
  const unheard = new AbortController()
  const context: Context = {
    env: environment(),
    terminal,
    stop: AbortSignal.any([stop, unheard.signal]),
    reloads,
    clock,
    exitCode: 0,
  }
  const interrupted = new Promise<'interrupted'>((resolve) =>
    stop.addEventListener('abort', () => resolve('interrupted'), { once: true }),
  )
  let lasts = false
  // any other ends soon, and one that changes something had better do all of it
  terminal.unheard.addEventListener('abort', () => lasts && unheard.abort())
  const ended = createProgram(args, context)
    .then((program) =>
      program
        .hook('preAction', (_program, command) => {
          lasts = lasting.has(command.name())
        })
        .parseAsync(args, { from: 'user' }),
    )
    .then(() => context.exitCode)
    .catch((error: unknown) => reportError(error, terminal))
  const first = await Promise.race([ended, interrupted])
  return first === 'interrupted' && !lasts ? interruptedCode : ended
}

async function createProgram(args: readonly string[], context: Context): Promise<Command> {
  const program = new Command('tocsin')
    .description('Polls a threat-intelligence API, accounts for every event, rings the right bell.')
    .version(readVersion())
  await addCommands(program, args, context)
  settle(program, context.terminal)
  return program
}

/** Every command throws instead of ending the process, and speaks through the terminal. */
function settle(command: Command, terminal: Terminal): void {
  command.exitOverride().configureOutput({
    writeOut: (text) => terminal.print(text.trimEnd()),
    writeErr: (text) => terminal.complain(text.trimEnd()),
  })
  for (const inner of command.commands) settle(inner, terminal)
}
