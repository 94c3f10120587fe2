/**
 * `identifiers list` (and `assets list`, the same), `groups list`, `alerts list` and `alerts get`:
 * what is watched for, with the ids that feeds name, and how it is alerted on.
 */
import { Command, Option } from 'commander'
import { fullMask } from '../../masking/mask-secret.ts'
import type { WireAlert } from '../../upstream/resources/assets.ts'
import {
  type AssetType,
  assetTypes,
  eventSeverities,
  identifierTypes,
} from '../../upstream/resources/enumerations.ts'
import {
  type IdentifierFilters,
  type WireGroupEntry,
  wireGroupEntry,
  wireIdentifier,
  type WireIdentifier,
  wireTenantAlert,
  type WireTenantAlert,
} from '../../upstream/resources/identifiers.ts'
import type { WireSearchPage } from '../../upstream/resources/page.ts'
import type { Context } from '../context.ts'
import { wordsOption } from '../options.ts'
import { jsonText, sanitize, type Style } from '../terminal.ts'
import { type ApiContext, callNewest, callOptional, nameFailure, parseId } from './api-command.ts'
import { formatList, type Listing, maskAllSecrets, parseRows, severityStyle } from './listing.ts'
import { type FetchedRows, listCommand, type ListOptions, type ListRequest } from './pages.ts'

interface IdentifierOptions extends ListOptions {
  group?: number
  type?: AssetType[]
  disabled?: true
  enabled?: true
  orderBy: IdentifierFilters['orderBy']
}

/** The largest page of v4; v3 states none (docs/api-notes.md, Page sizes). */
const pageSize = { usual: 20, most: 100 }

export function identifiersCommand(context: Context): Command {
  const list = identifierList(context, {
    name: 'identifiers list',
    description: 'the identifiers of the tenant, or of one group',
  })
  return new Command('identifiers').addCommand(list)
}

/** An asset and an identifier are the same thing under two words of the API. */
export function assetsListCommand(context: Context): Command {
  return identifierList(context, {
    name: 'assets list',
    description: 'the assets of the tenant, or of one group, as "identifiers list" shows them',
  })
}

function identifierList(context: Context, named: { name: string; description: string }): Command {
  return listCommand(context, {
    ...named,
    options: (command) =>
      command
        .option('--group <id>', 'only those of this group', parseId)
        .addOption(
          wordsOption('--type <types>', 'only of these types, such as domain,keyword', assetTypes),
        )
        .addOption(new Option('--enabled', 'only those that are watched').conflicts('disabled'))
        .option('--disabled', 'only those that are not watched')
        .addOption(
          new Option('--order-by <field>', 'in which order')
            .choices(['id', 'name', 'type'])
            .default('id'),
        ),
    pageSize,
    reveal: 'show watched secrets as they are',
    ask: toFilters,
    listing: ({ reveal }) => identifierListing(reveal === true),
    fetch: fetchIdentifiers,
  })
}

function toFilters(options: IdentifierOptions): IdentifierFilters {
  const { group, type, disabled, enabled, orderBy } = options
  const isDisabled = disabled ?? (enabled ? false : undefined)
  return { group, types: type, isDisabled, orderBy }
}

async function fetchIdentifiers({
  context,
  client,
  callOptions,
  options,
  asked: filters,
  position: { cursor: from, size },
}: ListRequest<IdentifierOptions, IdentifierFilters>): Promise<FetchedRows<WireIdentifier>> {
  const request = { filters, from, size }
  const newer = {
    capability: 'identifiers/v4',
    request: () => client.listIdentifiers({ ...request, ...callOptions() }),
  }
  const older = {
    capability: 'identifiers/v3',
    operation: 'a list of identifiers',
    permission: 'to read identifiers',
    instead,
    namesNothing: filters.group === undefined && from === null,
    async request() {
      const found = await client.listOlderIdentifiers({ ...request, ...callOptions() })
      if (filters.isDisabled === undefined && from === null) {
        context.terminal.printError(enabledOnly)
      }
      return found
    },
  }
  const isInNewer = (filters.types ?? []).every((type) => identifierTypes.includes(type))
  const page = await (isInNewer
    ? callNewest<WireSearchPage>(client, newer, older)
    : callOptional(client, older, older.request()))
  const rows = parseRows(context, wireIdentifier, page.items)
  return { rows: options.reveal ? rows : rows.map(maskIdentifier), next: page.next ?? null }
}

/** An identifier may watch for a secret, and be called like it. */
function maskIdentifier(row: WireIdentifier): WireIdentifier {
  const secrets = [row.data?.['secret'], row.data?.['password']]
  return maskAllSecrets(
    row,
    secrets.filter((secret) => typeof secret === 'string'),
  )
}

const enabledOnly =
  'these are the enabled identifiers alone; --disabled lists those that are not watched'

const instead = 'the web application lists them'

