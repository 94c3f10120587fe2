import { Command, InvalidArgumentError, Option } from 'commander'
import type { Config } from '../../config/config.ts'
import type { EventDetail, ThreatEvent } from '../../event.ts'
import { parseItem } from '../../feed-types/events.ts'
import { systemClock } from '../../lib/clock.ts'
import { maskHighlights, maskKnown, maskTag } from '../../masking/masking.ts'
import { describeEvent, headlineOf } from '../../messages/message.ts'
import { cleanLine } from '../../messages/sanitize.ts'
import { severityInWords } from '../../messages/summary.ts'
import { isUnknownPath } from '../../upstream/capabilities.ts'
import type { ServiceClient } from '../../upstream/client.ts'
import type { Tier } from '../../upstream/config.ts'
import { eventSeverities, orders } from '../../upstream/resources/enumerations.ts'
import {
  type EventQuery,
  type GroupSearchBody,
  wireSearchItem,
  type WireSearchItem,
} from '../../upstream/resources/events.ts'
import type { SearchPage } from '../../upstream/resources/operation.ts'
import type { Context } from '../context.ts'
import {
  addSpanOptions,
  listOf,
  listValue,
  momentValue,
  oneOf,
  rangeOf,
  spanAt,
  type SpanOptions,
  textValue,
} from '../options.ts'
import { CommandError, harmless, type Terminal } from '../terminal.ts'
import {
  addServiceOptions,
  askUncertain,
  nameFailure,
  type OpenService,
  readSecret,
  type ServiceOptions,
  wholeId,
  withClient,
} from './api-command.ts'
import {
  addRevealOption,
  type Column,
  type Listing,
  mapTexts,
  masked,
  readRows,
  revealed,
  type RevealOption,
  severityStyle,
  shortTime,
} from './listing.ts'
import {
  addPagingOptions,
  addSizeOption,
  type PagingOptions,
  placeAt,
  printPages,
  type SizeOption,
  walkMark,
  type WalkPlace,
  wordOfNext,
} from './pages.ts'

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

/** The largest page that the service gives (docs/api-notes.md, Page sizes). */
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
    command.addOption(new Option(flag, says).argParser((text) => query(textValue(text))))
  }
  const credentials = 'the login, with a password that is asked for or read from standard input'
  return command
    .option('--strict', 'with --name: the name exactly as it is written')
    .option('--secret', 'a secret, which is asked for or read from standard input')
    .addOption(new Option('--credentials <username>', credentials).argParser(textValue))
}

/** undefined where nothing is looked for. Throws CommandError for more than one thing. */
async function readEventQuery(
  context: Context,
  options: EventQueryOptions,
): Promise<EventQuery | undefined> {
  const asked = Object.keys(terms).filter(
    (name): name is Term => options[name as Term] !== undefined,
  )
  const { strict, secret, credentials } = options
  const kinds = [...asked, ...(secret ? ['secret'] : []), ...(credentials ? ['credentials'] : [])]
  if (kinds.length > 1)
    throw new CommandError('mistake', `${many}: ${kinds.map(flagOf).join(', ')}`)
  const query = asked[0] === undefined ? undefined : options[asked[0]]
  if (strict && query?.type !== 'name') {
    throw new CommandError('mistake', '--strict goes with --name only; leave it out')
  }
  if (query?.type === 'name') return { ...query, is_strict: strict === true }
  if (secret) return { type: 'secret', secret: await readSecret(context, 'secret') }
  if (credentials === undefined) return query
  const password = await readSecret(context, 'password')
  return { type: 'credentials', username: credentials, password }
}

const many = 'a search is for one thing; choose one of'

function flagOf(kind: string): string {
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
  /** As the service has it, secrets masked unless they are revealed. */
  item: WireSearchItem
  /** Mark tags where they were. */
  received: WireSearchItem['highlights']
  severity: string
  /** null: nothing but the uid is known. */
  title: string | null
}

function eventRow(
  received: WireSearchItem,
  { reveal, secrets }: { reveal: boolean; secrets: readonly string[] },
): EventRow {
  const item = reveal ? received : maskedItem(received, secrets)
  const parsed = parseItem(received)
  return {
    item,
    received: received.highlights,
    severity: parsed.ok ? parsed.event.severity : (received.metadata.severity ?? 'unknown'),
    title: parsed.ok ? titleOf(parsed.event, secrets) : null,
  }
}

