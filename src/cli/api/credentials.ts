import { Command, Option } from 'commander'
import { systemClock } from '../../lib/clock.ts'
import { maskIdentity, maskKnown } from '../../masking/masking.ts'
import { ServiceError } from '../../upstream/error.ts'
import {
  wireCredential,
  type WireCredential,
  type WireCredentialQuery,
  type WireCredentialSearchBody,
} from '../../upstream/resources/credentials.ts'
import { credentialIncludes, orders } from '../../upstream/resources/enumerations.ts'
import type { SearchPage } from '../../upstream/resources/operation.ts'
import { parseTimestamp } from '../../upstream/timestamps.ts'
import type { Context } from '../context.ts'
import {
  addSpanOptions,
  listOf,
  rangeOf,
  type Span,
  spanAt,
  type SpanOptions,
  textValue,
} from '../options.ts'
import { CommandError, harmless } from '../terminal.ts'
import {
  addServiceOptions,
  askUncertain,
  nameFailure,
  type OpenService,
  readSecret,
  type ServiceOptions,
  wholeId,
  withClient,
} from './api-command.ts'
import {
  addRevealOption,
  type Listing,
  mapTexts,
  masked,
  readRows,
  revealed,
  type RevealOption,
  shortTime,
} from './listing.ts'
import {
  addPagingOptions,
  addSizeOption,
  type PagingOptions,
  placeAt,
  printPages,
  type SizeOption,
  walkMark,
  type WalkPlace,
  wordOfNext,
} from './pages.ts'

export function credentialsCommand(context: Context): Command {
  return new Command('credentials')
    .addCommand(credentialsSearchCommand(context))
    .addCommand(credentialsFeedCommand(context))
}

interface CredentialsFeedOptions extends ServiceOptions, PagingOptions, SizeOption, RevealOption {
  tenant?: true
  order?: 'asc' | 'desc'
}

const usualSize = 20
/** No maximum is published (docs/api-notes.md, Page sizes); this one only catches typing errors. */
const mostOfAPage = 10_000

export function credentialsFeedCommand(context: Context): Command {
  const command = new Command('feed')
    .description('the leaked credentials of an identifier, or of all identifiers of the tenant')
    .argument('[identifier]', 'its id', wholeId)
    .option('--tenant', 'of all identifiers of the tenant')
    .addOption(
      new Option('--order <order>', 'with --tenant: by import (default: desc)').choices(orders),
    )
  addSizeOption(command, { usual: usualSize, most: mostOfAPage, mostInWords: '1 or more' })
  addPagingOptions(addRevealOption(command))
  return addServiceOptions(command).action(
    (identifier: number | undefined, options: CredentialsFeedOptions) =>
      readFeed(context, identifier, options),
  )
}

async function readFeed(
  context: Context,
  identifier: number | undefined,
  options: CredentialsFeedOptions,
): Promise<void> {
  refuseOdd(identifier, options)
  const nowMs = systemClock.now()
  const { order = 'desc' } = options
  await withClient(context, options, (service) =>
    printPages(context, options, {
      listing: credentialsListing(options),
      mark: walkMark(service, 'credentials feed', identifier ? { identifier } : { tenant: order }),
      async fetch(word) {
        const place = placeAt(word, options, { usual: usualSize, nowMs })
        const { cursor: from, size } = place
        const { client, asked } = service
        const { page } = await (identifier === undefined
          ? askUncertain(
              client,
              tenantFeed,
              client.tenantCredentials({ from, size, order, ...asked() }),
            )
          : nameFailure(
              `identifier ${identifier}`,
              client.credentialFeed({ identifier, from, size, ...asked() }),
            ))
        const records = readRows(context, wireCredential, page.items)
        return {
          rows: records.map((record) => credentialRow(record, { reveal: options.reveal })),
          next: wordOfNext(place, page.next),
        }
      },
    }),
  )
}

const tenantFeed = {
  capability: 'tenant_credentials',
  operation: "the feed of the tenant's credentials",
  permission: 'to read its credentials',
  instead: 'read the feed of each identifier',
}

function refuseOdd(
  identifier: number | undefined,
  { tenant, order }: CredentialsFeedOptions,
): void {
  if (identifier === undefined && !tenant) {
    throw new CommandError('mistake', 'name an identifier by its id, or all by --tenant')
  }
  if (identifier !== undefined && tenant) {
    throw new CommandError('mistake', 'an identifier and --tenant are different feeds; choose one')
  }
  if (identifier !== undefined && order) {
    throw new CommandError('mistake', '--order goes with --tenant only; leave it out')
  }
}

