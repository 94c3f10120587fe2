/**
 * The table of commands: what help says of each, and the module that implements it. A process loads
 * only the module of the command that it runs: most commands need neither Redis, the API nor the
 * daemon.
 */
import { Command, Help } from 'commander'
import type { Context } from './context.ts'
import { refuseEmpty } from './terminal.ts'

interface CommandEntry {
  /** The command and its arguments as help shows them. */
  term: string
  description: string
  load: () => Promise<(context: Context) => Command>
}

const commandEntries: readonly CommandEntry[] = [
  {
    term: 'run [options]',
    description:
      'poll feeds, route events and deliver messages until stopped; SIGHUP reloads the configuration',
    load: async () => (await import('./run.ts')).runCommand,
  },
  {
    term: 'init [options] [file]',
    description: 'write a commented configuration to fill in',
    load: async () => (await import('./set-up/init.ts')).initCommand,
  },
  {
    term: 'check [options] [file]',
    description: 'validate the configuration; print every mistake or a summary',
    load: async () => (await import('./config/check.ts')).checkCommand,
  },
  {
    term: 'doctor [options]',
    description: 'check Redis, the ledger, the API and all sinks; print fixes',
    load: async () => (await import('./set-up/doctor.ts')).doctorCommand,
  },
  {
    term: 'schema [options]',
    description: 'print the JSON Schema of the configuration, for editors',
    load: async () => (await import('./config/schema.ts')).schemaCommand,
  },
  {
    term: 'demo [options]',
    description:
      'see it work: a pretend service, pretend sinks, a Redis of its own and the daemon itself',
    load: async () => (await import('./demo/demo.ts')).demoCommand,
  },
  {
    term: 'sandbox [options]',
    description: 'a pretend service with pretend sinks, and a configuration that uses them',
    load: async () => (await import('./demo/sandbox.ts')).sandboxCommand,
  },
  {
    term: 'users',
    description: 'users of the page and its API: make the hash of a password',
    load: async () => (await import('./users.ts')).usersCommand,
  },
  {
    term: 'accounts',
    description: 'accounts of the configuration, and those that left it',
    load: async () => (await import('./ledger/accounts.ts')).accountsCommand,
  },
  {
    term: 'sinks',
    description: 'where messages go',
    load: async () => (await import('./sinks/sinks.ts')).sinksCommand,
  },
  {
    term: 'routes',
    description: 'explain the route of an event',
    load: async () => (await import('./config/routes.ts')).routesCommand,
  },
  {
    term: 'render [options] <event>',
    description: 'what a sink would send for one event; sends nothing',
    load: async () => (await import('./sinks/render.ts')).renderCommand,
  },
  {
    term: 'status [options]',
    description: 'tell in one sentence whether all is well, then what is not, the worst first',
    load: async () => (await import('./ledger/status.ts')).statusCommand,
  },
  {
    term: 'items',
    description: 'list, show, resend, move and discard what the ledger holds, with its history',
    load: async () => (await import('./ledger/items.ts')).itemsCommand,
  },
  {
    term: 'report [options]',
    description: 'count what was seen, told and suppressed, and how soon, by day and by others',
    load: async () => (await import('./ledger/report.ts')).reportCommand,
  },
  {
    term: 'audit [options]',
    description:
      'compare what the service shows with the ledger, and the ledger with itself; exits 1 while anything is missing',
    load: async () => (await import('./ledger/audit.ts')).auditCommand,
  },
  {
    term: 'feeds',
    description: 'what is polled',
    load: async () => (await import('./feeds/feeds.ts')).feedsCommand,
  },
  {
    term: 'silences',
    description: 'list, add and expire silences',
    load: async () => (await import('./sinks/silences.ts')).silencesCommand,
  },
  {
    term: 'events',
    description: 'search and read events at the service',
    load: async () => (await import('./api/events.ts')).eventsCommand,
  },
  {
    term: 'credentials',
    description: 'search leaked credentials at the service',
    load: async () => (await import('./api/credentials.ts')).credentialsCommand,
  },
  {
    term: 'assets',
    description: 'list what is watched (assets, identifiers)',
    load: async () => (await import('./api/lists.ts')).assetsCommand,
  },
  {
    term: 'groups',
    description: 'list the groups of identifiers that feeds of type events read',
    load: async () => (await import('./api/lists.ts')).groupsCommand,
  },
  {
    term: 'monitoring',
    description: 'create and change assets and policies from a file',
    load: async () => (await import('./monitoring/monitoring.ts')).monitoringCommand,
  },
  {
    term: 'reports',
    description: 'download threat-flow reports',
    load: async () => (await import('./api/reports.ts')).reportsCommand,
  },
  {
    term: 'tenants',
    description: "list the tenants that the key's user may use",
    load: async () => (await import('./api/lists.ts')).tenantsCommand,
  },
  {
    term: 'api [operation]',
    description: 'list the operations of the service, or call one',
    load: async () => (await import('./api/api.ts')).apiCommand,
  },
]

/**
 * Adds all commands in order: loads the one that the arguments name, the others only as help
 * entries.
 */
export async function addCommands(
  program: Command,
  args: readonly string[],
  context: Context,
): Promise<void> {
  const [first, second] = args.filter((arg) => !arg.startsWith('-'))
  const wanted = first === 'help' ? second : first
  for (const entry of commandEntries) {
    const name = commandName(entry)
    const build = name === wanted ? await entry.load() : () => new Command(name)
    const command = build(context).description(entry.description)
    refuseEmptyValues(command)
    program.addCommand(command)
  }
  const terms = new Map(commandEntries.map((entry) => [commandName(entry), entry.term]))
  const defaultHelp = new Help()
  program.configureHelp({
    subcommandTerm: (command) => terms.get(command.name()) ?? defaultHelp.subcommandTerm(command),
  })
}

/**
 * Refuses an empty value, such as that of an unset variable, for every option and argument that
 * parses none itself. Else an empty name or path would be looked for.
 */
function refuseEmptyValues(command: Command): void {
  const options = command.options.filter(({ required, optional }) => required || optional)
  for (const option of [...options, ...command.registeredArguments]) {
    if (option.parseArg || option.argChoices) continue
    option.argParser((text: string, before: unknown) => {
      refuseEmpty(text)
      return option.variadic ? [...(Array.isArray(before) ? before : []), text] : text
    })
  }
  for (const inner of command.commands) refuseEmptyValues(inner)
}

function commandName({ term }: CommandEntry): string {
  return term.split(' ')[0] ?? ''
}
