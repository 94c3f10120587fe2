/** `assets list`, `groups list` and `tenants list`: what is watched, with the ids that feeds name. */
import { Command, Option } from 'commander'
import { type AssetType, assetTypes } from '../../upstream/resources/enumerations.ts'
import {
  identifierOperations,
  type WireGroupEntry,
  wireGroupEntry,
  wireIdentifier,
  type WireIdentifier,
} from '../../upstream/resources/identifiers.ts'
import { type Operation, secretTexts } from '../../upstream/resources/operation.ts'
import { tenantOperations } from '../../upstream/resources/tenants.ts'
import type { Context } from '../context.ts'
import { wordsOption } from '../options.ts'
import { jsonText, sanitize } from '../terminal.ts'
import { rowsCommand } from './api.ts'
import { type ApiContext, explainRefusal, parseId } from './api-command.ts'
import { columnsOf } from './fields.ts'
import { formatList, type Listing, parseRows, rowListing } from './listing.ts'
import { maskIdentifier } from './masks.ts'
import { type FetchedRows, listCommand, type ListOptions } from './pages.ts'

/** The largest page of v4; v3 states none (docs/api-notes.md, Page sizes). */
const pageSize = { usual: 20, most: 100 }

export function assetsCommand(context: Context): Command {
  return new Command('assets').addCommand(assetsListCommand(context))
}

interface AssetOptions extends ListOptions {
  group?: number
  type?: AssetType[]
  disabled?: true
  enabled?: true
}

function assetsListCommand(context: Context): Command {
  return listCommand(context, {
    name: 'assets list',
    description: 'list the assets (identifiers) of the tenant, or of one group',
    options: (command) =>
      command
        .option('--group <id>', 'only those of this group', parseId)
        .addOption(
          wordsOption('--type <types>', 'only of these types, such as domain,keyword', assetTypes),
        )
        .addOption(new Option('--enabled', 'only those that are watched').conflicts('disabled'))
        .option('--disabled', 'only those that are not watched'),
    pageSize,
    reveal: 'show watched secrets as they are',
    ask({ group, type, disabled, enabled }: AssetOptions) {
      const is_disabled = disabled ?? (enabled ? false : undefined)
      return { group_id: group, types: type, is_disabled, order_by: 'id' as const }
    },
    listing: ({ reveal }) => identifierListing(reveal === true),
    async fetch({ client, callOptions, options, asked, position: { cursor: from, size } }) {
      const request = { ...asked, from, size }
      const { result, isOlder } = await explainRefusal(
        client,
        identifierOperations.listOlder,
        request,
        client.listIdentifiers(request, callOptions()),
      )
      if (isOlder && asked.is_disabled === undefined && from === null) {
        context.terminal.printError(enabledOnly)
      }
      const rows = parseRows(context, wireIdentifier, result.items)
      return { rows: options.reveal ? rows : rows.map(maskRow), next: result.next }
    },
  })
}

function maskRow(row: WireIdentifier): WireIdentifier {
  return maskIdentifier(row, { request: {}, secrets: secretTexts(row.data) }) as WireIdentifier
}

const enabledOnly =
  'these are the enabled identifiers alone; --disabled lists those that are not watched'

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
    csv: columnsOf(wireIdentifier).map(({ name }) => name),
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

export function groupsCommand(context: Context): Command {
  const list = listCommand(context, {
    name: 'groups list',
    description: 'list the groups of the tenant, with the ids that feeds name as identifier_group',
    pageSize,
    ask: () => ({}),
    listing: () => rowListing(identifierOperations.groups as Operation),
    async fetch({ position: { cursor: from, size }, ...api }) {
      const { rows, next } = await fetchGroups(api, { from, size })
      return { rows: rows.map((group) => ({ shown: group, masked: group })), next }
    },
  })
  return new Command('groups').addCommand(list)
}

/** One page of the tenant's groups. */
export async function fetchGroups(
  {
    context,
    client,
    callOptions,
  }: Pick<ApiContext, 'client' | 'callOptions'> & { context: Context },
  { from, size }: { from: string | null; size: number },
): Promise<FetchedRows<WireGroupEntry>> {
  const request = { from, size }
  const { result } = await explainRefusal(
    client,
    identifierOperations.groups,
    request,
    client.listGroups(request, callOptions()),
  )
  const rows = parseRows<WireGroupEntry>(context, wireGroupEntry, result.items)
  return { rows, next: result.next }
}

export function tenantsCommand(context: Context): Command {
  const list = rowsCommand(context, tenantOperations.list as Operation, 'tenants list')
  return new Command('tenants').addCommand(list)
}
