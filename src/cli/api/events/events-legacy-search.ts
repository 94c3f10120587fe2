/** `events legacy-search`: the search of v2, with all of its parameters. */
import type { Command } from 'commander'
import { InvalidArgumentError, Option } from 'commander'
import { z } from 'zod'
import { severities } from '../../../event.ts'
import { systemClock } from '../../../lib/clock.ts'
import { isTimeZone } from '../../../lib/time-zone.ts'
import { type Fields, readFields } from '../../../messages/description.ts'
import { formatSeverity } from '../../../messages/summary.ts'
import {
  legacyEventActions,
  legacySortKeys,
  type LegacyType,
  legacyTypes,
  orders,
} from '../../../upstream/resources/enumerations.ts'
import type { LegacySearchRequest } from '../../../upstream/resources/legacy-search.ts'
import type { Context } from '../../context.ts'
import {
  addPeriodOptions,
  wordsOption,
  parseList,
  resolvePeriod,
  type PeriodOptions,
  parseText,
} from '../../options.ts'
import { CommandError, pluralize, sanitize } from '../../terminal.ts'
import { type Listing, maskAllSecrets, parseRows, severityStyle, shortTime } from '../listing.ts'
import { listCommand, type ListOptions } from '../pages.ts'

interface LegacySearchOptions extends ListOptions, PeriodOptions, LegacyOptions {}

const defaultPageSize = 10
/** No maximum is published (docs/api-notes.md, Page sizes); this one only catches typing errors. */
const maxPageSize = 10_000

const anyItem = z.record(z.string(), z.unknown())

export function eventsLegacySearchCommand(context: Context): Command {
  let isCountPrinted = false
  return listCommand(context, {
    name: 'events legacy-search',
    description:
      'the search of v2, which the service has deprecated (costs quota); events search replaces it',
    options: addLegacyOptions,
    pageSize: { usual: defaultPageSize, most: maxPageSize, mostInWords: '1 or more' },
    reveal: true,
    ask(options: LegacySearchOptions) {
      toTimeFilter(options, systemClock.now()) // said before anything is opened
      context.terminal.printError(
        'this search is deprecated by the service; use "tocsin events search --query" where it will do',
      )
    },
    scan: (_asked, { since, until, ...options }) => ({ ...toFilters(options), since, until }),
    listing: () => legacyListing(context),
    async fetch({ client, callOptions, options, position }) {
      const parameters = toParameters(options, position)
      const method = options.method === 'get' ? 'GET' : 'POST'
      const request = { parameters, from: position.cursor, method } as const
      const found = await client.legacySearch({ ...request, ...callOptions() })
      if (found.hits !== undefined && !isCountPrinted) {
        context.terminal.printError(`${pluralize(found.hits, 'event')} found in all`)
      }
      isCountPrinted = true
      const items = parseRows(context, anyItem, found.page.items)
      return {
        rows: items.map((item) => legacyRow(item, options.reveal ?? false)),
        next: found.page.next,
        searchesRemaining: found.searchesRemaining,
      }
    },
  })
}

function toParameters(
  options: LegacySearchOptions,
  { asOfMs, size }: { asOfMs: number; size: number },
): LegacySearchRequest['parameters'] {
  const time = toTimeFilter(options, asOfMs)
  return { size, ...(time !== undefined && { time }), ...toFilters(options) }
}

