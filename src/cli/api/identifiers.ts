/**
 * `identifiers list` (and `assets list`, the same) and `groups list`: what is watched for, with the
 * ids that feeds name.
 */
import { Command, Option } from 'commander'
import {
  type AssetType,
  assetTypes,
  identifierTypes,
} from '../../upstream/resources/enumerations.ts'
import {
  type IdentifierFilters,
  type WireGroupEntry,
  wireGroupEntry,
  wireIdentifier,
  type WireIdentifier,
} from '../../upstream/resources/identifiers.ts'
import type { WireSearchPage } from '../../upstream/resources/page.ts'
import type { Context } from '../context.ts'
import { listParser } from '../options.ts'
import { jsonText, sanitize } from '../terminal.ts'
import { callNewest, callOptional, parseId } from './api-command.ts'
import { formatList, type Listing, maskAllSecrets, parseRows } from './listing.ts'
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
        .option(
          '--type <types>',
          'only of these types, such as domain,keyword',
          listParser(assetTypes),
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
    request() {
      if (filters.isDisabled === undefined && from === null) {
        context.terminal.printError(enabledOnly)
      }
      return client.listOlderIdentifiers({ ...request, ...callOptions() })
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
    async fetch({ client, callOptions, position: { cursor: from, size } }) {
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
      return {
        rows: parseRows<WireGroupEntry>(context, wireGroupEntry, page.items),
        next: page.next,
      }
    },
  })
  return new Command('groups').addCommand(list)
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
