/** `assets list`, `groups list` and `tenants list`: what is watched, with the ids that feeds name. */
import { Command } from 'commander'
import { type AssetType, assetTypes } from '../../upstream/resources/enumerations.ts'
import { identifierOperations, type OlderIdentifier } from '../../upstream/resources/identifiers.ts'
import type { Operation } from '../../upstream/resources/operation.ts'
import { tenantOperations } from '../../upstream/resources/tenants.ts'
import type { Context } from '../context.ts'
import { wordsOption } from '../options.ts'
import { jsonText, sanitize } from '../terminal.ts'
import { fetchRows, rowsCommand } from './api.ts'
import { parseId } from './api-command.ts'
import { type Listing, rowListing } from './listing.ts'
import { listCommand, type ListOptions } from './pages.ts'

/** v3 states no largest page (docs/api-notes.md, Page sizes). */
const pageSize = 100

export function assetsCommand(context: Context): Command {
  return new Command('assets').addCommand(assetsListCommand(context))
}

interface AssetOptions extends ListOptions {
  group?: number
  type?: AssetType[]
  disabled?: true
}

/** v3 has all types of assets, of which v4 knows nine. */
const row = identifierOperations.listOlder as Operation

function assetsListCommand(context: Context): Command {
  return listCommand(context, {
    name: 'assets list',
    description: 'list the enabled assets (identifiers) of the tenant, or of one group',
    options: (command) =>
      command
        .option('--group <id>', 'only those of this group', parseId)
        .addOption(
          wordsOption('--type <types>', 'only of these types, such as domain,keyword', assetTypes),
        )
        .option('--disabled', 'list the disabled ones instead'),
    pageSize,
    reveal: true,
    ask: ({ group, type, disabled }: AssetOptions) => ({
      parent_group_id: group,
      types: type,
      is_disabled: disabled,
      order_by: 'id',
    }),
    listing: () => assetListing,
    fetch: (asking) => fetchRows<OlderIdentifier>(asking, row, asking.asked),
  })
}

const assetListing: Listing<OlderIdentifier> = {
  ...rowListing(row),
  columns: [
    { title: 'ID', text: ({ id }) => String(id) },
    { title: 'TYPE', text: ({ type }) => type ?? '' },
    {
      title: 'EVENTS',
      text: ({ event_count: events }) => String(events ?? ''),
    },
    { title: 'NAME', text: ({ name }) => name ?? '' },
  ],
  below: ({ data, search_types: types }) => [
    `data: ${sanitize(jsonText(data ?? {}), 1_000)}`,
    `search types: ${sanitize(types?.join(', ') || 'none given', 1_000)}`,
  ],
}

export function groupsCommand(context: Context): Command {
  const groups = identifierOperations.groups as Operation
  return new Command('groups').addCommand(rowsCommand(context, groups, 'groups list'))
}

export function tenantsCommand(context: Context): Command {
  const tenants = tenantOperations.list as Operation
  return new Command('tenants').addCommand(rowsCommand(context, tenants, 'tenants list'))
}
