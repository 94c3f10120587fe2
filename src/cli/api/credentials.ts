/**
 * `credentials feed`, `search` and `urls`: leaked credentials and where they were used, with secrets
 * masked unless revealed.
 */

import { Command, Option } from 'commander'
import { systemClock } from '../../lib/clock.ts'
import { maskIdentity, maskKnown } from '../../masking/masking.ts'
import { UpstreamError } from '../../upstream/error.ts'
import {
  wireCredential,
  type WireCredential,
  wireCredentialUrl,
  type WireCredentialUrl,
  type WireCredentialQuery,
  type WireCredentialSearchBody,
} from '../../upstream/resources/credentials.ts'
import { credentialIncludes, orders } from '../../upstream/resources/enumerations.ts'
import type { SearchPage } from '../../upstream/resources/operation.ts'
import { parseTimestamp } from '../../upstream/timestamps.ts'
import type { Context } from '../context.ts'
import {
  addPeriodOptions,
  wordsOption,
  toRangeFilter,
  type Period,
  resolvePeriod,
  type PeriodOptions,
  parseText,
} from '../options.ts'
import { CommandError, sanitize } from '../terminal.ts'
import { callOptional, nameFailure, type ApiContext, readSecret, parseId } from './api-command.ts'
import {
  type Listing,
  mapTexts,
  maskAllSecrets,
  parseRows,
  formatRevealed,
  type RevealOption,
  shortTime,
} from './listing.ts'
import { listCommand, type ListOptions, type ListRequest, type ScanPosition } from './pages.ts'
import { credentialTriageCommands, parseHash } from './triage.ts'

export function credentialsCommand(context: Context): Command {
  const credentials = new Command('credentials')
    .addCommand(credentialsSearchCommand(context))
    .addCommand(credentialsFeedCommand(context))
    .addCommand(credentialUrlsCommand(context))
  for (const command of credentialTriageCommands(context)) credentials.addCommand(command)
  return credentials
}

interface CredentialsFeedOptions extends ListOptions {
  tenant?: true
  order?: 'asc' | 'desc'
}

/** The identifier whose feed is read, or else the order of the tenant's feed. */
type CredentialsFeed = { identifier: number } | { tenant: 'asc' | 'desc' }

const defaultFeedSize = 20
/** No maximum is published (docs/api-notes.md, Page sizes); this one only catches typing errors. */
const maxPageSize = 10_000

export function credentialsFeedCommand(context: Context): Command {
  return listCommand(context, {
    name: 'credentials feed',
    description: 'the leaked credentials of an identifier, or of all identifiers of the tenant',
    options: (command) =>
      command
        .argument('[identifier]', 'its id', parseId)
        .option('--tenant', 'of all identifiers of the tenant')
        .addOption(
          new Option('--order <order>', 'with --tenant: by import (default: desc)').choices(orders),
        ),
    pageSize: { usual: defaultFeedSize, most: maxPageSize, mostInWords: '1 or more' },
    reveal: true,
    ask: chooseFeed,
    listing: credentialsListing,
    async fetch(request) {
      const { reveal } = request.options
      const { page } = await requestFeed(request)
      const records = parseRows(request.context, wireCredential, page.items)
      return { rows: records.map((record) => credentialRow(record, { reveal })), next: page.next }
    },
  })
}

function chooseFeed(
  { tenant, order }: CredentialsFeedOptions,
  identifier?: string | number,
): CredentialsFeed {
  if (identifier === undefined && !tenant) {
    throw new CommandError('mistake', 'name an identifier by its id, or all by --tenant')
  }
  if (identifier !== undefined && tenant) {
    throw new CommandError('mistake', 'an identifier and --tenant are different feeds; choose one')
  }
  if (identifier !== undefined && order) {
    throw new CommandError('mistake', '--order goes with --tenant only; leave it out')
  }
  return identifier === undefined ? { tenant: order ?? 'desc' } : { identifier: Number(identifier) }
}

function requestFeed({
  client,
  callOptions,
  asked,
  position: { cursor: from, size },
}: ListRequest<CredentialsFeedOptions, CredentialsFeed>): Promise<SearchPage> {
  if ('tenant' in asked) {
    const request = { from, size, order: asked.tenant, ...callOptions() }
    return callOptional(client, tenantFeed, client.tenantCredentials(request))
  }
  const { identifier } = asked
  const request = client.credentialFeed({ identifier, from, size, ...callOptions() })
  return nameFailure(`identifier ${identifier}`, request)
}

const tenantFeed = {
  capability: 'tenant_credentials',
  operation: "the feed of the tenant's credentials",
  permission: 'to read its credentials',
  instead: 'read the feed of each identifier',
}

