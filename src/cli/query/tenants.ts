import { Command } from 'commander'
import type { ServiceClient } from '../../service/client.ts'
import { checkRequest } from '../../service/operations/check-request.ts'
import { industries } from '../../service/wire/enumerations.ts'
import { tenantCreation, type WireTenant } from '../../service/wire/tenants.ts'
import { CommandError } from '../command-error.ts'
import type { Context } from '../context.ts'
import { harmless } from '../words.ts'
import { listInWords } from './assets/asset-listing.ts'
import type { Listing } from './listing.ts'
import { nameFailure } from './name-failure.ts'
import { wholeId } from './id-values.ts'
import { printOne } from './print-one.ts'
import { addServiceOptions, withClient, type ServiceOptions } from './service-command.ts'

interface CreateTenantOptions extends ServiceOptions {
  name: string
  description?: string
  industry?: string
  organization?: number
}

export function tenantsCommand(context: Context): Command {
  const create = addServiceOptions(new Command('create'))
    .description("make a tenant inside an organization; the key's user must administer it")
    .requiredOption('--name <text>', 'what it is called')
    .option('--description <text>', 'what it is for')
    .option('--industry <word>', `one of ${industries.join(', ')}`)
    .option('--organization <id>', "the organization (default: the key's own)", wholeId)
    .action((options: CreateTenantOptions) => createTenant(context, options))
  return new Command('tenants').addCommand(create)
}

async function createTenant(context: Context, options: CreateTenantOptions): Promise<void> {
  const { name, description, industry, organization } = options
  const tenant = checkRequest(tenantCreation, { name, description, industry })
  const created = await withClient(context, options, async ({ client, asked }) => {
    const organizationId = organization ?? (await ownOrganization(client, context.stop))
    return nameFailure(
      `organization ${organizationId}`,
      client.createTenant({ organizationId, tenant, ...asked() }),
    )
  })
  printOne(context, options, tenantListing, created)
}

async function ownOrganization(client: ServiceClient, signal: AbortSignal): Promise<number> {
  const { organizationId: configured } = client.account
  const own = configured ?? (await client.testToken({ signal })).organizationId
  if (own !== undefined) return own
  throw new CommandError(
    'refused',
    'the service does not say to which organization the key belongs; name it with --organization',
  )
}

const tenantListing: Listing<WireTenant> = {
  columns: [
    { title: 'ID', width: 14, text: ({ id }) => String(id) },
    { title: 'ORGANIZATION', width: 14, text: ({ organization_id: id }) => String(id ?? '') },
    { title: 'INDUSTRY', width: 17, text: ({ industry }) => industry ?? '' },
    { title: 'NAME', width: 40, text: ({ name }) => name },
  ],
  below: ({ description, permissions }) => [
    ...(description ? [harmless(description, 1_000)] : []),
    `permissions: ${harmless(listInWords(permissions), 1_000)}`,
  ],
  json: (tenant) => tenant,
  csv: [
    'id',
    'name',
    'type',
    'description',
    'organization_id',
    'urn',
    'number_of_employees',
    'industry',
    'is_disabled',
    'is_archived',
    'feed_id',
    'permissions',
    'prevent_global_search',
  ],
}