function titleOf(event: ThreatEvent, secrets: readonly string[]): string | null {
  const title = eventTitle(event, null)
  return title === null ? null : maskKnown(secrets)(title)
}

/** The uid stays whole: it is what the event is asked for by. */
function maskedItem(item: WireSearchItem, secrets: readonly string[]): WireSearchItem {
  const known = maskKnown(secrets)
  const { highlights, metadata, tenant_metadata: tenant, ...rest } = item
  const extracts = mapTexts(highlights ?? {}, known) as Record<string, string[]>
  return {
    ...masked(rest, secrets),
    metadata: { ...masked(metadata, secrets), uid: metadata.uid },
    ...(tenant !== undefined && {
      tenant_metadata: tenant && {
        ...masked(tenant, secrets),
        // people write tags such as token:github
        ...(tenant.tags && { tags: tenant.tags.map((tag) => maskTag(known(tag))) }),
      },
    }),
    // any of them may be a line of a dump
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
        text: ({ severity }) => severityInWords(severity),
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
      ...(title === null ? [] : [terminal.paint('dim', harmless(item.metadata.uid, 600))]),
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

const mostLines = 2
const lineLength = 140
/** What of a line stands before the first marked term, where that stands far back. */
const leadLength = 40

/**
 * Two extracts at most, a line each, what the service marked bold. `shown`: the same extracts without
 * mark tags, their secrets masked or not; a marked term that is masked there is not found again.
 */
export function highlightLines(
  terminal: Terminal,
  received: Highlights,
  shown: Highlights,
): string[] {
  const extracts = Object.entries(shown ?? {}).flatMap(([field, texts]) =>
    texts.map((text, at) => ({ field, text, terms: markedIn(received?.[field]?.[at] ?? '') })),
  )
  return extracts.slice(0, mostLines).map(({ field, text, terms }) => {
    const line = excerpt(harmless(withoutTags(text), 20_000), terms)
    return `${harmless(field, 60)}: ${boldened(terminal, line, terms)}`
  })
}

/** All of them, each whole on its line: secrets may stand anywhere in them. */
function revealedHighlights(received: Highlights): string[] {
  return Object.entries(received ?? {}).flatMap(([field, texts]) =>
    texts.map((text) => `${harmless(field, 60)}: ${revealed(withoutTags(text))}`),
  )
}

const tag = /<\/?mark(?:\s[^<>]{0,200})?>/giu

function withoutTags(text: string): string {
  return text.replaceAll(tag, '')
}

function markedIn(text: string): string[] {
  const marked = text.matchAll(/<mark(?:\s[^<>]{0,200})?>([\s\S]{1,500}?)<\/mark>/giu)
  return [...marked].map(([, term = '']) => harmless(withoutTags(term))).filter(Boolean)
}

/** As much of a text as fits a line, the first marked term within. */
function excerpt(text: string, [first]: readonly string[]): string {
  const found = first === undefined ? 0 : Math.max(text.indexOf(first), 0)
  const isFarBack = found > lineLength / 2
  const space = isFarBack ? text.indexOf(' ', found - leadLength) : 0
  const start = space > found ? found : Math.max(space, 0)
  const lead = isFarBack ? `… ${text.slice(start).trimStart()}` : text
  return harmless(lead, lineLength)
}

/** The terms in their order, each where it stands next. */
function boldened(terminal: Terminal, line: string, terms: readonly string[]): string {
  let done = ''
  let rest = line
  for (const term of terms) {
    const at = rest.indexOf(term)
    if (at === -1) continue
    done += rest.slice(0, at) + terminal.paint('bold', term)
    rest = rest.slice(at + term.length)
  }
  return done + rest
}

/** What an event is about, as its messages say it, but not defanged; null where nothing is known. */
export function eventTitle(event: ThreatEvent, detail: EventDetail | null): string | null {
  const subject = { feed: '', event, detail: detail ?? undefined }
  const title = headlineOf(describeEvent(subject), { maxLength: 150, clean: cleanLine })
  return title === event.uid ? null : title
}