export function groupsCommand(context: Context): Command {
  const list = listCommand(context, {
    name: 'groups list',
    description: 'the groups of the tenant, with the ids that feeds name as identifier_group',
    pageSize,
    ask: () => ({}),
    listing: () => groupListing,
    fetch: ({ position: { cursor: from, size }, ...api }) => fetchGroups(api, { from, size }),
  })
  return new Command('groups').addCommand(list)
}

/** One page of the tenant's groups, of the newer operation or the older one, which has no pages. */
export async function fetchGroups(
  {
    context,
    client,
    callOptions,
  }: Pick<ApiContext, 'client' | 'callOptions'> & { context: Context },
  { from, size }: { from: string | null; size: number },
): Promise<{ rows: WireGroupEntry[]; next: string | null | undefined }> {
  const page = await callNewest<Pick<WireSearchPage, 'items' | 'next'>>(
    client,
    {
      capability: 'groups/v3',
      request: () => client.listGroups({ from, size, ...callOptions() }),
    },
    {
      capability: 'groups/v2',
      operation: 'a list of groups',
      permission: 'to read groups of identifiers',
      instead,
      namesNothing: from === null,
      request: async () => ({ items: await client.listOlderGroups(callOptions()) }),
    },
  )
  return { rows: parseRows<WireGroupEntry>(context, wireGroupEntry, page.items), next: page.next }
}

function identifierListing(reveal: boolean): Listing<WireIdentifier> {
  return {
    columns: [
      { title: 'ID', width: 14, text: ({ id }) => String(id) },
      { title: 'TYPE', width: 17, text: readType },
      {
        title: 'STATE',
        width: 8,
        text: ({ is_disabled: isDisabled }) => (isDisabled === true ? 'disabled' : 'enabled'),
        style: ({ is_disabled: isDisabled }) => (isDisabled === true ? 'yellow' : 'green'),
      },
      { title: 'GROUP', width: 8, text: ({ group_id: group }) => formatNumber(group) },
      { title: 'EVENTS', width: 8, text: (row) => formatNumber(readEventCount(row)) },
      { title: 'NAME', width: 40, text: ({ name }) => name ?? '' },
    ],
    below: (row) => [
      `data: ${reveal ? jsonText(row.data ?? {}) : sanitize(jsonText(row.data ?? {}), 1_000)}`,
      `search types: ${sanitize(formatList(row.categories ?? row.search_types), 1_000)}`,
    ],
    json: (row) => row,
    csvFields: (row) => ({ ...row, type: readType(row), event_count: readEventCount(row) }),
    csv: [
      'id',
      'name',
      'type',
      'data',
      'tenant_id',
      'group_id',
      'is_disabled',
      'event_count',
      'categories',
      'search_types',
      'severities',
      'risks',
      'updated_at',
      'data_updated_at',
    ],
  }
}

/** v3 states the type beside `data`, v4 within it. */
function readType({ type, data }: WireIdentifier): string {
  const inner = data?.['type']
  return type ?? (typeof inner === 'string' ? inner : '')
}

function readEventCount({ enrichments, event_count: count }: WireIdentifier): number | null {
  return enrichments?.event_count ?? count ?? null
}

function formatNumber(value: number | null | undefined): string {
  return String(value ?? '')
}

const groupListing: Listing<WireGroupEntry> = {
  columns: [
    { title: 'ID', width: 14, text: ({ group }) => String(group.id) },
    { title: 'IDENTIFIERS', width: 11, text: ({ identifier_count: n }) => formatNumber(n) },
    { title: 'EVENTS', width: 10, text: ({ event_count: n }) => formatNumber(n) },
    { title: 'NAME', width: 40, text: ({ group }) => group.name ?? '' },
  ],
  json: (entry) => ({ ...entry }),
  csv: [
    'group.id',
    'group.name',
    'group.tenant_id',
    'group.feed_id',
    'group.feed_owner_id',
    'group.urn',
    'identifier_count',
    'total_identifier_count',
    'rate_limited_identifiers_count',
    'event_count',
  ],
}

/**
 * `alerts list`: all alerts of the tenant. `alerts get`: those of an assets group as the API returns
 * them, with secrets masked.
 */
export function alertsCommand(context: Context): Command {
  const get = listCommand(context, {
    name: 'alerts get',
    description: 'how an assets group is alerted on',
    options: (command) => command.argument('<group>', 'id of the assets group', parseId),
    reveal: 'show secrets and addresses as they are',
    ask: (_options, group) => Number(group),
    listing: ({ reveal }) => alertListing(reveal === true),
    async fetch({ client, callOptions, asked: groupId }) {
      const alerts = client.groupAlerts({ groupId, ...callOptions() })
      return { rows: await nameFailure(`assets group ${groupId}`, alerts), next: null }
    },
  })
  const list = listCommand(context, {
    name: 'alerts list',
    description: 'what the service itself tells people, and of what',
    pageSize: { usual: 10, most: 10 },
    ask: () => ({}),
    listing: () => alertListing(false),
    async fetch({ client, callOptions, position: { cursor: from, size } }) {
      const request = client.listAlerts({ from, size, ...callOptions() })
      const { items, next } = await callOptional(client, tenantAlerts, request)
      return { rows: parseRows(context, wireTenantAlert, items).map(toAlert), next }
    },
  })
  return new Command('alerts').addCommand(get).addCommand(list)
}

