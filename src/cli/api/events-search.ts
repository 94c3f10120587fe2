/** `events search`: its scopes, its queries and how its results are printed. */
import type { Command } from 'commander'
import { InvalidArgumentError, Option } from 'commander'
import type { Config } from '../../config/config.ts'
import type { EventDetail, ThreatEvent } from '../../event.ts'
import { parseItem } from '../../feed-types/events.ts'
import { systemClock } from '../../lib/clock.ts'
import { maskKnown } from '../../masking/masking.ts'
import { describeEvent, buildHeadline } from '../../messages/message.ts'
import { cleanLine } from '../../messages/sanitize.ts'
import { formatSeverity } from '../../messages/summary.ts'
import type { Tier } from '../../upstream/config.ts'
import { eventSeverities, orders } from '../../upstream/resources/enumerations.ts'
import {
  eventOperations,
  type EventQuery,
  type GroupSearchBody,
  wireSearchItem,
  type WireSearchItem,
} from '../../upstream/resources/events.ts'
import { type SearchPage, secretTexts } from '../../upstream/resources/operation.ts'
import type { Context } from '../context.ts'
import {
  addPeriodOptions,
  listParser,
  parseList,
  checkPastTime,
  parseWord,
  wordsOption,
  toRangeFilter,
  resolvePeriod,
  type PeriodOptions,
  parseText,
} from '../options.ts'
import { CommandError, sanitize, type Terminal } from '../terminal.ts'
import { callRow, type ApiContext, readSecret, parseId } from './api-command.ts'
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
  strict?: true
  credentials?: string
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
      const nowMs = systemClock.now()
      resolvePeriod(options, nowMs) // said before anything is opened or a secret asked for
      resolveMatchedPeriod(options, nowMs)
      const scope = chooseScope(options)
      return toTarget(scope, await readEventQuery(context, options))
    },
    scan: (target, options) => ({ target, ...toScan(options) }),
    listing: ({ reveal = false }, { kind }) =>
      eventsListing(context, { hasIdentifiers: kind !== 'everywhere', reveal }),
    async fetch({ options, asked: target, position, ...api }) {
      const { page, searchesRemaining } = await requestPage(api, { options, target, position })
      const items = parseRows(context, wireSearchItem, page.items)
      const shown = { reveal: options.reveal ?? false, secrets: secretTexts(target.query) }
      const rows = items.map((item) => eventRow(item, shown))
      return { rows, next: page.next, searchesRemaining }
    },
  })
}

