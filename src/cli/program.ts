/** The commands, and how their ends become an exit code. */
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

/** These end by themselves when they are asked to stop; any other is left where it stands. */
const longRunningCommands = new Set(['run', 'sandbox', 'demo'])

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
  const readerLeft = new AbortController()
  const context: Context = {
    env: environment(),
    terminal,
    stop: AbortSignal.any([stop, readerLeft.signal]),
    reloads,
    clock,
    exitCode: 0,
  }
  const interrupted = new Promise<'interrupted'>((resolve) =>
    stop.addEventListener('abort', () => resolve('interrupted'), { once: true }),
  )
  let isLongRunning = false
  // any other ends soon, and one that changes something had better do all of it
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

/** Every command throws instead of ending the process, and speaks through the terminal. */
function configureOutput(command: Command, terminal: Terminal): void {
  command.exitOverride().configureOutput({
    writeOut: (text) => terminal.print(text.trimEnd()),
    writeErr: (text) => terminal.printError(text.trimEnd()),
  })
  for (const inner of command.commands) configureOutput(inner, terminal)
}

/** How an error ends a command: what is said about it, and the exit code. */

/** As a shell has it: 128 and the number of SIGINT. */
const interruptedCode = 130

/** 1 the world refused, 2 the operator's mistake. A bug of ours shows its stack and counts as 1. */
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

/** Several fields that are wrong stand below each other; last, where to look next. */
function errorLines(error: TocsinError): string[] {
  if (!(error instanceof UpstreamError)) return [error.message]
  const { details, message, reason } = error
  const fields = details.map(({ loc, msg }) => (loc === '' ? msg : `${loc}: ${msg}`))
  const advice = reasonsForTokenTest.has(reason) ? ['tocsin token test says more'] : []
  if (fields.length < 2) return [message, ...advice]
  const head = message.replace(fields.join('; '), `${fields.length} fields are wrong`)
  return [head, ...fields.map((field) => `  ${field}`), ...advice]
}

const reasonsForTokenTest: ReadonlySet<UpstreamReason> = new Set([
  'auth',
  'unavailable',
  'contract',
])

function isMistake(error: TocsinError): boolean {
  if (error instanceof UpstreamError) return error.reason === 'invalid'
  if (error instanceof StoreError) return error.reason === 'unsafe'
  if (error instanceof CommandError) return error.reason === 'mistake'
  return error instanceof ConfigError
}

/** commander has said it already; it ends bad arguments with 1, and help that was asked for with 0. */
function usageExitCode({ code, exitCode }: CommanderError): number {
  return exitCode === 0 || code === 'commander.error' ? exitCode : 2
}

/** What becomes of standard output in the end: a reader may have seen enough, a disk may be full. */

export interface StandardOutput {
  /** The exit code, once all that was written is out; of a command whose results are lost never 0. */
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

/** Such as `head`, which closes what it needs no longer. */
const brokenPipeCode = 'EPIPE'
