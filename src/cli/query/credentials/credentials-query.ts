import { Option, type Command } from 'commander'
import type { WireCredentialQuery } from '../../../service/wire/credentials.ts'
import { CommandError } from '../../command-error.ts'
import type { Context } from '../../context.ts'
import { textValue } from '../option-values.ts'
import { readSecret } from '../secret-input.ts'

export interface CredentialQueryOptions {
  domain?: string
  authDomain?: string
  email?: string
  keyword?: string
  secret?: true
}

/** What each finds: facts.md 1, row 12. */
export function addCredentialQueryOptions(command: Command): Command {
  const term = (flag: string, says: string): Option => new Option(flag, says).argParser(textValue)
  return command
    .addOption(term('--domain <fqdn>', 'addresses at this domain'))
    .addOption(term('--auth-domain <fqdn>', 'logins at this site'))
    .addOption(term('--email <address>', 'exactly this address'))
    .addOption(term('--keyword <word>', 'logins with this word before the @'))
    .option('--secret', 'whose secret it is, which is asked for or read from standard input')
}

/** Throws CommandError for more than one thing, or none. */
export async function readCredentialQuery(
  context: Context,
  { domain, authDomain, email, keyword, secret }: CredentialQueryOptions,
): Promise<WireCredentialQuery> {
  const queries: WireCredentialQuery[] = [
    ...(domain === undefined ? [] : [{ type: 'domain', fqdn: domain } as const]),
    ...(authDomain === undefined ? [] : [{ type: 'auth_domain', fqdn: authDomain } as const]),
    ...(email === undefined ? [] : [{ type: 'email', email } as const]),
    ...(keyword === undefined ? [] : [{ type: 'keyword', keyword } as const]),
  ]
  const [query, ...others] = queries
  const isOne = secret ? query === undefined : query !== undefined && others.length === 0
  if (!isOne) {
    const kinds = '--domain, --auth-domain, --email, --keyword and --secret'
    throw new CommandError('mistake', `a search is for one thing; give exactly one of ${kinds}`)
  }
  return query ?? { type: 'secret', secret: await readSecret(context, 'secret') }
}
