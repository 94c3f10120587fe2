/** Options for the kinds of queries that searches take, made from the shapes of the queries. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { WireCredentialQuery } from '../../upstream/resources/credentials.ts'
import type { EventQuery } from '../../upstream/resources/events.ts'
import type { Context } from '../context.ts'
import { parseText } from '../options.ts'
import { CommandError } from '../terminal.ts'
import { readSecret } from './api-command.ts'

type Query = EventQuery | WireCredentialQuery

/** One kind of query: its option, what help says, and the query for a text. */
interface Term<Kind extends Query> {
  flag: string
  says: string
  query: (text: string) => Kind
}

const domain = (type: 'domain') => (fqdn: string) => ({ type, fqdn })

export const eventTerms: readonly Term<EventQuery>[] = [
  { flag: '--domain <fqdn>', says: 'a domain, such as example.com', query: domain('domain') },
  {
    flag: '--email <address>',
    says: 'an e-mail address',
    query: (email) => ({ type: 'email', email }),
  },
  {
    flag: '--keyword <word>',
    says: 'a word or phrase',
    query: (keyword) => ({ type: 'keyword', keyword }),
  },
  {
    flag: '--query <lucene>',
    says: "a query in Lucene's syntax",
    query: (query_string) => ({ type: 'query_string', query_string }),
  },
  {
    flag: '--username <name>',
    says: 'a user name',
    query: (username) => ({ type: 'username', username }),
  },
  { flag: '--github <owner/repo>', says: 'a repository on GitHub', query: repositoryQuery },
  { flag: '--brand <name>', says: 'a brand', query: (name) => ({ type: 'brand', name }) },
  {
    flag: '--name <name>',
    says: 'a person: "First Last", or "Last, First" where the last name is several words',
    query: personQuery,
  },
  {
    flag: '--bin <digits>',
    says: 'the first digits of card numbers',
    query: (bin) => ({ type: 'bin', bin }),
  },
  { flag: '--ip <address>', says: 'an IP address', query: (ip) => ({ type: 'ip', ip }) },
  {
    flag: '--azure-tenant <id>',
    says: 'a tenant of Azure',
    query: (tenant_id) => ({ type: 'azure_tenant', tenant_id }),
  },
]

export const credentialTerms: readonly Term<WireCredentialQuery>[] = [
  { flag: '--domain <fqdn>', says: 'addresses at this domain', query: domain('domain') },
  {
    flag: '--auth-domain <fqdn>',
    says: 'logins at this site',
    query: (fqdn) => ({ type: 'auth_domain', fqdn }),
  },
  {
    flag: '--email <address>',
    says: 'exactly this address',
    query: (email) => ({ type: 'email', email }),
  },
  {
    flag: '--keyword <word>',
    says: 'logins with this word before the @',
    query: (keyword) => ({ type: 'keyword', keyword }),
  },
]

export type QueryOptions = Record<string, unknown> & { secret?: true }

export function addQueryOptions(command: Command, terms: readonly Term<Query>[]): Command {
  for (const { flag, says, query } of terms) {
    command.addOption(new Option(flag, says).argParser((text) => query(parseText(text))))
  }
  return command.option('--secret', 'a secret, which is asked for or read from standard input')
}

/** Returns the one query that is given; undefined for none. Throws CommandError for several. */
export async function readQuery<Kind extends Query>(
  context: Context,
  terms: readonly Term<Kind>[],
  options: QueryOptions,
): Promise<Kind | { type: 'secret'; secret: string } | undefined> {
  const flags = terms.map(({ flag }) => flag.split(' ')[0] ?? '')
  const given = flags.filter((flag) => options[new Option(flag).attributeName()] !== undefined)
  const kinds = [...given, ...(options.secret ? ['--secret'] : [])]
  if (kinds.length > 1) {
    throw new CommandError(
      'mistake',
      `a search is for one thing; choose one of: ${kinds.join(', ')}`,
    )
  }
  if (options.secret) return { type: 'secret', secret: await readSecret(context, 'secret') }
  const [flag] = given
  return flag === undefined ? undefined : (options[new Option(flag).attributeName()] as Kind)
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