export function credentialUrlsCommand(context: Context): Command {
  return listCommand(context, {
    name: 'credentials urls',
    description: 'where a leaked credential was used',
    options: (command) =>
      command.argument(
        '<hash>',
        'its credential_hash, as --reveal shows it in JSON or CSV',
        parseHash,
      ),
    pageSize: { usual: 100, most: 5_000 },
    reveal: true,
    ask: (_options: ListOptions, hash) => String(hash),
    listing: () => urlListing,
    async fetch({ context, client, callOptions, options, asked, position: { cursor, size } }) {
      const request = { hash: asked, from: cursor, size, ...callOptions() }
      const page = await callOptional(client, urlsByHash, client.credentialUrls(request))
      const rows = parseRows(context, wireCredentialUrl, page.items)
      return {
        rows: options.reveal ? rows : rows.map((row) => maskAllSecrets(row)),
        next: page.next,
      }
    },
  })
}

const urlsByHash = {
  capability: 'astp_urls',
  operation: 'the addresses of a credential',
  permission: 'astp_credentials_access',
  instead: '"credentials search --include urls" shows up to 100 of each',
}

const urlListing: Listing<WireCredentialUrl> = {
  columns: [
    { title: 'DOMAIN', width: 40, text: ({ domain }) => domain ?? '' },
    { title: 'URL', width: 60, text: ({ url }) => url },
  ],
  json: (row) => row,
  csv: ['url', 'domain', 'credential_hash'],
}

interface CredentialsSearchOptions extends ListOptions, PeriodOptions, CredentialQueryOptions {
  include: (typeof credentialIncludes)[number][]
  order: 'asc' | 'desc'
  withoutQuota?: true
}

/** Without `urls`, which servers before 2026-07 refuse. */
const defaultIncludes = ['known_password_id', 'auth_domains'] as const

/**
 * Sizes to try after a timeout: large pages are slow, and the gateway gives up at 30 s
 * (docs/api-notes.md, Page sizes).
 */
const smallerSizes = [100, 50, 25, 10]
const defaultSearchSize = 100

export function credentialsSearchCommand(context: Context): Command {
  return listCommand(context, {
    name: 'credentials search',
    description: 'search all leaked credentials (costs quota)',
    options: addSearchOptions,
    pageSize: { usual: defaultSearchSize, most: maxPageSize },
    reveal: true,
    ask(options: CredentialsSearchOptions) {
      resolvePeriod(options, systemClock.now()) // said before a secret is asked for
      return readCredentialQuery(context, options)
    },
    scan: (query, { since, until, include, order, withoutQuota }) => ({
      query,
      since,
      until,
      include,
      order,
      ...(withoutQuota && { withoutQuota }),
    }),
    listing: credentialsListing,
    fetch: searchCredentials,
  })
}

function addSearchOptions(command: Command): Command {
  return addPeriodOptions(addCredentialQueryOptions(command), 'imported')
    .addOption(
      wordsOption(
        '--include <names>',
        'what each record holds besides',
        credentialIncludes,
      ).default(defaultIncludes, defaultIncludes.join(',')),
    )
    .option(
      '--without-quota',
      'by the search of those with Account Takeover Prevention, costs none',
    )
    .addOption(
      new Option('--order <order>', "in the service's order").choices(orders).default('desc'),
    )
}

async function searchCredentials({
  context,
  options,
  asked: query,
  position: firstPosition,
  ...api
}: ListRequest<CredentialsSearchOptions, WireCredentialQuery>) {
  const secrets = query.type === 'secret' ? [query.secret] : []
  const found = await requestInSmallerPages(context, firstPosition, (position) =>
    requestPage(api, { options, query, position }),
  )
  const { page, searchesRemaining, position } = found
  const span = resolvePeriod(options, position.asOfMs)
  const records = parseRows(context, wireCredential, page.items)
  return {
    rows: records
      .filter((record) => isImportedWithin(record, span))
      .map((record) => credentialRow(record, { reveal: options.reveal, secrets })),
    next: page.next,
    searchesRemaining,
    position,
  }
}

interface SearchRequest {
  options: CredentialsSearchOptions
  query: WireCredentialQuery
  position: ScanPosition
}

function requestPage(
  { client, callOptions }: ApiContext,
  { options, query, position }: SearchRequest,
): Promise<SearchPage> {
  const imported_at = toRangeFilter(resolvePeriod(options, position.asOfMs))
  const body: WireCredentialSearchBody = {
    query,
    ...(imported_at && { filters: { imported_at } }),
    size: position.size,
    order: options.order,
    include: [...options.include],
    ...(position.cursor !== null && { from: position.cursor }),
  }
  if (!options.withoutQuota) return client.searchCredentials({ body, ...callOptions() })
  return callOptional(client, astpSearch, client.searchAstpCredentials({ body, ...callOptions() }))
}

const astpSearch = {
  capability: 'astp_credentials',
  operation: 'the search without quota',
  permission: 'astp_credentials_access',
  instead: 'leave out --without-quota',
}

/**
 * Retries the first page of a scan with a smaller size after a timeout. Later pages are not
 * retried: another page size begins another scan, in which the position of this one is unknown.
 */