interface CredentialsSearchOptions
  extends
    ServiceOptions,
    PagingOptions,
    SizeOption,
    SpanOptions,
    RevealOption,
    CredentialQueryOptions {
  include: (typeof credentialIncludes)[number][]
  order: 'asc' | 'desc'
  withoutQuota?: true
}

/** Not urls, which servers before 2026-07 refuse. */
const usualIncludes = ['known_password_id', 'auth_domains'] as const

/** Sizes after a time-out: large pages are slow, and the gateway gives up at 30 s (docs/api-notes.md, Page sizes). */
const smallerSizes = [100, 50, 25, 10]
const usualSearchSize = 100

export function credentialsSearchCommand(context: Context): Command {
  const command = new Command('search').description('search all leaked credentials (costs quota)')
  addSpanOptions(addCredentialQueryOptions(command), 'imported')
    .addOption(
      new Option('--include <names>', 'what each record holds besides')
        .argParser(listOf(credentialIncludes))
        .default(usualIncludes, usualIncludes.join(',')),
    )
    .option(
      '--without-quota',
      'by the search of those with Account Takeover Prevention, costs none',
    )
    .addOption(
      new Option('--order <order>', "in the service's order").choices(orders).default('desc'),
    )
  addSizeOption(command, { usual: usualSearchSize, most: mostOfAPage })
  addPagingOptions(addRevealOption(command))
  return addServiceOptions(command).action((options: CredentialsSearchOptions) =>
    searchCredentials(context, options),
  )
}

async function searchCredentials(
  context: Context,
  options: CredentialsSearchOptions,
): Promise<void> {
  const nowMs = systemClock.now()
  spanAt(options, nowMs) // said before anything is opened or a secret asked for
  const query = await readCredentialQuery(context, options)
  const secrets = query.type === 'secret' ? [query.secret] : []
  await withClient(context, options, (service) =>
    printPages(context, options, {
      listing: credentialsListing(options),
      mark: markOf(service, options, query),
      async fetch(word) {
        const asked = placeAt(word, options, { usual: usualSearchSize, nowMs })
        const found = await askInSmallerPages(context, asked, (place) =>
          ask(service, { options, query, place }),
        )
        const { page, searchesRemaining, place } = found
        const span = spanAt(options, place.asOfMs)
        const records = readRows(context, wireCredential, page.items)
        return {
          rows: records
            .filter((record) => isWithin(record, span))
            .map((record) => credentialRow(record, { reveal: options.reveal, secrets })),
          next: wordOfNext(place, page.next),
          searchesRemaining,
        }
      },
    }),
  )
}

function markOf(
  service: OpenService,
  { since, until, include, order, withoutQuota }: CredentialsSearchOptions,
  query: WireCredentialQuery,
): string {
  const asked = { query, since, until, include, order, ...(withoutQuota && { withoutQuota }) }
  return walkMark(service, 'credentials search', asked)
}

interface Search {
  options: CredentialsSearchOptions
  query: WireCredentialQuery
  place: WalkPlace
}

function ask(
  { client, asked }: OpenService,
  { options, query, place }: Search,
): Promise<SearchPage> {
  const imported_at = rangeOf(spanAt(options, place.asOfMs))
  const body: WireCredentialSearchBody = {
    query,
    ...(imported_at && { filters: { imported_at } }),
    size: place.size,
    order: options.order,
    include: [...options.include],
    ...(place.cursor !== null && { from: place.cursor }),
  }
  if (!options.withoutQuota) return client.searchCredentials({ body, ...asked() })
  return askUncertain(client, astpSearch, client.searchAstpCredentials({ body, ...asked() }))
}

const astpSearch = {
  capability: 'astp_credentials',
  operation: 'the search without quota',
  permission: 'astp_credentials_access',
  instead: 'leave out --without-quota',
}

/**
 * A page at the beginning of a walk is asked for in smaller pieces when it comes too slowly. Later ones
 * are not: other pages are another walk, and nothing says where in it this one stands.
 */
async function askInSmallerPages(
  context: Context,
  place: WalkPlace,
  askFor: (place: WalkPlace) => Promise<SearchPage>,
): Promise<SearchPage & { place: WalkPlace }> {
  try {
    return { ...(await askFor(place)), place }
  } catch (error) {
    const smaller = smallerSizes.find((size) => size < place.size)
    if (!isTooSlow(error) || smaller === undefined || context.stop.aborted) throw error
    if (place.cursor !== null) {
      const remedy = `try again, or begin again with --size ${smaller}`
      throw new ServiceError(error.reason, `${error.message}; ${remedy}`, error)
    }
    context.terminal.complain(`${place.size} at once took too long; asking for ${smaller}`)
    return askInSmallerPages(context, { ...place, size: smaller }, askFor)
  }
}