const tenantAlerts = {
  capability: 'alerts/v4',
  operation: "a list of the tenant's alerts",
  permission: 'alert_channels',
  instead: '"alerts get" shows those of one group',
  namesNothing: true,
}

/** Under the names that the alerts of a group have, beside its own. */
function toAlert(alert: WireTenantAlert): WireAlert {
  const { feed_definition: target, alert_channel_id: channel } = alert
  return {
    ...alert,
    feed_target_type: target?.type,
    feed_target_id: target?.id,
    tenant_alert_channel_id: channel,
  }
}

/** The listing of a group's alerts; the parameters of their channels are masked unless `reveal`. */
export function alertListing(reveal: boolean): Listing<WireAlert> {
  const shownParams = ({ params }: WireAlert): unknown =>
    reveal || params === undefined || params === null ? params : maskAlertParams(params)
  const formatParams = (params: unknown): string =>
    reveal ? jsonText(params ?? {}) : sanitize(jsonText(params ?? {}), 1_000)
  return {
    columns: [
      { title: 'ID', width: 14, text: ({ id }) => String(id) },
      { title: 'TYPE', width: 17, text: ({ type }) => type ?? '' },
      { title: 'FREQUENCY', width: 9, text: ({ frequency }) => String(frequency ?? '') },
      { title: 'SEVERITIES', width: 22, text: formatSeverities, style: worstStyle },
      { title: 'TARGET', width: 24, text: formatTarget },
      { title: 'NAME', width: 40, text: ({ name }) => name ?? '' },
    ],
    below: (alert) => [
      `search types: ${sanitize(formatList(alert.search_types), 1_000)}`,
      ...(alert.experimental_search_types?.length
        ? [`experimental: ${sanitize(formatList(alert.experimental_search_types), 1_000)}`]
        : []),
      `channel ${alert.tenant_alert_channel_id ?? 'unknown'}: ${formatParams(shownParams(alert))}`,
      ...(alert.feed_url ? [sanitize(alert.feed_url)] : []),
    ],
    json: (alert) => ({ ...alert, ...('params' in alert && { params: shownParams(alert) }) }),
    csv: alertKeys,
  }
}

/** In the order of the API description. */
const alertKeys = [
  'id',
  'type',
  'name',
  'frequency',
  'start_at',
  'params',
  'feed_url',
  'feed_target_type',
  'feed_target_id',
  'created_at',
  'tenant_id',
  'organization_id',
  'search_types',
  'experimental_search_types',
  'risks',
  'tenant_alert_channel_id',
]

/**
 * Risks 1 to 5 as severities, worst first (docs/api-notes.md, Severities); other numbers stay as
 * they are.
 */
function formatSeverities({ risks }: WireAlert): string {
  const worstFirst = [...(risks ?? [])].toSorted((a, b) => b - a)
  return formatList(worstFirst.map((risk) => eventSeverities[risk - 1] ?? risk))
}

/** The colour of the worst severity, as events show it. */
function worstStyle({ risks }: WireAlert): Style | undefined {
  const worst = eventSeverities[Math.max(0, ...(risks ?? [])) - 1]
  return worst && severityStyle(worst)
}

function formatTarget({ feed_target_type: type, feed_target_id: id }: WireAlert): string {
  return [type, id].filter((part) => part !== undefined && part !== null).join(' ')
}

type Params = Readonly<Record<string, unknown>>

/** Channel fields that hold no secret (docs/api-notes.md, Alerts); any other text may be one. */
const publicFields = new Set([
  'alert_channel_id',
  'email',
  'entra_client_id',
  'entra_tenant_id',
  'index',
  'issue_type',
  'labels',
  'language',
  'netloc',
  'project_key',
  'server_netloc',
  'subject_tag',
  'table_name',
  'username',
  'workspace_id',
])

/**
 * Masks an alert's channel parameters. A URL keeps only its host, since the rest may be a key; a
 * nested value, such as headers, keeps only its keys.
 */
export function maskAlertParams(params: Params): Record<string, unknown> {
  return maskParams(params, (key) => publicFields.has(key))
}

function maskParams(params: Params, isPublic: (key: string) => boolean): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(params).map(([key, value]) => [key, maskValue(value, isPublic(key))]),
  )
}

function maskValue(value: unknown, isPublic: boolean): unknown {
  if (typeof value === 'string') return maskText(value, isPublic)
  if (typeof value === 'number') return isPublic ? value : fullMask
  if (Array.isArray(value)) return value.map((member) => maskValue(member, isPublic))
  return typeof value === 'object' && value !== null ? maskParams({ ...value }, () => false) : value
}

function maskText(text: string, isPublic: boolean): string {
  const url = URL.parse(text)
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (isWeb) return `${url.origin}/${fullMask}`
  return isPublic || text === '' ? text : fullMask
}
