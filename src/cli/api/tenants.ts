import { Command } from 'commander'
import type { UpstreamClient } from '../../upstream/client.ts'
import { diagnoseKey } from '../../upstream/diagnose-key.ts'
import { industries } from '../../upstream/resources/enumerations.ts'
import { checkRequest } from '../../upstream/resources/operation.ts'
import { tenantCreation, wireTenant, type WireTenant } from '../../upstream/resources/tenants.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import { withStore } from '../open/open-store.ts'
import { withUpstream } from '../open/open-upstream.ts'
import { parseText, wordsOption } from '../options.ts'
import { CommandError, findNamed, sanitize } from '../terminal.ts'
import {
  addServiceOptions,
  callOptional,
  nameFailure,
  type ServiceOptions,
  parseId,
  withClient,
} from './api-command.ts'
import { formatList, type Listing, parseRows } from './listing.ts'
import { listCommand, printOne } from './pages.ts'

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
    .addOption(wordsOption('--industry <word>', 'what it does', industries, parseText))
    .option('--organization <id>', "the organization (default: the key's own)", parseId)
    .action((options: CreateTenantOptions) => createTenant(context, options))
  return new Command('tenants').addCommand(tenantsListCommand(context)).addCommand(create)
}

function tenantsListCommand(context: Context): Command {
  return listCommand(context, {
    name: 'tenants list',
    description: "the tenants that the key's user may use",
    ask: () => ({}),
    listing: () => tenantListing,
    async fetch({ client, callOptions }) {
      const items = await callOptional(client, tenantList, client.listTenants(callOptions()))
      return { rows: parseRows(context, wireTenant, items), next: null }
    },
  })
}

const tenantList = {
  capability: 'tenants',
  operation: 'the list of tenants',
  permission: "to see its user's tenants",
  instead: 'the profile page of the web application lists them',
  namesNothing: true,
} as const

async function createTenant(context: Context, options: CreateTenantOptions): Promise<void> {
  const { name, description, industry, organization } = options
  const tenant = checkRequest(tenantCreation, { name, description, industry })
  const created = await withClient(context, options, async ({ client, callOptions }) => {
    const organizationId = organization ?? (await ownOrganization(client, context.stop))
    return nameFailure(
      `organization ${organizationId}`,
      client.createTenant({ organizationId, tenant, ...callOptions() }),
    )
  })
  printOne(context, options, tenantListing, created)
}

async function ownOrganization(client: UpstreamClient, signal: AbortSignal): Promise<number> {
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
    ...(description ? [sanitize(description, 1_000)] : []),
    `permissions: ${sanitize(formatList(permissions), 1_000)}`,
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

interface TokenTestOptions extends CommonOptions {
  account?: string
}

export function tokenCommand(context: Context): Command {
  const test = addCommonOptions(new Command('test'))
    .description('say whether the API keys work, and if not, what to do')
    .option('--account <name>', 'only the key of this account')
    .action((options: TokenTestOptions) => testTokens(context, options))
  return new Command('token').addCommand(test)
}

async function testTokens(context: Context, options: TokenTestOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { accounts } = config
  const chosen = options.account ? [findNamed(accounts, options.account, 'account')] : accounts
  const found = await withStore(config, (store) =>
    withUpstream(config, store, async (upstream) => {
      const diagnoses: { account: string; ok: boolean; lines: string[] }[] = []
      for (const { name } of chosen) {
        const { ok, lines } = await diagnoseKey(upstream.client(name), context.stop)
        diagnoses.push({ account: name, ok, lines })
      }
      return diagnoses
    }),
  )
  print(context, options, {
    json: found,
    lines: () => found.flatMap(({ ok, lines }) => diagnosisLines(context, ok, lines)),
  })
  if (found.some(({ ok }) => !ok)) context.exitCode = 1
}

function diagnosisLines({ terminal }: Context, ok: boolean, lines: string[]): string[] {
  return lines.map((line, index) => {
    const text = sanitize(line, 1_000)
    return index === 0 ? terminal.paint(ok ? 'green' : 'red', text) : `  ${text}`
  })
}
