/** `events search`: its scopes, its queries and how its results are printed. */
import { type Command, Option } from 'commander'
import type { EventDetail, ThreatEvent } from '../../event.ts'
import { parseItem } from '../../feeds/types/events.ts'
import { systemClock } from '../../lib/clock.ts'
import { describeEvent, buildHeadline } from '../../messages/types/headline.ts'
import { cleanLine } from '../../messages/sanitize.ts'
import { formatSeverity } from '../../messages/summary.ts'
import { eventSeverities } from '../../upstream/resources/enumerations.ts'
import {
  eventOperations,
  type GroupSearchBody,
  type WireSearchItem,
} from '../../upstream/resources/events.ts'
import type { Fields, Operation } from '../../upstream/resources/operation.ts'
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
import { sanitize } from '../terminal.ts'
import { fetchRows } from './api.ts'
import { parseId } from './api-command.ts'
import { type Listing, rowListing, shortTime } from './listing.ts'
import { listCommand, type ListOptions } from './pages.ts'
import { addQueryOptions, eventTerms, type QueryOptions, readQuery } from './queries.ts'

interface EventsSearchOptions extends ListOptions, PeriodOptions, QueryOptions {
  group?: number
  identifier?: number
  tenant?: true
  severity?: NonNullable<GroupSearchBody['filters']>['severity']
  type?: string[]
  tag?: string[]
}

/** The largest page that the API returns (docs/api-notes.md, Page sizes). */
const pageSize = 10

export function eventsSearchCommand(context: Context): Command {
  return listCommand(context, {
    name: 'events search',
    description:
      'search all events (costs quota), or those that the tenant watches for (costs none)',
    options: addSearchOptions,
    pageSize,
    reveal: true,
    async ask(options: EventsSearchOptions) {
      const period = resolvePeriod(options, systemClock.now()) // said before a secret is asked for
      const { severity, type, tag: tags } = options
      const { row, place } = chooseScope(options)
      const ifNone = row.costsQuota ? nothingToSearch : undefined
      const query = await readQuery(context, eventTerms, options, ifNone)
      const estimated_created_at = toRangeFilter(period)
      return { place, query, filters: { severity, type, tags, estimated_created_at } }
    },
    listing: (options) => eventsListing(context, chooseScope(options).row),
    fetch(asking) {
      const { place, query, filters } = asking.asked
      const request = { ...place, query, filters, order: 'desc' }
      return fetchRows<WireSearchItem>(asking, chooseScope(asking.options).row, request)
    },
  })
}

const nothingToSearch =
  'a search needs something to look for; name it, e.g. by --domain example.com, or give --tenant, --group 1042 or --identifier 77'

function addSearchOptions(command: Command): Command {
  command
    .addOption(
      new Option('--group <id>', 'of this identifier group')
        .argParser(parseId)
        .conflicts(['identifier', 'tenant']),
    )
    .addOption(
      new Option('--identifier <id>', 'of this identifier').argParser(parseId).conflicts('tenant'),
    )
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
  return addPeriodOptions(command, 'created').addOption(
    new Option('--tag <tags>', 'with one of these tags').argParser(parseList),
  )
}

function parseSeverity(text: string): NonNullable<EventsSearchOptions['severity']> {
  const words = text.trim().toLowerCase()
  return words.includes(',')
    ? listParser(eventSeverities)(words.replace(/,$/, ''))
    : parseWord(eventSeverities, words)
}

/** What is searched: everything, or only what the tenant watches for. */
function chooseScope({ group, identifier, tenant }: EventsSearchOptions): {
  row: Operation
  place: Fields
} {
  const { searchGroup, searchIdentifier, searchTenant, searchGlobal } = eventOperations
  if (group) return { row: searchGroup as Operation, place: { identifier_group_id: group } }
  if (identifier)
    return { row: searchIdentifier as Operation, place: { identifier_id: identifier } }
  return { row: (tenant ? searchTenant : searchGlobal) as Operation, place: {} }
}

function eventsListing({ terminal }: Context, row: Operation): Listing<WireSearchItem> {
  const columns: Listing<WireSearchItem>['columns'] = [
    { title: 'SEVERITY', text: (item) => formatSeverity(severityOf(item)) },
    { title: 'CREATED (UTC)', text: ({ metadata }) => shortTime(metadata.estimated_created_at) },
    { title: 'TYPE', text: ({ metadata }) => metadata.type ?? '' },
    {
      title: 'IDENTIFIERS',
      text: ({ identifiers }) => (identifiers ?? []).map(({ name }) => name).join(', '),
    },
    { title: 'EVENT', text: (item) => titleOf(item) ?? item.metadata.uid },
  ]
  return {
    ...rowListing(row),
    columns: columns.filter(({ title }) => !row.costsQuota || title !== 'IDENTIFIERS'),
    below: (item) => [
      ...highlightLines(item.highlights),
      ...(titleOf(item) === null ? [] : [terminal.paint('dim', sanitize(item.metadata.uid, 600))]),
    ],
  }
}

function severityOf(item: WireSearchItem): string {
  const parsed = parseItem(item)
  return parsed.ok ? parsed.event.severity : (item.metadata.severity ?? 'unknown')
}

/** null: only the uid is known. */
function titleOf(item: WireSearchItem): string | null {
  const parsed = parseItem(item)
  return parsed.ok ? eventTitle(parsed.event, null) : null
}

const markTag = /<\/?mark(?:\s[^<>]{0,200})?>/giu

/** The beginnings of two extracts. */
function highlightLines(highlights: WireSearchItem['highlights']): string[] {
  const texts = Object.entries(highlights ?? {}).flatMap(([field, marked]) =>
    marked.map((text) => `${sanitize(field, 60)}: ${sanitize(text.replaceAll(markTag, ''), 140)}`),
  )
  return texts.slice(0, 2)
}

/** The headline of an event's message, not defanged; null when only the uid is known. */
export function eventTitle(event: ThreatEvent, detail: EventDetail | null): string | null {
  const subject = { feed: '', event, detail: detail ?? undefined }
  const title = buildHeadline(describeEvent(subject), { maxLength: 150, clean: cleanLine })
  return title === event.uid ? null : title
}
