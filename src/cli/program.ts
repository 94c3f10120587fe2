/** Runs one command and turns its end into an exit code. */
import { Command, CommanderError } from 'commander'
import { ConfigError, environment } from '../config/config.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { TocsinError } from '../lib/errors.ts'
import { StoreError } from '../redis/health.ts'
import { UpstreamError, type UpstreamReason } from '../upstream/error.ts'
import { addCommands } from './commands.ts'
import type { Context } from './context.ts'
import {
  CommandError,
  createTerminal,
  Interruption,
  type Streams,
  type Terminal,
} from './terminal.ts'
import { readVersion } from './version.ts'

/** Commands that stop by themselves when asked to; any other is abandoned. */
const longRunningCommands = new Set(['run', 'sandbox', 'demo'])

interface Surroundings extends Streams {
  stop: AbortSignal
  ending?: AbortSignal
  reloads?: EventTarget
  clock?: Clock
}

/** Runs one command to its end and returns the exit code. Never throws. */
export async function runProgram(
  args: readonly string[],
  { stop, ending, reloads = new EventTarget(), clock = systemClock, ...streams }: Surroundings,
): Promise<number> {
  const terminal = createTerminal(streams)
  const readerLeft = new AbortController()
  const context: Context = {
    env: environment(),
    terminal,
    stop: AbortSignal.any([stop, readerLeft.signal]),
    ending,
    reloads,
    clock,
    exitCode: 0,
  }
  const interrupted = new Promise<'interrupted'>((resolve) =>
    stop.addEventListener('abort', () => resolve('interrupted'), { once: true }),
  )
  let isLongRunning = false
  // Other commands end soon, and one that changes something should finish.
  terminal.outputClosed.addEventListener('abort', () => isLongRunning && readerLeft.abort())
  const ended = createProgram(args, context)
    .then((program) =>
      program
        .hook('preAction', (_program, command) => {
          isLongRunning = longRunningCommands.has(command.name())
        })
        .parseAsync(args, { from: 'user' }),
    )
    .then(() => context.exitCode)
    .catch((error: unknown) => reportError(error, terminal))
  const first = await Promise.race([ended, interrupted])
  return first === 'interrupted' && !isLongRunning ? interruptedCode : ended
}

async function createProgram(args: readonly string[], context: Context): Promise<Command> {
  const program = new Command('tocsin')
    .description('Polls a threat-intelligence API, accounts for every event, rings the right bell.')
    .version(readVersion())
  await addCommands(program, args, context)
  configureOutput(program, context.terminal)
  return program
}

/** Every command throws instead of ending the process, and writes through the terminal. */
function configureOutput(command: Command, terminal: Terminal, parents = ''): void {
  const name = `${parents}${command.name()}`
  command
    .exitOverride()
    .showHelpAfterError(`see: ${name} --help`)
    .configureOutput({
      writeOut: (text) => terminal.print(text.trimEnd()),
      writeErr: (text) => terminal.printError(text.trimEnd()),
    })
  for (const inner of command.commands) configureOutput(inner, terminal, `${name} `)
}

/** As in a shell: 128 plus the number of SIGINT. */
const interruptedCode = 130

/**
 * Prints an error and returns the exit code: 2 for the operator's mistake, otherwise 1. A bug also
 * prints its stack.
 */
export function reportError(error: unknown, terminal: Terminal): number {
  terminal.progress('')
  if (error instanceof CommanderError) return usageExitCode(error)
  if (error instanceof Interruption) return interruptedCode
  if (error instanceof TocsinError) {
    for (const line of errorLines(error)) terminal.printError(line)
    return isMistake(error) ? 2 : 1
  }
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
  terminal.printError(`this is a defect of Tocsin; please report it with these lines:\n${stack}`)
  return 1
}

/** Lists several wrong fields one below the other; a hint where to look comes last. */
function errorLines(error: TocsinError): string[] {
  if (!(error instanceof UpstreamError)) return [error.message]
  const { details, message, reason } = error
  const fields = details.map(({ loc, msg }) => (loc === '' ? msg : `${loc}: ${msg}`))
  const advice = reasonsForDoctor.has(reason) ? ['tocsin doctor says more'] : []
  if (fields.length < 2) return [message, ...advice]
  const head = message.replace(fields.join('; '), `${fields.length} fields are wrong`)
  return [head, ...fields.map((field) => `  ${field}`), ...advice]
}

const reasonsForDoctor: ReadonlySet<UpstreamReason> = new Set(['auth', 'unavailable', 'contract'])

function isMistake(error: TocsinError): boolean {
  if (error instanceof UpstreamError) return error.reason === 'invalid'
  if (error instanceof StoreError) return error.reason === 'unsafe'
  if (error instanceof CommandError) return error.reason === 'mistake'
  return error instanceof ConfigError
}

/**
 * commander has already printed the error; it ends bad arguments with 1, and requested help with 0.
 */
function usageExitCode({ code, exitCode }: CommanderError): number {
  return exitCode === 0 || code === 'commander.error' ? exitCode : 2
}

/** Watches how standard output ends: its reader may close it early, or its disk may be full. */

export interface StandardOutput {
  /** Resolves with the exit code once all output is written; never 0 when results were lost. */
  end(code: number): Promise<number>
}

export function watchStandardOutput({
  output,
  errors,
}: Pick<Streams, 'output' | 'errors'>): StandardOutput {
  let failure: string | undefined
  output.on('error', (error: NodeJS.ErrnoException) => (failure ??= error.code ?? error.message))
  return {
    async end(code) {
      await new Promise<void>((resolve) => void output.write('', () => resolve()))
      if (failure === undefined || failure === brokenPipeCode) return code
      errors.write(`standard output cannot be written (${failure}); what it has is not whole\n`)
      return code === 0 ? 1 : code
    },
  }
}

/** The reader, such as `head`, closed the pipe because it needs no more. */
const brokenPipeCode = 'EPIPE'
