import { Command, InvalidArgumentError, Option } from 'commander'
import type { Config } from '../../../config/config.ts'
import { systemClock } from '../../../runtime/clock.ts'
import { isUnknownPath } from '../../../service/capabilities.ts'
import type { ServiceClient } from '../../../service/client.ts'
import type { Tier } from '../../../service/config.ts'
import type { SearchPage } from '../../../service/operations/search-page.ts'
import { eventSeverities, orders } from '../../../service/wire/enumerations.ts'
import {
  wireSearchItem,
  type EventQuery,
  type GroupSearchBody,
} from '../../../service/wire/events.ts'
import { CommandError } from '../../command-error.ts'
import type { Context } from '../../context.ts'
import { eventRow, eventsListing } from './events-listing.ts'
import { addEventQueryOptions, readEventQuery, type EventQueryOptions } from './events-query.ts'
import { askUncertain, nameFailure } from '../name-failure.ts'
import { wholeId } from '../id-values.ts'
import { listOf, listValue, momentValue, oneOf } from '../option-values.ts'
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
import { addSpanOptions, rangeOf, spanAt, type SpanOptions } from '../span.ts'
import {
  addSizeOption,
  placeAt,
  wordOfNext,
  type SizeOption,
  type WalkPlace,
} from '../walk-place.ts'

interface EventsSearchOptions
  extends ServiceOptions, PagingOptions, SizeOption, SpanOptions, RevealOption, EventQueryOptions {
  group?: number
  identifier?: number
  tenant?: true
  matchedSince?: string
  matchedUntil?: string
  severity?: NonNullable<GroupSearchBody['filters']>['severity']
  type?: string[]
  tag?: string[]
  ignored?: true
  remediated?: true
  order: 'asc' | 'desc'
}

/** At most 10 (service.md, Limits). */
const pageSize = 10

export function eventsSearchCommand(context: Context): Command {
  const command = new Command('search')
    .description(
      'search all events (costs quota), or those that the tenant watches for (costs none)',
    )
    .addOption(new Option('--group <id>', 'of this identifier group').argParser(wholeId))
    .addOption(new Option('--identifier <id>', 'of this identifier').argParser(wholeId))
    .option('--tenant', 'of all identifiers of the tenant')
  addEventQueryOptions(command)
    .addOption(
      new Option(
        '--severity <words>',
        'high: this or higher; high,critical: exactly these; "high,": exactly this',
      ).argParser(severityValue),
    )
    .addOption(new Option('--type <types>', 'of these types, such as a,b').argParser(listValue))
  addSpanOptions(command, 'created')
    .addOption(
      new Option('--matched-since <time>', 'matched then or later, whenever created').argParser(
        momentValue,
      ),
    )
    .addOption(
      new Option('--matched-until <time>', 'matched then or before').argParser(momentValue),
    )
    .addOption(new Option('--tag <tags>', 'with one of these tags').argParser(listValue))
    .option('--ignored', 'only what was ignored')
    .option('--remediated', 'only what was remediated')
    .addOption(new Option('--order <order>', 'by creation').choices(orders).default('desc'))
  addSizeOption(command, { usual: pageSize, most: pageSize })
  addPagingOptions(addRevealOption(command))
  return addServiceOptions(command).action((options: EventsSearchOptions) =>
    searchEvents(context, options),
  )
}

function severityValue(text: string): NonNullable<EventsSearchOptions['severity']> {
  if (!text.includes(',')) return oneOf(eventSeverities, text.trim().toLowerCase())
  const listed = text.trim().replace(/,$/, '')
  if (listed === '') throw new InvalidArgumentError('Write a severity, such as high.')
  return listOf(eventSeverities)(listed.toLowerCase())
}

async function searchEvents(context: Context, options: EventsSearchOptions): Promise<void> {
  const nowMs = systemClock.now()
  spanAt(options, nowMs) // said before anything is opened or a secret asked for
  matchedAt(options, nowMs)
  const place = placeOf(options)
  const target = targetOf(place, await readEventQuery(context, options))
  const { reveal = false } = options
  const shown = { reveal, secrets: secretsIn(target.query) }
  await withClient(context, options, (service) =>
    printPages(context, options, {
      listing: eventsListing(context, { hasIdentifiers: place.kind !== 'everywhere', reveal }),
      mark: markOf(service, options, target),
      async fetch(word) {
        const place = placeAt(word, options, { usual: pageSize, nowMs })
        const { page, searchesRemaining } = await ask(service, { options, target, place })
        const items = readRows(context, wireSearchItem, page.items)
        return {
          rows: items.map((item) => eventRow(item, shown)),
          next: wordOfNext(place, page.next),
          searchesRemaining,
        }
      },
    }),
  )
}

/** Where is searched: in everything, or in what the tenant watches for. */
type SearchedPlace =
  | { kind: 'everywhere' | 'tenant' }
  | { kind: 'group' | 'identifier'; id: number }

