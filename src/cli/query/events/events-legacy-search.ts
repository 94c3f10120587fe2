/** The legacy search (v2), with every parameter that it has. */
import { Command } from 'commander'
import { z } from 'zod'
import { systemClock } from '../../../runtime/clock.ts'
import type { LegacySearchRequest } from '../../../service/operations/legacy-search.ts'
import { CommandError } from '../../command-error.ts'
import type { Context } from '../../context.ts'
import { counted } from '../../words.ts'
import { addLegacyOptions, type LegacyOptions } from './events-legacy-options.ts'
import { legacyListing, legacyRow } from './events-legacy-listing.ts'
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
import { spanAt, type SpanOptions } from '../span.ts'
import { addSizeOption, placeAt, wordOfNext, type SizeOption } from '../walk-place.ts'

interface LegacySearchOptions
  extends ServiceOptions, PagingOptions, SizeOption, SpanOptions, RevealOption, LegacyOptions {}

const pageSize = 10
/** No maximum is published (service.md, Limits); this one only keeps typing errors out. */
const mostOfAPage = 10_000

const anyItem = z.record(z.string(), z.unknown())

export function eventsLegacySearchCommand(context: Context): Command {
  const command = new Command('legacy-search').description(
    'the search of v2, which the service has deprecated (costs quota); events search replaces it',
  )
  addLegacyOptions(command)
  addSizeOption(command, { usual: pageSize, most: mostOfAPage, mostInWords: '1 or more' })
  addPagingOptions(addRevealOption(command))
  return addServiceOptions(command).action((options: LegacySearchOptions) =>
    legacySearch(context, options),
  )
}

async function legacySearch(context: Context, options: LegacySearchOptions): Promise<void> {
  const nowMs = systemClock.now()
  timeOf(options, nowMs) // said before anything is opened
  context.terminal.complain(
    'this search is deprecated by the service; use "tocsin events search --query" where it will do',
  )
  const method = options.method === 'get' ? 'GET' : 'POST'
  let isTold = false
  await withClient(context, options, (service) =>
    printPages(context, options, {
      listing: legacyListing(context),
      mark: markOf(service, options),
      async fetch(word) {
        const place = placeAt(word, options, { usual: pageSize, nowMs })
        const parameters = parametersOf(options, place)
        const { client, asked } = service
        const request = { parameters, from: place.cursor, method } as const
        const found = await client.legacySearch({ ...request, ...asked() })
        if (found.hits !== undefined && !isTold) {
          context.terminal.complain(`${counted(found.hits, 'event')} found in all`)
        }
        isTold = true
        const items = readRows(context, anyItem, found.page.items)
        return {
          rows: items.map((item) => legacyRow(item, options.reveal ?? false)),
          next: wordOfNext(place, found.page.next),
          searchesRemaining: found.searchesRemaining,
        }
      },
    }),
  )
}

function markOf(service: OpenService, options: LegacySearchOptions): string {
  const { since, until } = options
  return walkMark(service, 'events legacy-search', { ...filtersOf(options), since, until })
}

function parametersOf(
  options: LegacySearchOptions,
  { asOfMs, size }: { asOfMs: number; size: number },
): LegacySearchRequest['parameters'] {
  const time = timeOf(options, asOfMs)
  return { size, ...(time !== undefined && { time }), ...filtersOf(options) }
}

function filtersOf(options: LegacySearchOptions): LegacySearchRequest['parameters'] {
  return {
    order: options.order,
    sort_by: options.sortBy,
    ...(options.query !== undefined && { query: options.query }),
    ...(options.fields && { fields: options.fields }),
    ...(options.tag && { tags: options.tag }),
    ...(options.tagsOperator !== undefined && { tags_query_operator: options.tagsOperator }),
    ...(options.type && { types: options.type }),
    ...(options.experimentalType && { experimental_types: options.experimentalType }),
    ...(options.action !== undefined && { event_action: options.action }),
    ...(options.actions && { event_actions: options.actions }),
    ...(options.risk && { risks: options.risk }),
    ...(!options.globalPolicies && { use_global_policies: false }),
    ...(options.timeZone !== undefined && { time_zone: options.timeZone }),
    ...(options.hasModifiedRisk && { has_modified_risk_score: true }),
    ...(options.hasNotes && { has_notes: true }),
  }
}

/** `from@to`: this search takes no span that is open at its beginning. */
function timeOf(options: SpanOptions, asOfMs: number): string | undefined {
  const { fromMs, toMs = asOfMs } = spanAt(options, asOfMs)
  if (fromMs !== undefined) {
    return `${new Date(fromMs).toISOString()}@${new Date(toMs).toISOString()}`
  }
  if (options.until === undefined) return undefined
  throw new CommandError('mistake', '--until needs --since in this search; name both')
}