function toFilters(options: LegacySearchOptions): LegacySearchRequest['parameters'] {
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

/**
 * Formats `from@to`. Throws CommandError for `--until` alone: this search takes no range without a
 * beginning.
 */
function toTimeFilter(options: PeriodOptions, asOfMs: number): string | undefined {
  const { fromMs, toMs = asOfMs } = resolvePeriod(options, asOfMs)
  if (fromMs !== undefined) {
    return `${new Date(fromMs).toISOString()}@${new Date(toMs).toISOString()}`
  }
  if (options.until === undefined) return undefined
  throw new CommandError('mistake', '--until needs --since in this search; name both')
}

interface LegacyOptions {
  query?: string
  type?: LegacyType[]
  experimentalType?: string[]
  risk?: number[]
  tag?: string[]
  tagsOperator?: string
  action?: (typeof legacyEventActions)[number]
  actions?: string[]
  hasNotes?: true
  hasModifiedRisk?: true
  globalPolicies: boolean
  fields?: string[]
  timeZone?: string
  sortBy: (typeof legacySortKeys)[number]
  order: (typeof orders)[number]
  method: 'get' | 'post'
}

function addLegacyOptions(command: Command): Command {
  command
    .addOption(new Option('--query <lucene>', "a query in Lucene's syntax").argParser(parseText))
    .addOption(
      wordsOption(
        '--type <types>',
        'of these types or groups of types, such as leaks,paste',
        legacyTypes,
      ),
    )
    .addOption(
      new Option('--experimental-type <types>', 'of these experimental types').argParser(parseList),
    )
    .addOption(
      new Option('--risk <scores>', 'of these risks, 1 (info) to 5 (critical): 4,5').argParser(
        parseRisks,
      ),
    )
    .addOption(new Option('--tag <tags>', 'with these tags').argParser(parseList))
    .addOption(
      new Option('--tags-operator <word>', 'how several tags count, such as AND or OR').argParser(
        parseText,
      ),
    )
  addPeriodOptions(command, 'dated')
  return addActionOptions(command)
}

function addActionOptions(command: Command): Command {
  return command
    .addOption(new Option('--action <word>', 'what was done about it').choices(legacyEventActions))
    .addOption(wordsOption('--actions <words>', 'several of these', legacyEventActions))
    .option('--has-notes', 'only what has notes')
    .option('--has-modified-risk', 'only what was given another risk')
    .option('--no-global-policies', 'whatever the policies of all identifiers leave out')
    .addOption(
      new Option('--fields <paths>', 'only these fields, by their dotted paths').argParser(
        parseList,
      ),
    )
    .addOption(
      new Option('--time-zone <name>', 'in which statistics are counted').argParser(parseTimeZone),
    )
    .addOption(
      new Option('--sort-by <key>', 'by which time').choices(legacySortKeys).default('created'),
    )
    .addOption(new Option('--order <order>', 'of that time').choices(orders).default('desc'))
    .addOption(
      new Option('--method <method>', 'how it is asked').choices(['get', 'post']).default('post'),
    )
}

function parseRisks(text: string): number[] {
  const risks = parseList(text).map((risk) => (/^[1-5]$/.test(risk) ? Number(risk) : undefined))
  const known = risks.filter((risk) => risk !== undefined)
  if (known.length === risks.length) return known
  throw new InvalidArgumentError(
    'Write numbers from 1 to 5 with a comma between each, such as 4,5.',
  )
}

function parseTimeZone(text: string): string {
  if (isTimeZone(text)) return text
  throw new InvalidArgumentError('Write a name of the zone database, such as Europe/Zurich.')
}

interface LegacyRow {
  /** As the API returns it, secrets masked unless revealed; `fields` may have left out any part. */
  item: Record<string, unknown>
  severity: string
  created: string
  type: string
  title: string
  uid: string
}

/**
 * Makes a row of an item's `metadata`, `header` and `data` (docs/api-notes.md, The older shape).
 */
function legacyRow(received: Record<string, unknown>, reveal: boolean): LegacyRow {
  const item = reveal ? received : maskItem(received)
  const fields = readFields(item, {})
  const uid = fields.text('header.uid', 'metadata.uid', 'uid', 'data.uid') ?? ''
  return {
    item,
    severity: fields.text('metadata.severity') ?? riskSeverity(fields),
    created: shortTime(fields.text('metadata.estimated_created_at', 'header.timestamp')),
    type:
      fields.text('header.type', 'metadata.type', 'type', 'data.type') ?? uid.split('/')[0] ?? '',
    title: fields.text('header.title', 'data.title', 'header.content_preview', 'data.name') ?? uid,
    uid,
  }
}

/** Masks an item except for its uids, by which events are requested. */
function maskItem(received: Record<string, unknown>): Record<string, unknown> {
  const item = maskAllSecrets(received)
  const parts = ['header', 'metadata', 'data'].flatMap((part) => {
    const [shown, whole] = [item[part], received[part]]
    const isThere = isObject(shown) && isObject(whole) && 'uid' in whole
    return isThere ? [[part, { ...shown, uid: whole['uid'] }] as const] : []
  })
  const { uid } = received
  return { ...item, ...(uid !== undefined && { uid }), ...Object.fromEntries(parts) }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function riskSeverity(fields: Fields): string {
  const risk = fields.number('header.risk.score')
  return risk === null ? '' : (severities[risk - 1] ?? String(risk))
}

function legacyListing({ terminal }: Context): Listing<LegacyRow> {
  return {
    columns: [
      {
        title: 'SEVERITY',
        width: 8,
        text: ({ severity }) => formatSeverity(severity),
        style: ({ severity }) => severityStyle(severity),
      },
      { title: 'CREATED (UTC)', width: 16, text: ({ created }) => created },
      { title: 'TYPE', width: 20, text: ({ type }) => type },
      { title: 'EVENT', width: 80, text: ({ title }) => title },
    ],
    below: ({ title, uid }) => (title === uid ? [] : [terminal.paint('dim', sanitize(uid, 600))]),
    json: ({ item }) => item,
    csvFields: ({ item, uid }) => ({ ...item, uid }), // wherever it stands
    csv: [
      'header.uid',
      'header.type',
      'uid',
      'metadata.type',
      'metadata.severity',
      'metadata.estimated_created_at',
      'metadata.matched_at',
      'header.title',
      'header.source',
      'header.timestamp',
      'header.risk.score',
      'metadata',
      'header',
      'data',
    ],
  }
}
