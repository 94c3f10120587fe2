import { Command, InvalidArgumentError, Option } from 'commander'
import type { Config } from '../../../config/config.ts'
import { systemClock } from '../../../runtime/clock.ts'
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
import { nameFailure } from '../name-failure.ts'
import { wholeId } from '../id-values.ts'
import { listOf, listValue, oneOf } from '../option-values.ts'
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
    .description('search all events (costs quota), or those of an identifier group')
    .addOption(new Option('--group <id>', 'of this identifier group').argParser(wholeId))
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
      new Option('--tag <tags>', 'with --group: with one of these tags').argParser(listValue),
    )
    .option('--ignored', 'with --group: only what was ignored')
    .option('--remediated', 'with --group: only what was remediated')
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
  refuseOfGroups(options)
  const target = targetOf(options, await readEventQuery(context, options))
  const { reveal = false, group } = options
  const shown = { reveal, secrets: secretsIn(target.query) }
  await withClient(context, options, (service) =>
    printPages(context, options, {
      listing: eventsListing(context, { hasIdentifiers: group !== undefined, reveal }),
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

function refuseOfGroups(options: EventsSearchOptions): void {
  const { group, tag, ignored, remediated } = options
  if (group !== undefined) return
  const [odd] = [tag && '--tag', ignored && '--ignored', remediated && '--remediated'].filter(
    Boolean,
  )
  if (odd === undefined) return
  throw new CommandError('mistake', `${odd} goes with --group only; name the identifier group`)
}

/** Where and what for: a group needs no query. */
type Target =
  | { groupId: number; query: EventQuery | undefined }
  | { groupId?: never; query: EventQuery }

function targetOf({ group }: EventsSearchOptions, query: EventQuery | undefined): Target {
  if (group !== undefined) return { groupId: group, query }
  if (query !== undefined) return { query }
  const remedy = 'name it, e.g. by --domain example.com, or a group by --group 1042'
  throw new CommandError('mistake', `a search needs something to look for; ${remedy}`)
}

function markOf(service: OpenService, options: EventsSearchOptions, target: Target): string {
  const { since, until, severity, type, tag, ignored, remediated, order } = options
  const filters = { since, until, severity, type, tag, ignored, remediated }
  return walkMark(service, 'events search', { target, filters, order })
}

interface Search {
  options: EventsSearchOptions
  target: Target
  place: WalkPlace
}

async function ask(service: OpenService, { options, target, place }: Search): Promise<SearchPage> {
  const { client, asked, config } = service
  const { groupId, query } = target
  const body = bodyOf(options, place)
  if (groupId === undefined) return client.searchEvents({ body: { ...body, query }, ...asked() })
  const tier = tierOf(config, client.account.name, groupId)
  const request = { groupId, body: { ...body, ...(query && { query }) }, tier }
  return nameFailure(
    `identifier group ${groupId}`,
    client.searchGroupEvents({ ...request, ...asked() }),
  )
}

function bodyOf(options: EventsSearchOptions, place: WalkPlace): Omit<GroupSearchBody, 'query'> {
  const { severity, type, tag, ignored, remediated, order } = options
  const created = rangeOf(spanAt(options, place.asOfMs))
  return {
    filters: {
      ...(severity !== undefined && { severity }),
      ...(type && { type }),
      ...(created && { estimated_created_at: created }),
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
function tierOf({ feeds }: Config, account: string, group: number): Tier {
  const feed = feeds.find(
    (one) => one.type === 'events' && one.account === account && one.identifierGroup === group,
  )
  return feed?.tier ?? 'search'
}

function secretsIn(query: EventQuery | undefined): string[] {
  if (query?.type === 'secret') return [query.secret]
  return query?.type === 'credentials' ? [query.password] : []
}
