/** What an event search looks for: an option for each of the thirteen kinds (facts.md 3.2). */
import { InvalidArgumentError, Option, type Command } from 'commander'
import type { EventQuery } from '../../../service/wire/events.ts'
import { CommandError } from '../../command-error.ts'
import type { Context } from '../../context.ts'
import { textValue } from '../option-values.ts'
import { readSecret } from '../secret-input.ts'

const terms = {
  domain: {
    flag: '--domain <fqdn>',
    says: 'a domain, such as example.com',
    query: (fqdn: string): EventQuery => ({ type: 'domain', fqdn }),
  },
  email: {
    flag: '--email <address>',
    says: 'an e-mail address',
    query: (email: string): EventQuery => ({ type: 'email', email }),
  },
  keyword: {
    flag: '--keyword <word>',
    says: 'a word or phrase',
    query: (keyword: string): EventQuery => ({ type: 'keyword', keyword }),
  },
  query: {
    flag: '--query <lucene>',
    says: "a query in Lucene's syntax",
    query: (query_string: string): EventQuery => ({ type: 'query_string', query_string }),
  },
  username: {
    flag: '--username <name>',
    says: 'a user name',
    query: (username: string): EventQuery => ({ type: 'username', username }),
  },
  github: { flag: '--github <owner/repo>', says: 'a repository on GitHub', query: repositoryQuery },
  brand: {
    flag: '--brand <name>',
    says: 'a brand',
    query: (name: string): EventQuery => ({ type: 'brand', name }),
  },
  name: {
    flag: '--name <name>',
    says: 'a person: "First Last", or "Last, First" where the last name is several words',
    query: personQuery,
  },
  bin: {
    flag: '--bin <digits>',
    says: 'the first digits of card numbers',
    query: (bin: string): EventQuery => ({ type: 'bin', bin }),
  },
  ip: {
    flag: '--ip <address>',
    says: 'an IP address',
    query: (ip: string): EventQuery => ({ type: 'ip', ip }),
  },
  azureTenant: {
    flag: '--azure-tenant <id>',
    says: 'a tenant of Azure',
    query: (tenant_id: string): EventQuery => ({ type: 'azure_tenant', tenant_id }),
  },
} as const

type Term = keyof typeof terms

export type EventQueryOptions = Partial<Record<Term, EventQuery>> & {
  strict?: true
  secret?: true
  credentials?: string
}

export function addEventQueryOptions(command: Command): Command {
  for (const { flag, says, query } of Object.values(terms)) {
    command.addOption(new Option(flag, says).argParser((text) => query(textValue(text))))
  }
  const credentials = 'the login, with a password that is asked for or read from standard input'
  return command
    .option('--strict', 'with --name: the name exactly as it is written')
    .option('--secret', 'a secret, which is asked for or read from standard input')
    .addOption(new Option('--credentials <username>', credentials).argParser(textValue))
}

/** undefined where nothing is looked for. Throws CommandError for more than one thing. */
export async function readEventQuery(
  context: Context,
  options: EventQueryOptions,
): Promise<EventQuery | undefined> {
  const asked = Object.keys(terms).filter(
    (name): name is Term => options[name as Term] !== undefined,
  )
  const { strict, secret, credentials } = options
  const kinds = [...asked, ...(secret ? ['secret'] : []), ...(credentials ? ['credentials'] : [])]
  if (kinds.length > 1)
    throw new CommandError('mistake', `${many}: ${kinds.map(flagOf).join(', ')}`)
  const query = asked[0] === undefined ? undefined : options[asked[0]]
  if (strict && query?.type !== 'name') {
    throw new CommandError('mistake', '--strict goes with --name only; leave it out')
  }
  if (query?.type === 'name') return { ...query, is_strict: strict === true }
  if (secret) return { type: 'secret', secret: await readSecret(context, 'secret') }
  if (credentials === undefined) return query
  const password = await readSecret(context, 'password')
  return { type: 'credentials', username: credentials, password }
}

const many = 'a search is for one thing; choose one of'

function flagOf(kind: string): string {
  return `--${kind === 'azureTenant' ? 'azure-tenant' : kind}`
}

function repositoryQuery(text: string): EventQuery {
  const [, repo_owner, repo_name] = /^([^/\s]+)\/([^/\s]+)$/.exec(text) ?? []
  if (repo_owner === undefined || repo_name === undefined) {
    throw new InvalidArgumentError('Write owner/repo, such as octocat/hello-world.')
  }
  return { type: 'github_repository', repo_owner, repo_name }
}

function personQuery(text: string): EventQuery {
  const [, last, first] = /^([^,]*\S)\s*,\s*([^,]+)$/.exec(text) ?? []
  if (first !== undefined && last !== undefined) {
    return { type: 'name', first_name: first, last_name: last, is_strict: false }
  }
  const [, first_name, last_name] = /^([^,]*[^,\s])\s+([^,\s]+)$/.exec(text) ?? []
  if (first_name === undefined || last_name === undefined) {
    throw new InvalidArgumentError('Write "First Last" or "Last, First".')
  }
  return { type: 'name', first_name, last_name, is_strict: false }
}