function isTooSlow(error: unknown): error is ServiceError {
  return error instanceof ServiceError && (error.status === 504 || error.reason === 'timeout')
}

/** Filters by time again: servers before 2026-05-28 ignore times in most searches (docs/api-notes.md, Versions). */
function isWithin({ imported_at }: WireCredential, { fromMs, toMs }: Span): boolean {
  const atMs = imported_at ? parseTimestamp(imported_at) : null
  if (atMs === null) return true
  return atMs >= (fromMs ?? -Infinity) && atMs <= (toMs ?? Infinity)
}

export interface CredentialQueryOptions {
  domain?: string
  authDomain?: string
  email?: string
  keyword?: string
  secret?: true
}

/** An option for each kind of query; what each matches: docs/api-notes.md, Credentials. */
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

/** As the service has it, secrets masked unless they are revealed. */
export function credentialRow(
  record: WireCredential,
  { reveal, secrets = [] }: { reveal: true | undefined; secrets?: readonly string[] },
): WireCredential {
  if (reveal) return record
  const known = maskKnown([...secrets, ...(record.hash ? [record.hash] : [])])
  // a year is a common password, and a time is no place for one
  const hidden = mapTexts(record, (text) => (parseTimestamp(text) === null ? known(text) : text))
  const shown = masked(hidden) as WireCredential
  // badly read dumps have login and secret in one
  const { identity_name } = shown
  return { ...shown, ...(identity_name && { identity_name: maskIdentity(identity_name) }) }
}

type Column = Listing<WireCredential>['columns'][number]

const identityWidth = 40

const secret: Column = { title: 'SECRET', width: 24, text: secretInWords }

/** A revealed secret has a line of its own, where it is whole. */
export function credentialsListing({ reveal }: RevealOption): Listing<WireCredential> {
  return {
    columns: [
      { title: 'IMPORTED (UTC)', width: 16, text: ({ imported_at }) => shortTime(imported_at) },
      {
        title: 'IDENTITY',
        width: identityWidth,
        text: ({ identity_name }) => identity_name ?? '',
      },
      ...(reveal ? [] : [secret]),
      {
        title: 'SOURCE',
        width: 40,
        text: ({ source, source_id }) => source?.name ?? String(source?.id ?? source_id ?? ''),
      },
    ],
    below: (record) => [...(reveal ? revealedLines(record) : []), ...linesBelow(record)],
    json: (record) => record,
    csv: csvKeys,
  }
}

/** Badly read dumps have login and secret in one, which the table may cut. */
function revealedLines({
  identity_name: identity,
  hash,
  hash_type: type,
}: WireCredential): string[] {
  const isCut = identity && (harmless(identity) !== identity || identity.length > identityWidth)
  return [
    ...(isCut ? [`identity: ${revealed(identity)}`] : []),
    ...(hash ? [`secret${type ? ` (${harmless(type)})` : ''}: ${revealed(hash)}`] : []),
  ]
}

const csvKeys = [
  'id',
  'imported_at',
  'identity_name',
  'hash',
  'hash_type',
  'domain',
  'auth_domains',
  'urls',
  'known_password_id',
  'credential_hash',
  'event_uid',
  'source_id',
  'source.id',
  'source.name',
  'source.description_en',
  'source.description_fr',
  'source.breached_at',
  'source.leaked_at',
  'source.is_alert_enabled',
  'source.pii_tags',
  'remediated_at',
  'ignored_at',
]

function secretInWords({ hash, hash_type }: WireCredential): string {
  if (!hash) return '–'
  return hash_type ? `${hash} (${hash_type})` : hash
}

function linesBelow(record: WireCredential): string[] {
  const { auth_domains, urls, event_uid, remediated_at, ignored_at } = record
  const sites = urls?.length ? urls : (auth_domains ?? [])
  const notes = [
    ...(sites.length > 0 ? [`logs in at ${sites.join(', ')}`] : []),
    ...(event_uid ? [`in ${event_uid}`] : []),
    ...(remediated_at ? [`remediated ${shortTime(remediated_at)}`] : []),
    ...(ignored_at ? [`ignored ${shortTime(ignored_at)}`] : []),
  ]
  return notes.length === 0 ? [] : [harmless(notes.join('; '))]
}