function placeOf({ group, identifier, tenant }: EventsSearchOptions): SearchedPlace {
  const places: SearchedPlace[] = [
    ...(group === undefined ? [] : [{ kind: 'group' as const, id: group }]),
    ...(identifier === undefined ? [] : [{ kind: 'identifier' as const, id: identifier }]),
    ...(tenant ? [{ kind: 'tenant' as const }] : []),
  ]
  if (places.length <= 1) return places[0] ?? { kind: 'everywhere' }
  const flags = places.map(({ kind }) => `--${kind}`).join(' and ')
  throw new CommandError('mistake', `${flags} are different places; choose one of them`)
}

/** Where and what for: only everything needs a query. */
type Target =
  | { kind: 'tenant'; query: EventQuery | undefined }
  | { kind: 'group' | 'identifier'; id: number; query: EventQuery | undefined }
  | { kind: 'everywhere'; query: EventQuery }

function targetOf(place: SearchedPlace, query: EventQuery | undefined): Target {
  if (place.kind !== 'everywhere') return { ...place, query } as Target
  if (query !== undefined) return { kind: 'everywhere', query }
  const remedy =
    'name it, e.g. by --domain example.com, or a place by --tenant, --group 1042 or --identifier 77'
  throw new CommandError('mistake', `a search needs something to look for; ${remedy}`)
}

function matchedAt(
  { matchedSince, matchedUntil }: EventsSearchOptions,
  asOfMs: number,
): ReturnType<typeof spanAt> {
  return spanAt(
    {
      ...(matchedSince !== undefined && { since: matchedSince }),
      ...(matchedUntil !== undefined && { until: matchedUntil }),
    },
    asOfMs,
  )
}

function markOf(service: OpenService, options: EventsSearchOptions, target: Target): string {
  const { since, until, severity, type, tag, ignored, remediated, order } = options
  const { matchedSince, matchedUntil } = options
  const filters = { since, until, severity, type, tag, ignored, remediated }
  const matched = { ...(matchedSince && { matchedSince }), ...(matchedUntil && { matchedUntil }) }
  return walkMark(service, 'events search', { target, filters: { ...filters, ...matched }, order })
}

interface Search {
  options: EventsSearchOptions
  target: Target
  place: WalkPlace
}

async function ask(service: OpenService, { options, target, place }: Search): Promise<SearchPage> {
  const { client, asked, config } = service
  const body = bodyOf(options, place)
  if (target.kind === 'everywhere') {
    return client.searchEvents({ body: { ...body, query: target.query }, ...asked() })
  }
  const tier = tierOf(config, client.account.name, target)
  const { query } = target
  const request = { body: { ...body, ...(query && { query }) }, tier, ...asked() }
  switch (target.kind) {
    case 'tenant':
      return askUncertain(client, tenantSearch, client.searchTenantEvents(request))
    case 'group':
      return nameFailure(
        `identifier group ${target.id}`,
        client.searchGroupEvents({ groupId: target.id, ...request }),
      )
    case 'identifier':
      return searchIdentifier(client, target.id, request)
  }
}

const instead = 'search in its groups by --group'

const tenantSearch = {
  capability: 'events/tenant', // as feeds name it: what a command finds out lets them go on
  operation: "the search in the tenant's events",
  permission: 'to read its events',
  instead,
}

/** A 403 or 404 about the identifier is not about the operation. */
async function searchIdentifier(
  client: ServiceClient,
  identifier: number,
  request: Omit<Parameters<ServiceClient['searchIdentifierEvents']>[0], 'identifier'>,
): Promise<SearchPage> {
  try {
    return await client.searchIdentifierEvents({ identifier, ...request })
  } catch (error) {
    if (!isUnknownPath(error)) return nameFailure(`identifier ${identifier}`, Promise.reject(error))
    const operation = 'the search in an identifier'
    const capability = `events/identifiers/${identifier}`
    const uncertain = { ...tenantSearch, capability, operation }
    return askUncertain(client, uncertain, Promise.reject(error))
  }
}

function bodyOf(options: EventsSearchOptions, place: WalkPlace): Omit<GroupSearchBody, 'query'> {
  const { severity, type, tag, ignored, remediated, order } = options
  const created = rangeOf(spanAt(options, place.asOfMs))
  const matched = rangeOf(matchedAt(options, place.asOfMs))
  return {
    filters: {
      ...(severity !== undefined && { severity }),
      ...(type && { type }),
      ...(created && { estimated_created_at: created }),
      ...(matched && { materialized_at: matched }),
      ...(tag && { tags: tag }),
      ...(ignored && { is_ignored: true }),
      ...(remediated && { is_remediated: true }),
    },
    size: place.size,
    order,
    ...(place.cursor !== null && { from: place.cursor }),
  }
}

/** As the feed counts that reads the group; the configuration's default where none does. */
function tierOf({ feeds }: Config, account: string, target: Target): Tier {
  const group = target.kind === 'group' ? target.id : undefined
  const feed = feeds.find(
    (one) => one.type === 'events' && one.account === account && one.identifierGroup === group,
  )
  return feed?.tier ?? 'search'
}

function secretsIn(query: EventQuery | undefined): string[] {
  if (query?.type === 'secret') return [query.secret]
  return query?.type === 'credentials' ? [query.password] : []
}
