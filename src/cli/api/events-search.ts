/** `events search`: its scopes, its queries and how its results are printed. */
import type { Command } from 'commander'
import { InvalidArgumentError, Option } from 'commander'
import type { EventDetail, ThreatEvent } from '../../event.ts'
import { parseItem } from '../../feed-types/events.ts'
import { systemClock } from '../../lib/clock.ts'
import { maskKnown } from '../../masking/masking.ts'
import { describeEvent, buildHeadline } from '../../messages/headline.ts'
import { cleanLine } from '../../messages/sanitize.ts'
import { formatSeverity } from '../../messages/summary.ts'
import type { Tier } from '../../upstream/config.ts'
import { eventSeverities, orders } from '../../upstream/resources/enumerations.ts'
import {
  eventOperations,
  type GroupSearchBody,
  wireSearchItem,
  type WireSearchItem,
} from '../../upstream/resources/events.ts'
import {
  type Fields,
  type Operation,
  type SearchPage,
  secretTexts,
} from '../../upstream/resources/operation.ts'
import type { Context } from '../context.ts'
import {
  addPeriodOptions,
  listParser,
  parseList,
  parseWord,
  wordsOption,
  toRangeFilter,
  resolvePeriod,
  type PeriodOptions,
} from '../options.ts'
import { CommandError, sanitize } from '../terminal.ts'
import { callRow, type ApiContext, parseId } from './api-command.ts'
import { columnsOf } from './fields.ts'
import {
  type Column,
  type Listing,
  parseRows,
  formatRevealed,
  severityStyle,
  shortTime,
} from './listing.ts'
import { maskItem } from './masks.ts'
import { listCommand, type ListOptions, type ScanPosition } from './pages.ts'
import { addQueryOptions, eventTerms, type QueryOptions, readQuery } from './queries.ts'

interface EventsSearchOptions extends ListOptions, PeriodOptions, QueryOptions {
  group?: number
  identifier?: number
  tenant?: true
  severity?: NonNullable<GroupSearchBody['filters']>['severity']
  type?: string[]
  tag?: string[]
  ignored?: true
  remediated?: true
  order: 'asc' | 'desc'
}

/** The largest page that the API returns (docs/api-notes.md, Page sizes). */
const pageSize = 10

export function eventsSearchCommand(context: Context): Command {
  return listCommand(context, {
    name: 'events search',
    description:
      'search all events (costs quota), or those that the tenant watches for (costs none)',
    options: addSearchOptions,
    pageSize: { usual: pageSize, most: pageSize },
    reveal: true,
    async ask(options: EventsSearchOptions) {
      resolvePeriod(options, systemClock.now()) // said before a secret is asked for
      const scope = chooseScope(options)
      const query = await readQuery(context, eventTerms, options)
      if (query === undefined && scope.row === eventOperations.searchGlobal) {
        throw new CommandError('mistake', `a search needs something to look for; ${scopeRemedy}`)
      }
      return { ...scope, query }
    },
    scan: ({ row, place, query }, options) => {
      const { since, until, severity, type, tag, ignored, remediated, order } = options
      const filters = { since, until, severity, type, tag, ignored, remediated }
      return { name: row.name, place, query, filters, order }
    },
    listing: ({ reveal = false }, { row }) =>
      eventsListing(context, row !== eventOperations.searchGlobal, reveal),
    async fetch({ options, asked: { row, place, query }, position, ...api }) {
      const { client, callOptions } = api
      const request = { ...place, ...toSearchBody(options, position), ...(query && { query }) }
      const tier = findTier(api, row, place)
      const paced = { client, callOptions: () => ({ ...callOptions(), ...tier }) }
      const { page, searchesRemaining } = await callRow(paced, row as SearchRow, request)
      const items = parseRows(context, wireSearchItem, page.items)
      const shown = { reveal: options.reveal ?? false, secrets: secretTexts(query) }
      const rows = items.map((item) => eventRow(item, shown))
      return { rows, next: page.next, searchesRemaining }
    },
  })
}

const scopeRemedy =
  'name it, e.g. by --domain example.com, or a place by --tenant, --group 1042 or --identifier 77'

function addSearchOptions(command: Command): Command {
  command
    .addOption(new Option('--group <id>', 'of this identifier group').argParser(parseId))
    .addOption(new Option('--identifier <id>', 'of this identifier').argParser(parseId))
    .option('--tenant', 'of all identifiers of the tenant')
  addQueryOptions(command, eventTerms)
    .addOption(
      wordsOption(
        '--severity <words>',
        'high: this or higher; high,critical: exactly these; "high,": exactly this',
        eventSeverities,
        parseSeverity,
      ),
    )
    .addOption(new Option('--type <types>', 'of these types, such as a,b').argParser(parseList))
  return addPeriodOptions(command, 'created')
    .addOption(new Option('--tag <tags>', 'with one of these tags').argParser(parseList))
    .option('--ignored', 'only what was ignored')
    .option('--remediated', 'only what was remediated')
    .addOption(new Option('--order <order>', 'by creation').choices(orders).default('desc'))
}

function parseSeverity(text: string): NonNullable<EventsSearchOptions['severity']> {
  if (!text.includes(',')) return parseWord(eventSeverities, text.trim().toLowerCase())
  const listed = text.trim().replace(/,$/, '')
  if (listed === '') throw new InvalidArgumentError('Write a severity, such as high.')
  return listParser(eventSeverities)(listed.toLowerCase())
}

