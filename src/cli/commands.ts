/**
 * The commands by name: what help says of each, and the module that has it. A process loads the module of the
 * command that it runs, and none other: most need neither Redis nor the service nor the daemon.
 */
import { Command, Help } from 'commander'
import type { Context } from './context.ts'

interface CommandEntry {
  /** As help names it. */
  term: string
  says: string
  load: () => Promise<(context: Context) => Command>
}

const entries: readonly CommandEntry[] = [
  {
    term: 'run [options]',
    says: 'poll, route and deliver, until asked to stop; SIGHUP reads the configuration again',
    load: async () => (await import('./run.ts')).runCommand,
  },
  {
    term: 'check [options] [file]',
    says: 'name every mistake in the configuration, or say what it does',
    load: async () => (await import('./check.ts')).checkCommand,
  },
  {
    term: 'schema [options]',
    says: 'print the JSON Schema of the configuration, for editors',
    load: async () => (await import('./schema.ts')).schemaCommand,
  },
  {
    term: 'demo [options]',
    says: 'see it work: a pretend service, pretend sinks, a Redis of its own and the daemon itself',
    load: async () => (await import('./demo/demo.ts')).demoCommand,
  },
  {
    term: 'sandbox [options]',
    says: 'a pretend service with pretend sinks, and a configuration that uses them',
    load: async () => (await import('./sandbox.ts')).sandboxCommand,
  },
  {
    term: 'token',
    says: 'the API keys',
    load: async () => (await import('./api/tenants.ts')).tokenCommand,
  },
  {
    term: 'accounts',
    says: 'accounts of the configuration, and those that left it',
    load: async () => (await import('./accounts.ts')).accountsCommand,
  },
  {
    term: 'sinks',
    says: 'where messages go',
    load: async () => (await import('./sinks.ts')).sinksCommand,
  },
  {
    term: 'routes',
    says: 'which event goes where',
    load: async () => (await import('./routes.ts')).routesCommand,
  },
  {
    term: 'explain [options] <uid>',
    says: 'the story of one event: where it came from, where it went, and why',
    load: async () => (await import('./explain.ts')).explainCommand,
  },
  {
    term: 'audit [options]',
    says: 'compare what the service shows with the ledger, and the ledger with itself; exits 1 while anything is missing',
    load: async () => (await import('./audit.ts')).auditCommand,
  },
  {
    term: 'feeds',
    says: 'what is polled',
    load: async () => (await import('./feeds.ts')).feedsCommand,
  },
  {
    term: 'dead-letters',
    says: 'what could not be delivered',
    load: async () => (await import('./dead-letters.ts')).deadLettersCommand,
  },
  {
    term: 'quarantine',
    says: 'what could not be read as an event',
    load: async () => (await import('./quarantine.ts')).quarantineCommand,
  },
  {
    term: 'deliveries',
    says: 'what was sent',
    load: async () => (await import('./deliveries.ts')).deliveriesCommand,
  },
  {
    term: 'silences',
    says: 'what is not sent for a while, by whom and why',
    load: async () => (await import('./silences.ts')).silencesCommand,
  },
  {
    term: 'digests',
    says: 'what sinks collect to send on a schedule',
    load: async () => (await import('./digests.ts')).digestsCommand,
  },
  {
    term: 'events',
    says: 'events at the service, found and read by hand',
    load: async () => (await import('./api/events.ts')).eventsCommand,
  },
  {
    term: 'credentials',
    says: 'leaked credentials at the service, found and read by hand',
    load: async () => (await import('./api/credentials.ts')).credentialsCommand,
  },
  {
    term: 'assets',
    says: 'what is watched: domains, keywords, addresses and the like (identifiers)',
    load: async () => (await import('./api/assets.ts')).assetsCommand,
  },
  {
    term: 'policies',
    says: 'matching policies: which events match an identifier',
    load: async () => (await import('./api/policies.ts')).policiesCommand,
  },
  {
    term: 'alerts',
    says: "the service's own alerts",
    load: async () => (await import('./api/alerts.ts')).alertsCommand,
  },
  {
    term: 'reports',
    says: 'threat-flow reports',
    load: async () => (await import('./api/reports.ts')).reportsCommand,
  },
  {
    term: 'tenants',
    says: 'tenants of an organization',
    load: async () => (await import('./api/tenants.ts')).tenantsCommand,
  },
]

/** Adds all, in their order; the one that the arguments name whole, the others as help shows them. */
export async function addCommands(
  program: Command,
  args: readonly string[],
  context: Context,
): Promise<void> {
  const [first, second] = args.filter((arg) => !arg.startsWith('-'))
  const wanted = first === 'help' ? second : first
  for (const entry of entries) {
    const name = nameOf(entry)
    const make = name === wanted ? await entry.load() : () => new Command(name)
    program.addCommand(make(context).description(entry.says))
  }
  const terms = new Map(entries.map((entry) => [nameOf(entry), entry.term]))
  const usual = new Help()
  program.configureHelp({
    subcommandTerm: (command) => terms.get(command.name()) ?? usual.subcommandTerm(command),
  })
}

function nameOf({ term }: CommandEntry): string {
  return term.split(' ')[0] ?? ''
}