async function requestInSmallerPages(
  context: Context,
  position: ScanPosition,
  request: (position: ScanPosition) => Promise<SearchPage>,
): Promise<SearchPage & { position: ScanPosition }> {
  try {
    return { ...(await request(position)), position }
  } catch (error) {
    const smaller = smallerSizes.find((size) => size < position.size)
    if (!isTooSlow(error) || smaller === undefined || context.stop.aborted) throw error
    if (position.cursor !== null) {
      const remedy = `try again, or begin again with --size ${smaller}`
      throw new UpstreamError(error.reason, `${error.message}; ${remedy}`, error)
    }
    context.terminal.printError(`${position.size} at once took too long; asking for ${smaller}`)
    return requestInSmallerPages(context, { ...position, size: smaller }, request)
  }
}

function isTooSlow(error: unknown): error is UpstreamError {
  return error instanceof UpstreamError && (error.status === 504 || error.reason === 'timeout')
}

/**
 * Filters by time again: servers before 2026-05-28 ignore times in most searches
 * (docs/api-notes.md, Versions).
 */
function isImportedWithin({ imported_at }: WireCredential, { fromMs, toMs }: Period): boolean {
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

/** Adds an option for each kind of query (docs/api-notes.md, Credentials). */
export function addCredentialQueryOptions(command: Command): Command {
  const term = (flag: string, help: string): Option => new Option(flag, help).argParser(parseText)
  return command
    .addOption(term('--domain <fqdn>', 'addresses at this domain'))
    .addOption(term('--auth-domain <fqdn>', 'logins at this site'))
    .addOption(term('--email <address>', 'exactly this address'))
    .addOption(term('--keyword <word>', 'logins with this word before the @'))
    .option('--secret', 'whose secret it is, which is asked for or read from standard input')
}

/** Throws CommandError unless exactly one query is given. */
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

/** The record as the API returns it, with secrets masked unless `reveal`. */
export function credentialRow(
  record: WireCredential,
  { reveal, secrets = [] }: { reveal: true | undefined; secrets?: readonly string[] },
): WireCredential {
  if (reveal) return record
  const known = maskKnown([...secrets, ...(record.hash ? [record.hash] : [])])
  // Known secrets are not masked within timestamps: a year is a common password.
  const hidden = mapTexts(record, (text) => (parseTimestamp(text) === null ? known(text) : text))
  const shown = maskAllSecrets(hidden) as WireCredential
  // Badly parsed dumps hold login and secret in one field.
  const { identity_name } = shown
  return { ...shown, ...(identity_name && { identity_name: maskIdentity(identity_name) }) }
}

type Column = Listing<WireCredential>['columns'][number]

const identityWidth = 40

const secretColumn: Column = { title: 'SECRET', width: 24, text: formatSecret }

/** The table prints a revealed secret on a line of its own, in full. */
export function credentialsListing({ reveal }: RevealOption): Listing<WireCredential> {
  return {
    columns: [
      { title: 'IMPORTED (UTC)', width: 16, text: ({ imported_at }) => shortTime(imported_at) },
      {
        title: 'IDENTITY',
        width: identityWidth,
        text: ({ identity_name }) => identity_name ?? '',
      },
      ...(reveal ? [] : [secretColumn]),
      {
        title: 'SOURCE',
        width: 40,
        text: ({ source, source_id }) => source?.name ?? String(source?.id ?? source_id ?? ''),
      },
    ],
    below: (record) => [...(reveal ? revealedLines(record) : []), ...detailLines(record)],
    json: (record) => record,
    csv: csvKeys,
  }
}

/**
 * Prints the identity too where the table cuts it: badly parsed dumps hold login and secret in one
 * field.
 */
function revealedLines({
  identity_name: identity,
  hash,
  hash_type: type,
}: WireCredential): string[] {
  const isCut = identity && (sanitize(identity) !== identity || identity.length > identityWidth)
  return [
    ...(isCut ? [`identity: ${formatRevealed(identity)}`] : []),
    ...(hash ? [`secret${type ? ` (${sanitize(type)})` : ''}: ${formatRevealed(hash)}`] : []),
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

function formatSecret({ hash, hash_type }: WireCredential): string {
  if (!hash) return '–'
  return hash_type ? `${hash} (${hash_type})` : hash
}

function detailLines(record: WireCredential): string[] {
  const { auth_domains, urls, event_uid, remediated_at, ignored_at } = record
  const sites = urls?.length ? urls : (auth_domains ?? [])
  const notes = [
    ...(sites.length > 0 ? [`logs in at ${sites.join(', ')}`] : []),
    ...(event_uid ? [`in ${event_uid}`] : []),
    ...(remediated_at ? [`remediated ${shortTime(remediated_at)}`] : []),
    ...(ignored_at ? [`ignored ${shortTime(ignored_at)}`] : []),
  ]
  return notes.length === 0 ? [] : [sanitize(notes.join('; '))]
}