function addSearchOptions(command: Command): Command {
  command
    .addOption(new Option('--group <id>', 'of this identifier group').argParser(parseId))
    .addOption(new Option('--identifier <id>', 'of this identifier').argParser(parseId))
    .option('--tenant', 'of all identifiers of the tenant')
  const credentials = 'the login, with a password that is asked for or read from standard input'
  addQueryOptions(command, eventTerms)
    .option('--strict', 'with --name: the name exactly as it is written')
    .addOption(new Option('--credentials <username>', credentials).argParser(parseText))
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
    .addOption(
      new Option('--matched-since <time>', 'matched then or later, whenever created').argParser(
        checkPastTime,
      ),
    )
    .addOption(
      new Option('--matched-until <time>', 'matched then or before').argParser(checkPastTime),
    )
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

/** What is searched: everything, or only what the tenant watches for. */
type SearchScope = { kind: 'everywhere' | 'tenant' } | { kind: 'group' | 'identifier'; id: number }

function chooseScope({ group, identifier, tenant }: EventsSearchOptions): SearchScope {
  const scopes: SearchScope[] = [
    ...(group === undefined ? [] : [{ kind: 'group' as const, id: group }]),
    ...(identifier === undefined ? [] : [{ kind: 'identifier' as const, id: identifier }]),
    ...(tenant ? [{ kind: 'tenant' as const }] : []),
  ]
  if (scopes.length <= 1) return scopes[0] ?? { kind: 'everywhere' }
  const flags = scopes.map(({ kind }) => `--${kind}`).join(' and ')
  throw new CommandError('mistake', `${flags} are different places; choose one of them`)
}

/** Scope and query; only a search of everything needs a query. */
type SearchTarget =
  | { kind: 'tenant'; query: EventQuery | undefined }
  | { kind: 'group' | 'identifier'; id: number; query: EventQuery | undefined }
  | { kind: 'everywhere'; query: EventQuery }

function toTarget(scope: SearchScope, query: EventQuery | undefined): SearchTarget {
  if (scope.kind !== 'everywhere') return { ...scope, query } as SearchTarget
  if (query !== undefined) return { kind: 'everywhere', query }
  const remedy =
    'name it, e.g. by --domain example.com, or a place by --tenant, --group 1042 or --identifier 77'
  throw new CommandError('mistake', `a search needs something to look for; ${remedy}`)
}

function resolveMatchedPeriod(
  { matchedSince, matchedUntil }: EventsSearchOptions,
  asOfMs: number,
): ReturnType<typeof resolvePeriod> {
  return resolvePeriod(
    {
      ...(matchedSince !== undefined && { since: matchedSince }),
      ...(matchedUntil !== undefined && { until: matchedUntil }),
    },
    asOfMs,
  )
}

function toScan(options: EventsSearchOptions): object {
  const { since, until, severity, type, tag, ignored, remediated, order } = options
  const { matchedSince, matchedUntil } = options
  const filters = { since, until, severity, type, tag, ignored, remediated }
  const matched = { ...(matchedSince && { matchedSince }), ...(matchedUntil && { matchedUntil }) }
  return { filters: { ...filters, ...matched }, order }
}

interface SearchRequest {
  options: EventsSearchOptions
  target: SearchTarget
  position: ScanPosition
}

function requestPage(
  api: ApiContext,
  { options, target, position }: SearchRequest,
): Promise<SearchPage> {
  const { client, callOptions, config } = api
  const body = toSearchBody(options, position)
  if (target.kind === 'everywhere') {
    return callRow(api, eventOperations.searchGlobal, { ...body, query: target.query })
  }
  const { query } = target
  const request = { ...body, ...(query && { query }) }
  const tier = findTier(config, client.account.name, target)
  const paced = { client, callOptions: () => ({ ...callOptions(), tier }) }
  switch (target.kind) {
    case 'tenant':
      return callRow(paced, eventOperations.searchTenant, request)
    case 'group':
      return callRow(paced, eventOperations.searchGroup, {
        identifier_group_id: target.id,
        ...request,
      })
    case 'identifier':
      return callRow(paced, eventOperations.searchIdentifier, {
        identifier_id: target.id,
        ...request,
      })
  }
}

function toSearchBody(
  options: EventsSearchOptions,
  position: ScanPosition,
): Omit<GroupSearchBody, 'query'> {
  const { severity, type, tag, ignored, remediated, order } = options
  const created = toRangeFilter(resolvePeriod(options, position.asOfMs))
  const matched = toRangeFilter(resolveMatchedPeriod(options, position.asOfMs))
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
    size: position.size,
    order,
    ...(position.cursor !== null && { from: position.cursor }),
  }
}

/** The tier that limits the group's feed; `search`, the default, when no feed reads it. */
function findTier({ feeds }: Config, account: string, target: SearchTarget): Tier {
  const group = target.kind === 'group' ? target.id : undefined
  const feed = feeds.find(
    (one) => one.type === 'events' && one.account === account && one.identifierGroup === group,
  )
  return feed?.tier ?? 'search'
}

/** Returns undefined when no query is given. Throws CommandError for more than one. */
async function readEventQuery(
  context: Context,
  options: EventsSearchOptions,
): Promise<EventQuery | undefined> {
  const { strict, credentials } = options
  const more = credentials === undefined ? [] : ['--credentials']
  const query = await readQuery(context, eventTerms, options, more)
  if (strict && query?.type !== 'name') {
    throw new CommandError('mistake', '--strict goes with --name only; leave it out')
  }
  if (query?.type === 'name') return { ...query, is_strict: strict === true }
  if (credentials === undefined) return query
  const password = await readSecret(context, 'password')
  return { type: 'credentials', username: credentials, password }
}

interface EventRow {
  /** As the API returns it, secrets masked unless revealed. */
  item: WireSearchItem
  /** The highlights with their mark tags. */
  received: WireSearchItem['highlights']
  severity: string
  /** null: only the uid is known. */
  title: string | null
}

function eventRow(
  received: WireSearchItem,
  { reveal, secrets }: { reveal: boolean; secrets: readonly string[] },
): EventRow {
  const item = reveal ? received : maskItem(received, secrets)
  const parsed = parseItem(received)
  return {
    item,
    received: received.highlights,
    severity: parsed.ok ? parsed.event.severity : (received.metadata.severity ?? 'unknown'),
    title: parsed.ok ? maskedTitle(parsed.event, secrets) : null,
  }
}

