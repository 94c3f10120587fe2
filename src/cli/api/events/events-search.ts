/** `events search`: its scopes, its queries and how its results are printed. */
import type { Command } from 'commander'
import { InvalidArgumentError, Option } from 'commander'
import type { Config } from '../../../config/config.ts'
import type { EventDetail, ThreatEvent } from '../../../event.ts'
import { parseItem } from '../../../feed-types/events.ts'
import { systemClock } from '../../../lib/clock.ts'
import { maskHighlights, maskKnown, maskTag } from '../../../masking/masking.ts'
import { describeEvent, buildHeadline } from '../../../messages/message.ts'
import { cleanLine } from '../../../messages/sanitize.ts'
import { formatSeverity } from '../../../messages/summary.ts'
import { isUnknownPath } from '../../../upstream/capabilities.ts'
import type { UpstreamClient } from '../../../upstream/client.ts'
import type { Tier } from '../../../upstream/config.ts'
import { eventSeverities, orders } from '../../../upstream/resources/enumerations.ts'
import {
  type EventQuery,
  type GroupSearchBody,
  wireSearchItem,
  type WireSearchItem,
} from '../../../upstream/resources/events.ts'
import type { SearchPage } from '../../../upstream/resources/operation.ts'
import type { Context } from '../../context.ts'
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
} from '../../options.ts'
import { CommandError, sanitize, type Terminal } from '../../terminal.ts'
import { callOptional, nameFailure, type ApiContext, readSecret, parseId } from '../api-command.ts'
import {
  type Column,
  type Listing,
  mapTexts,
  maskAllSecrets,
  parseRows,
  formatRevealed,
  severityStyle,
  shortTime,
} from '../listing.ts'
import { listCommand, type ListOptions, type ScanPosition } from '../pages.ts'

