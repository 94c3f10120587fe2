import { Command, Option } from 'commander'
import { systemClock } from '../../../runtime/clock.ts'
import { ServiceError } from '../../../service/service-error.ts'
import type { SearchPage } from '../../../service/operations/search-page.ts'
import { parseTimestamp } from '../../../service/timestamps.ts'
import {
  wireCredential,
  type WireCredential,
  type WireCredentialQuery,
  type WireCredentialSearchBody,
} from '../../../service/wire/credentials.ts'
import { credentialIncludes, orders } from '../../../service/wire/enumerations.ts'
import type { Context } from '../../context.ts'
import { credentialRow, credentialsListing } from './credentials-listing.ts'
import {
  addCredentialQueryOptions,
  readCredentialQuery,
  type CredentialQueryOptions,
} from './credentials-query.ts'
import { askUncertain } from '../name-failure.ts'
import { listOf } from '../option-values.ts'
import { walkMark } from '../page-place.ts'
import { addPagingOptions, printPages, type PagingOptions } from '../print-pages.ts'
import { readRows } from '../read-rows.ts'
import { addRevealOption, type RevealOption } from '../reveal.ts'
import {
  addServiceOptions,
  withClient,
  type OpenService,
  type ServiceOptions,
} from '../service-command.ts'
import { addSpanOptions, rangeOf, spanAt, type Span, type SpanOptions } from '../span.ts'
import {
  addSizeOption,
  placeAt,
  wordOfNext,
  type SizeOption,
  type WalkPlace,
} from '../walk-place.ts'

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

/** Latency grows with size until the gateway gives up after some 30 s (facts.md 2.3). */
const smallerSizes = [100, 50, 25, 10]
const usualSize = 100
/** service.md, Credential search. */
const mostOfAPage = 10_000

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
  addSizeOption(command, { usual: usualSize, most: mostOfAPage })
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
        const asked = placeAt(word, options, { usual: usualSize, nowMs })
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

/** Once more: servers before 2026-05-28 heed the times in few searches (facts.md 0). */
function isWithin({ imported_at }: WireCredential, { fromMs, toMs }: Span): boolean {
  const atMs = imported_at ? parseTimestamp(imported_at) : null
  if (atMs === null) return true
  return atMs >= (fromMs ?? -Infinity) && atMs <= (toMs ?? Infinity)
}