function maskedTitle(event: ThreatEvent, secrets: readonly string[]): string | null {
  const title = eventTitle(event, null)
  return title === null ? null : maskKnown(secrets)(title)
}

function eventsListing(
  { terminal }: Context,
  { hasIdentifiers, reveal }: { hasIdentifiers: boolean; reveal: boolean },
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
    below: ({ item, received, title }) => [
      ...(reveal
        ? revealedHighlights(item.highlights)
        : highlightLines(terminal, received, item.highlights)),
      ...(title === null ? [] : [terminal.paint('dim', sanitize(item.metadata.uid, 600))]),
    ],
    json: ({ item }) => item,
    csv: [
      'metadata.uid',
      'metadata.type',
      'metadata.severity',
      'metadata.estimated_created_at',
      'metadata.matched_at',
      'metadata.flare_url',
      'tenant_metadata.severity.original',
      'tenant_metadata.severity.override',
      'tenant_metadata.tags',
      'tenant_metadata.notes',
      'tenant_metadata.ignored_at',
      'tenant_metadata.remediated_at',
      'identifiers',
      'highlights',
    ],
  }
}

type Highlights = WireSearchItem['highlights']

const maxHighlightLines = 2
const lineLength = 140
/** How many characters to show before the first marked term, where that is far into the text. */
const leadLength = 40

/**
 * Formats at most two extracts, one line each, with the marked terms in bold. `shown` holds the
 * same extracts without mark tags, masked or not; a marked term that is masked there is not found
 * and not bold.
 */
export function highlightLines(
  terminal: Terminal,
  received: Highlights,
  shown: Highlights,
): string[] {
  const extracts = Object.entries(shown ?? {}).flatMap(([field, texts]) =>
    texts.map((text, at) => ({ field, text, terms: markedIn(received?.[field]?.[at] ?? '') })),
  )
  return extracts.slice(0, maxHighlightLines).map(({ field, text, terms }) => {
    const line = excerpt(sanitize(stripMarkTags(text), 20_000), terms)
    return `${sanitize(field, 60)}: ${boldTerms(terminal, line, terms)}`
  })
}

/** Every highlight in full on one line: a secret may stand anywhere in it. */
function revealedHighlights(received: Highlights): string[] {
  return Object.entries(received ?? {}).flatMap(([field, texts]) =>
    texts.map((text) => `${sanitize(field, 60)}: ${formatRevealed(stripMarkTags(text))}`),
  )
}

const markTag = /<\/?mark(?:\s[^<>]{0,200})?>/giu

function stripMarkTags(text: string): string {
  return text.replaceAll(markTag, '')
}

function markedIn(text: string): string[] {
  const marked = text.matchAll(/<mark(?:\s[^<>]{0,200})?>([\s\S]{1,500}?)<\/mark>/giu)
  return [...marked].map(([, term = '']) => sanitize(stripMarkTags(term))).filter(Boolean)
}

/** Cuts a text to one line that contains the first marked term. */
function excerpt(text: string, [first]: readonly string[]): string {
  const found = first === undefined ? 0 : Math.max(text.indexOf(first), 0)
  const isFarBack = found > lineLength / 2
  const space = isFarBack ? text.indexOf(' ', found - leadLength) : 0
  const start = space > found ? found : Math.max(space, 0)
  const lead = isFarBack ? `… ${text.slice(start).trimStart()}` : text
  return sanitize(lead, lineLength)
}

/** Makes the terms bold in their order, each at its next occurrence. */
function boldTerms(terminal: Terminal, line: string, terms: readonly string[]): string {
  let result = ''
  let rest = line
  for (const term of terms) {
    const at = rest.indexOf(term)
    if (at === -1) continue
    result += rest.slice(0, at) + terminal.paint('bold', term)
    rest = rest.slice(at + term.length)
  }
  return result + rest
}

/** The headline of an event's message, not defanged; null when only the uid is known. */
export function eventTitle(event: ThreatEvent, detail: EventDetail | null): string | null {
  const subject = { feed: '', event, detail: detail ?? undefined }
  const title = buildHeadline(describeEvent(subject), { maxLength: 150, clean: cleanLine })
  return title === event.uid ? null : title
}