interface EventsSearchOptions extends ListOptions, PeriodOptions, EventQueryOptions {
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
      const shown = { reveal: options.reveal ?? false, secrets: listQuerySecrets(target.query) }
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
  addEventQueryOptions(command)
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

async function requestPage(api: ApiContext, search: SearchRequest): Promise<SearchPage> {
  const { options, target, position } = search
  const { client, callOptions, config } = api
  const body = toSearchBody(options, position)
  if (target.kind === 'everywhere') {
    return client.searchEvents({ body: { ...body, query: target.query }, ...callOptions() })
  }
  const tier = findTier(config, client.account.name, target)
  const { query } = target
  const request = { body: { ...body, ...(query && { query }) }, tier, ...callOptions() }
  switch (target.kind) {
    case 'tenant':
      return callOptional(client, tenantSearch, client.searchTenantEvents(request))
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

/** Names the identifier in a 403 or 404 that concerns it, rather than the operation. */
async function searchIdentifier(
  client: UpstreamClient,
  identifier: number,
  request: Omit<Parameters<UpstreamClient['searchIdentifierEvents']>[0], 'identifier'>,
): Promise<SearchPage> {
  try {
    return await client.searchIdentifierEvents({ identifier, ...request })
  } catch (error) {
    if (!isUnknownPath(error)) return nameFailure(`identifier ${identifier}`, Promise.reject(error))
    const operation = 'the search in an identifier'
    const capability = `events/identifiers/${identifier}`
    const uncertain = { ...tenantSearch, capability, operation }
    return callOptional(client, uncertain, Promise.reject(error))
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

function listQuerySecrets(query: EventQuery | undefined): string[] {
  if (query?.type === 'secret') return [query.secret]
  return query?.type === 'credentials' ? [query.password] : []
}

/** An option for each of the thirteen kinds of event queries (docs/api-notes.md, Event queries). */

const terms = {
  domain: {
    flag: '--domain <fqdn>',
    says: 'a domain, such as example.com',
    query: (fqdn: string): EventQuery => ({ type: 'domain', fqdn }),
  },
  email: {
    flag: '--email <address>',
    says: 'an e-mail address',
    query: (email: string): EventQuery => ({ type: 'email', email }),
  },
  keyword: {
    flag: '--keyword <word>',
    says: 'a word or phrase',
    query: (keyword: string): EventQuery => ({ type: 'keyword', keyword }),
  },
  query: {
    flag: '--query <lucene>',
    says: "a query in Lucene's syntax",
    query: (query_string: string): EventQuery => ({ type: 'query_string', query_string }),
  },
  username: {
    flag: '--username <name>',
    says: 'a user name',
    query: (username: string): EventQuery => ({ type: 'username', username }),
  },
  github: { flag: '--github <owner/repo>', says: 'a repository on GitHub', query: repositoryQuery },
  brand: {
    flag: '--brand <name>',
    says: 'a brand',
    query: (name: string): EventQuery => ({ type: 'brand', name }),
  },
  name: {
    flag: '--name <name>',
    says: 'a person: "First Last", or "Last, First" where the last name is several words',
    query: personQuery,
  },
  bin: {
    flag: '--bin <digits>',
    says: 'the first digits of card numbers',
    query: (bin: string): EventQuery => ({ type: 'bin', bin }),
  },
  ip: {
    flag: '--ip <address>',
    says: 'an IP address',
    query: (ip: string): EventQuery => ({ type: 'ip', ip }),
  },
  azureTenant: {
    flag: '--azure-tenant <id>',
    says: 'a tenant of Azure',
    query: (tenant_id: string): EventQuery => ({ type: 'azure_tenant', tenant_id }),
  },
} as const

type Term = keyof typeof terms

type EventQueryOptions = Partial<Record<Term, EventQuery>> & {
  strict?: true
  secret?: true
  credentials?: string
}

function addEventQueryOptions(command: Command): Command {
  for (const { flag, says, query } of Object.values(terms)) {
    command.addOption(new Option(flag, says).argParser((text) => query(parseText(text))))
  }
  const credentials = 'the login, with a password that is asked for or read from standard input'
  return command
    .option('--strict', 'with --name: the name exactly as it is written')
    .option('--secret', 'a secret, which is asked for or read from standard input')
    .addOption(new Option('--credentials <username>', credentials).argParser(parseText))
}

/** Returns undefined when no query is given. Throws CommandError for more than one. */
async function readEventQuery(
  context: Context,
  options: EventQueryOptions,
): Promise<EventQuery | undefined> {
  const given = Object.keys(terms).filter(
    (name): name is Term => options[name as Term] !== undefined,
  )
  const { strict, secret, credentials } = options
  const kinds = [...given, ...(secret ? ['secret'] : []), ...(credentials ? ['credentials'] : [])]
  if (kinds.length > 1)
    throw new CommandError('mistake', `${oneTermProblem}: ${kinds.map(formatFlag).join(', ')}`)
  const query = given[0] === undefined ? undefined : options[given[0]]
  if (strict && query?.type !== 'name') {
    throw new CommandError('mistake', '--strict goes with --name only; leave it out')
  }
  if (query?.type === 'name') return { ...query, is_strict: strict === true }
  if (secret) return { type: 'secret', secret: await readSecret(context, 'secret') }
  if (credentials === undefined) return query
  const password = await readSecret(context, 'password')
  return { type: 'credentials', username: credentials, password }
}

const oneTermProblem = 'a search is for one thing; choose one of'

function formatFlag(kind: string): string {
  return `--${kind === 'azureTenant' ? 'azure-tenant' : kind}`
}

function repositoryQuery(text: string): EventQuery {
  const [, repo_owner, repo_name] = /^([^/\s]+)\/([^/\s]+)$/.exec(text) ?? []
  if (repo_owner === undefined || repo_name === undefined) {
    throw new InvalidArgumentError('Write owner/repo, such as octocat/hello-world.')
  }
  return { type: 'github_repository', repo_owner, repo_name }
}

function personQuery(text: string): EventQuery {
  const [, last, first] = /^([^,]*\S)\s*,\s*([^,]+)$/.exec(text) ?? []
  if (first !== undefined && last !== undefined) {
    return { type: 'name', first_name: first, last_name: last, is_strict: false }
  }
  const [, first_name, last_name] = /^([^,]*[^,\s])\s+([^,\s]+)$/.exec(text) ?? []
  if (first_name === undefined || last_name === undefined) {
    throw new InvalidArgumentError('Write "First Last" or "Last, First".')
  }
  return { type: 'name', first_name, last_name, is_strict: false }
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

/** Masks an item except for its uid, by which the event is requested. */
function maskItem(item: WireSearchItem, secrets: readonly string[]): WireSearchItem {
  const known = maskKnown(secrets)
  const { highlights, metadata, tenant_metadata: tenant, ...rest } = item
  const extracts = mapTexts(highlights ?? {}, known) as Record<string, string[]>
  return {
    ...maskAllSecrets(rest, secrets),
    metadata: { ...maskAllSecrets(metadata, secrets), uid: metadata.uid },
    ...(tenant !== undefined && {
      tenant_metadata: tenant && {
        ...maskAllSecrets(tenant, secrets),
        ...(tenant.tags && { tags: tenant.tags.map((tag) => maskTag(known(tag))) }),
      },
    }),
    ...(highlights !== undefined && {
      highlights: highlights && maskHighlights(extracts, true, metadata.uid),
    }),
  }
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
