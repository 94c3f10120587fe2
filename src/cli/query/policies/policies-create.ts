import { checkRequest } from '../../../service/operations/check-request.ts'
import { policyCreation } from '../../../service/wire/policies.ts'
import { CommandError } from '../../command-error.ts'
import type { Context } from '../../context.ts'
import { readJsonObject, type JsonObject } from '../json-input.ts'
import { nameFailure } from '../name-failure.ts'
import { policyListing } from './policy-listing.ts'
import { printOne } from '../print-one.ts'
import { withClient, type ServiceOptions } from '../service-command.ts'

export interface CreatePolicyOptions extends ServiceOptions {
  name?: string
  includedKeywords?: string[]
  excludedKeywords?: string[]
  query?: string
  cookies?: string[]
  matchSubdomains?: true
  file?: string
}

/** Prints the policy as the service made it. */
export async function createPolicy(context: Context, options: CreatePolicyOptions): Promise<void> {
  const policy = checkRequest(policyCreation, await writtenBy(context, options))
  const created = await withClient(context, options, ({ client, asked }) =>
    nameFailure(`policy "${policy.name}"`, client.createPolicy({ policy, ...asked() })),
  )
  printOne(context, options, policyListing, created)
}

async function writtenBy(context: Context, options: CreatePolicyOptions): Promise<JsonObject> {
  const { file, name, cookies, matchSubdomains } = options
  const kinds = kindsIn(options)
  if (file !== undefined) {
    if (kinds.length > 0 || name !== undefined || matchSubdomains) {
      throw new CommandError('mistake', '--file: holds the whole policy; leave out what else it is')
    }
    return asCreated(await readJsonObject(context, file))
  }
  const [kind, ...others] = kinds
  if (kind === undefined || others.length > 0) throw new CommandError('mistake', oneKind)
  if (matchSubdomains && cookies === undefined) {
    throw new CommandError('mistake', '--match-subdomains goes with --cookies')
  }
  return { name, ...kind }
}

const oneKind =
  'say which events match by one of --included-keywords, --excluded-keywords, --query, --cookies or --file'

/** The types and values that the options stand for (facts.md 6). */
function kindsIn(options: CreatePolicyOptions): { type: string; value: JsonObject }[] {
  const { includedKeywords, excludedKeywords, query, cookies, matchSubdomains } = options
  return [
    ...(includedKeywords ? [keywords('INCLUDED_KEYWORDS', includedKeywords)] : []),
    ...(excludedKeywords ? [keywords('EXCLUDED_KEYWORDS', excludedKeywords)] : []),
    ...(query === undefined ? [] : [{ type: 'LUCENE_QUERY', value: { query } }]),
    ...(cookies
      ? [
          {
            type: 'ASTP_COOKIES',
            value: { cookie_names: cookies, match_subdomains: matchSubdomains === true },
          },
        ]
      : []),
  ]
}

function keywords(type: string, words: string[]): { type: string; value: JsonObject } {
  return { type, value: { keywords: words } }
}

/** A policy as it was read serves too: its type is called `policy_type` there, and the service sets the rest. */
function asCreated(written: JsonObject): JsonObject {
  const { policy_type: type, uuid, created_at: _made, last_updated_at: _changed, ...rest } = written
  return uuid === undefined || type === undefined ? written : { type, ...rest }
}
