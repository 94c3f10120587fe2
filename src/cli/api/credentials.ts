/** `credentials search`: leaked credentials, with secrets masked unless revealed. */
import { Command, Option } from 'commander'
import { systemClock } from '../../lib/clock.ts'
import { UpstreamError } from '../../upstream/error.ts'
import {
  credentialOperations,
  wireCredential,
  type WireCredential,
  type WireCredentialQuery,
  type WireCredentialSearchBody,
} from '../../upstream/resources/credentials.ts'
import { credentialIncludes, orders } from '../../upstream/resources/enumerations.ts'
import { type SearchPage, secretTexts } from '../../upstream/resources/operation.ts'
import { parseTimestamp } from '../../upstream/timestamps.ts'
import type { Context } from '../context.ts'
import {
  addPeriodOptions,
  wordsOption,
  toRangeFilter,
  type Period,
  resolvePeriod,
  type PeriodOptions,
} from '../options.ts'
import { CommandError, sanitize } from '../terminal.ts'
import { type ApiContext, callRow } from './api-command.ts'
import { type Listing, parseRows, formatRevealed, type RevealOption, shortTime } from './listing.ts'
import { maskCredential } from './masks.ts'
import { listCommand, type ListOptions, type ListRequest, type ScanPosition } from './pages.ts'
import { addQueryOptions, credentialTerms, type QueryOptions, readQuery } from './queries.ts'

export function credentialsCommand(context: Context): Command {
  return new Command('credentials').addCommand(credentialsSearchCommand(context))
}

/** No maximum is published for a page (docs/api-notes.md, Page sizes). */
const maxPageSize = 10_000

interface CredentialsSearchOptions extends ListOptions, PeriodOptions, QueryOptions {
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
      return requireQuery(context, options)
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
  return addPeriodOptions(addQueryOptions(command, credentialTerms), 'imported')
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
  const asked = { request: { query }, secrets: secretTexts(query) }
  const found = await requestInSmallerPages(context, firstPosition, (position) =>
    requestPage(api, { options, query, position }),
  )
  const { page, searchesRemaining, position } = found
  const span = resolvePeriod(options, position.asOfMs)
  const records = parseRows(context, wireCredential, page.items)
  return {
    rows: records
      .filter((record) => isImportedWithin(record, span))
      .map((record) => (options.reveal ? record : maskCredential(record, asked))),
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
  api: ApiContext,
  { options, query, position }: SearchRequest,
): Promise<SearchPage> {
  const imported_at = toRangeFilter(resolvePeriod(options, position.asOfMs))
  const body: WireCredentialSearchBody = {
    query,
    ...(imported_at && { filters: { imported_at } }),
    size: position.size,
    order: options.order,
    include: [...options.include],
    from: position.cursor,
  }
  const { search, searchAstp } = credentialOperations
  return callRow(api, options.withoutQuota ? searchAstp : search, body)
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

/** Throws CommandError unless exactly one query is given. */
async function requireQuery(context: Context, options: QueryOptions): Promise<WireCredentialQuery> {
  const query = await readQuery(context, credentialTerms, options)
  if (query !== undefined) return query
  const kinds = '--domain, --auth-domain, --email, --keyword and --secret'
  throw new CommandError('mistake', `a search is for one thing; give exactly one of ${kinds}`)
}

type Column = Listing<WireCredential>['columns'][number]

const identityWidth = 40

const secretColumn: Column = { title: 'SECRET', width: 24, text: formatSecret }

/** The table prints a revealed secret on a line of its own, in full. */
function credentialsListing({ reveal }: RevealOption): Listing<WireCredential> {
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
