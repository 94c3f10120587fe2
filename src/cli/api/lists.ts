/** `assets list`, `groups list` and `tenants list`: what is watched, with the ids that feeds name. */
import { Command, Option } from 'commander'
import { type AssetType, assetTypes } from '../../upstream/resources/enumerations.ts'
import {
  identifierOperations,
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
import { explainRefusal, parseId } from './api-command.ts'
import { type Listing, parseRows, rowListing } from './listing.ts'
import { maskIdentifier } from './masks.ts'
import { listCommand, type ListOptions } from './pages.ts'

/** The largest page of v4; v3 states none (docs/api-notes.md, Page sizes). */
const pageSize = 100

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
    reveal: true,
    ask({ group, type, disabled, enabled }: AssetOptions) {
      const is_disabled = disabled ?? (enabled ? false : undefined)
      return { group_id: group, types: type, is_disabled, order_by: 'id' as const }
    },
    listing: () => identifierListing,
    async fetch({ client, callOptions, options, asked, position: { cursor: from, size } }) {
      const request = { ...asked, from, size }
      const { result, isOlder } = await explainRefusal(
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

const identifierListing: Listing<WireIdentifier> = {
  ...rowListing({ item: wireIdentifier }),
  columns: [
    { title: 'ID', width: 14, text: ({ id }) => String(id) },
    { title: 'TYPE', width: 17, text: readType },
    {
      title: 'STATE',
      width: 8,
      text: ({ is_disabled: isDisabled }) => (isDisabled === true ? 'disabled' : 'enabled'),
      style: ({ is_disabled: isDisabled }) => (isDisabled === true ? 'yellow' : 'green'),
    },
    { title: 'GROUP', width: 8, text: ({ group_id: group }) => String(group ?? '') },
    {
      title: 'EVENTS',
      width: 8,
      text: ({ enrichments, event_count }) => String(enrichments?.event_count ?? event_count ?? ''),
    },
    { title: 'NAME', width: 40, text: ({ name }) => name ?? '' },
  ],
  below: ({ data, categories, search_types }) => [
    `data: ${sanitize(jsonText(data ?? {}), 1_000)}`,
    `search types: ${sanitize((categories ?? search_types ?? []).join(', ') || 'none given', 1_000)}`,
  ],
}

/** v3 states the type beside `data`, v4 within it. */
function readType({ type, data }: WireIdentifier): string {
  const inner = data?.['type']
  return type ?? (typeof inner === 'string' ? inner : '')
}

export function groupsCommand(context: Context): Command {
  const row = identifierOperations.groups
  const list = listCommand(context, {
    name: 'groups list',
    description: 'list the groups of the tenant, with the ids that feeds name as identifier_group',
    pageSize,
    ask: () => ({}),
    listing: () => rowListing(row as Operation),
    async fetch({ client, callOptions, position: { cursor: from, size } }) {
      const request = { from, size }
      const found = client.listGroups(request, callOptions())
      const { items, next } = (await explainRefusal(row, request, found)).result
      return { rows: parseRows<unknown>(context, wireGroupEntry, items), next }
    },
  })
  return new Command('groups').addCommand(list)
}

export function tenantsCommand(context: Context): Command {
  const list = rowsCommand(context, tenantOperations.list as Operation, 'tenants list')
  return new Command('tenants').addCommand(list)
}
