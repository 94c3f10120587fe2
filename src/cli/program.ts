/** The commands, and how their ends become an exit code. */
import { Command } from 'commander'
import { environment } from '../config/environment.ts'
import { systemClock, type Clock } from '../runtime/clock.ts'
import { accountsCommand } from './accounts.ts'
import { auditCommand } from './audit.ts'
import { checkCommand } from './check.ts'
import type { Context } from './context.ts'
import { deadLettersCommand } from './dead-letters.ts'
import { deliveriesCommand } from './deliveries.ts'
import { demoCommand } from './demo/demo.ts'
import { digestsCommand } from './digests.ts'
import { explainCommand } from './explain.ts'
import { feedsCommand } from './feeds.ts'
import { addLaterCommands, laterCommands } from './later-commands.ts'
import { quarantineCommand } from './quarantine.ts'
import { credentialsCommand } from './query/credentials/credentials.ts'
import { eventsCommand } from './query/events/events.ts'
import { alertsCommand } from './query/assets/alerts.ts'
import { assetsCommand } from './query/assets/assets.ts'
import { policiesCommand } from './query/policies/policies.ts'
import { reportsCommand } from './query/reports/reports.ts'
import { tenantsCommand } from './query/tenants.ts'
import { interruptedCode, reportError } from './report-error.ts'
import { routesCommand } from './routes.ts'
import { runCommand } from './run.ts'
import { sandboxCommand } from './sandbox.ts'
import { schemaCommand } from './schema.ts'
import { silencesCommand } from './silences.ts'
import { sinksCommand } from './sinks.ts'
import { createTerminal, type Streams, type Terminal } from './terminal.ts'
import { tokenCommand } from './token.ts'
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
  const program = createProgram(context).hook('preAction', (_program, command) => {
    lasts = lasting.has(command.name())
  })
  // any other ends soon, and one that changes something had better do all of it
  terminal.unheard.addEventListener('abort', () => lasts && unheard.abort())
  const ended = program
    .parseAsync(args, { from: 'user' })
    .then(() => context.exitCode)
    .catch((error: unknown) => reportError(error, terminal))
  const first = await Promise.race([ended, interrupted])
  return first === 'interrupted' && !lasts ? interruptedCode : ended
}

function createProgram(context: Context): Command {
  const program = new Command('tocsin')
    .description('Polls a threat-intelligence API, accounts for every event, rings the right bell.')
    .version(readVersion())
    .addCommand(runCommand(context))
    .addCommand(checkCommand(context))
    .addCommand(schemaCommand(context))
    .addCommand(demoCommand(context))
    .addCommand(sandboxCommand(context))
    .addCommand(tokenCommand(context))
    .addCommand(accountsCommand(context))
    .addCommand(sinksCommand(context))
    .addCommand(routesCommand(context))
    .addCommand(explainCommand(context))
    .addCommand(auditCommand(context))
    .addCommand(feedsCommand(context))
    .addCommand(deadLettersCommand(context))
    .addCommand(quarantineCommand(context))
    .addCommand(deliveriesCommand(context))
    .addCommand(silencesCommand(context))
    .addCommand(digestsCommand(context))
    .addCommand(eventsCommand(context))
    .addCommand(credentialsCommand(context))
    .addCommand(assetsCommand(context))
    .addCommand(policiesCommand(context))
    .addCommand(alertsCommand(context))
    .addCommand(reportsCommand(context))
    .addCommand(tenantsCommand(context))
  addLaterCommands(program, laterCommands)
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