type SearchRow = Operation<Fields, SearchPage>

/** What is searched: everything, or only what the tenant watches for. */
function chooseScope({ group, identifier, tenant }: EventsSearchOptions): {
  row: Operation
  place: Fields
} {
  const { searchGroup, searchIdentifier, searchTenant, searchGlobal } = eventOperations
  const scopes = [
    ...(group
      ? [{ flag: '--group', row: searchGroup, place: { identifier_group_id: group } }]
      : []),
    ...(identifier
      ? [{ flag: '--identifier', row: searchIdentifier, place: { identifier_id: identifier } }]
      : []),
    ...(tenant ? [{ flag: '--tenant', row: searchTenant, place: {} }] : []),
  ]
  const [only = { row: searchGlobal, place: {} }, ...others] = scopes
  if (others.length === 0) return only as { row: Operation; place: Fields }
  const flags = scopes.map(({ flag }) => flag).join(' and ')
  throw new CommandError('mistake', `${flags} are different places; choose one of them`)
}

function toSearchBody(
  options: EventsSearchOptions,
  { asOfMs, size, cursor }: ScanPosition,
): Omit<GroupSearchBody, 'query'> {
  const { severity, type, tag, ignored, remediated, order } = options
  const created = toRangeFilter(resolvePeriod(options, asOfMs))
  return {
    filters: {
      ...(severity !== undefined && { severity }),
      ...(type && { type }),
      ...(created && { estimated_created_at: created }),
      ...(tag && { tags: tag }),
      ...(ignored && { is_ignored: true }),
      ...(remediated && { is_remediated: true }),
    },
    size,
    order,
    ...(cursor !== null && { from: cursor }),
  }
}

/** The tier that limits the feed of the same place; `search`, the default, when no feed reads it. */
function findTier({ config, account }: ApiContext, row: Operation, place: Fields): { tier?: Tier } {
  if (row === eventOperations.searchGlobal) return {}
  const feed = config.feeds.find(
    (one) =>
      one.type === 'events' &&
      one.account === account &&
      one.identifierGroup === place['identifier_group_id'],
  )
  return { tier: feed?.tier ?? 'search' }
}

interface EventRow {
  /** As the API returns it, secrets masked unless revealed. */
  item: WireSearchItem
  severity: string
  /** null: only the uid is known. */
  title: string | null
}

function eventRow(
  received: WireSearchItem,
  { reveal, secrets }: { reveal: boolean; secrets: readonly string[] },
): EventRow {
  const parsed = parseItem(received)
  const title = parsed.ok ? eventTitle(parsed.event, null) : null
  return {
    item: reveal ? received : maskItem(received, secrets),
    severity: parsed.ok ? parsed.event.severity : (received.metadata.severity ?? 'unknown'),
    title: title && maskKnown(secrets)(title),
  }
}

function eventsListing(
  { terminal }: Context,
  hasIdentifiers: boolean,
  reveal: boolean,
): Listing<EventRow> {
  const identifiers: Column<EventRow> = {
    title: 'IDENTIFIERS',
    width: 24,
    text: ({ item }) => (item.identifiers ?? []).map(({ name }) => name).join(', '),
  }
  return {
    columns: [
      {
        title: 'SEVERITY',
        width: 8,
        text: ({ severity }) => formatSeverity(severity),
        style: ({ severity }) => severityStyle(severity),
      },
      {
        title: 'CREATED (UTC)',
        width: 16,
        text: ({ item }) => shortTime(item.metadata.estimated_created_at),
      },
      { title: 'TYPE', width: 20, text: ({ item }) => item.metadata.type ?? '' },
      ...(hasIdentifiers ? [identifiers] : []),
      { title: 'EVENT', width: 80, text: ({ item, title }) => title ?? item.metadata.uid },
    ],
    below: ({ item, title }) => [
      ...highlightLines(item.highlights, reveal),
      ...(title === null ? [] : [terminal.paint('dim', sanitize(item.metadata.uid, 600))]),
    ],
    json: ({ item }) => item,
    csv: columnsOf(wireSearchItem).map(({ name }) => name),
  }
}

const markTag = /<\/?mark(?:\s[^<>]{0,200})?>/giu

/** The beginnings of two extracts; when revealed all, in full: a secret may stand anywhere in them. */
function highlightLines(highlights: WireSearchItem['highlights'], reveal: boolean): string[] {
  const lines = Object.entries(highlights ?? {}).flatMap(([field, texts]) =>
    texts.map((marked) => {
      const text = marked.replaceAll(markTag, '')
      return `${sanitize(field, 60)}: ${reveal ? formatRevealed(text) : sanitize(text, 140)}`
    }),
  )
  return reveal ? lines : lines.slice(0, 2)
}

/** The headline of an event's message, not defanged; null when only the uid is known. */
export function eventTitle(event: ThreatEvent, detail: EventDetail | null): string | null {
  const subject = { feed: '', event, detail: detail ?? undefined }
  const title = buildHeadline(describeEvent(subject), { maxLength: 150, clean: cleanLine })
  return title === event.uid ? null : title
}
