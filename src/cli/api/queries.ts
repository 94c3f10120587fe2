/** Options for the kinds of queries that searches take, made from the shapes of the queries. */
import { type Command, Option } from 'commander'
import type { WireCredentialQuery } from '../../upstream/resources/credentials.ts'
import type { EventQuery } from '../../upstream/resources/events.ts'
import type { Context } from '../context.ts'
import { parseText } from '../options.ts'
import { CommandError } from '../terminal.ts'
import { readSecret } from './api-command.ts'

type Query = EventQuery | WireCredentialQuery

/** One kind of query: its option, what help says, and the query for a text. */
type Term<Kind extends Query> = [flag: string, says: string, toQuery: (text: string) => Kind]

const domain = (fqdn: string) => ({ type: 'domain' as const, fqdn })
const email = (address: string) => ({ type: 'email' as const, email: address })
const keyword = (word: string) => ({ type: 'keyword' as const, keyword: word })

/** The kinds that are one word; `api events.search` takes all. */
export const eventTerms: readonly Term<EventQuery>[] = [
  ['--domain <fqdn>', 'a domain, such as example.com', domain],
  ['--email <address>', 'an e-mail address', email],
  ['--keyword <word>', 'a word or phrase', keyword],
  [
    '--query <lucene>',
    "a query in Lucene's syntax",
    (text) => ({ type: 'query_string', query_string: text }),
  ],
  ['--username <name>', 'a user name', (username) => ({ type: 'username', username })],
  ['--brand <name>', 'a brand', (name) => ({ type: 'brand', name })],
  ['--bin <digits>', 'the first digits of card numbers', (bin) => ({ type: 'bin', bin })],
  ['--ip <address>', 'an IP address', (ip) => ({ type: 'ip', ip })],
  ['--azure-tenant <id>', 'a tenant of Azure', (id) => ({ type: 'azure_tenant', tenant_id: id })],
]

export const credentialTerms: readonly Term<WireCredentialQuery>[] = [
  ['--domain <fqdn>', 'addresses at this domain', domain],
  ['--auth-domain <fqdn>', 'logins at this site', (fqdn) => ({ type: 'auth_domain', fqdn })],
  ['--email <address>', 'exactly this address', email],
  ['--keyword <word>', 'logins with this word before the @', keyword],
]

export type QueryOptions = Record<string, unknown> & { secret?: true }

export function addQueryOptions(command: Command, terms: readonly Term<Query>[]): Command {
  for (const [flag, says, toQuery] of terms) {
    command.addOption(new Option(flag, says).argParser((text) => toQuery(parseText(text))))
  }
  return command.option('--secret', 'a secret, which is asked for or read from standard input')
}

/**
 * Returns the one query that is given. Throws CommandError for several, and for none where `ifNone`
 * says what to do.
 */
export async function readQuery<Kind extends Query>(
  context: Context,
  terms: readonly Term<Kind>[],
  options: QueryOptions,
  ifNone?: string,
): Promise<Kind | { type: 'secret'; secret: string } | undefined> {
  const flags = terms.map(([flag]) => flag.split(' ')[0] ?? '')
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
  if (flag !== undefined) return options[new Option(flag).attributeName()] as Kind
  if (ifNone !== undefined) throw new CommandError('mistake', ifNone)
  return undefined
}
