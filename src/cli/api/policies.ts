/** The `policies` commands: matching policies, alone or as they are assigned to identifiers. */

import { Command } from 'commander'
import { systemClock } from '../../lib/clock.ts'
import { checkRequest } from '../../upstream/resources/operation.ts'
import {
  policyCreation,
  type WirePolicy,
  type WirePolicyAssignment,
} from '../../upstream/resources/policies.ts'
import { requireConfirmation, type Context } from '../context.ts'
import { parseList } from '../options.ts'
import { CommandError, pluralize, sanitize } from '../terminal.ts'
import {
  addServiceOptions,
  appendUuid,
  parseIdList,
  type JsonObject,
  nameFailure,
  type ApiContext,
  readJsonObject,
  type ServiceOptions,
  parseUuid,
  parseId,
  withClient,
} from './api-command.ts'
import { changeEach, type Column, type Listing } from './listing.ts'
import {
  addPagingOptions,
  type FetchedRows,
  type PagingOptions,
  parseScanPosition,
  printOne,
  printPages,
  requestTag,
  formatScanPosition,
} from './pages.ts'

export function policiesCommand(context: Context): Command {
  const get = addServiceOptions(new Command('get'))
    .description('one policy')
    .argument('<uuid>', 'uuid of the policy', parseUuid)
    .action((id: string, options: ServiceOptions) => getPolicy(context, id, options))
  const list = addPagingOptions(addServiceOptions(new Command('list')))
    .description('the policies of an identifier; all policies where the server lists them')
    .option('--identifier <id>', 'only those that are assigned to it', parseId)
    .action((options: ListPoliciesOptions) => listPolicies(context, options))
  return new Command('policies')
    .addCommand(createCommand(context))
    .addCommand(get)
    .addCommand(list)
    .addCommand(assignCommand(context))
    .addCommand(deleteCommand(context))
}

function createCommand(context: Context): Command {
  return addServiceOptions(new Command('create'))
    .description('make a policy; it does nothing until it is assigned')
    .option('--name <text>', 'what it is called')
    .option('--included-keywords <words>', 'events match that hold one of them', parseList)
    .option('--excluded-keywords <words>', 'events match that hold none of them', parseList)
    .option('--query <lucene>', 'events match that this query finds')
    .option('--cookies <names>', 'events match that hold cookies of these names', parseList)
    .option('--match-subdomains', 'with --cookies: also those of subdomains')
    .option('--file <file>', 'the whole policy in JSON instead; - for standard input')
    .action((options: CreatePolicyOptions) => createPolicy(context, options))
}

function assignCommand(context: Context): Command {
  return addServiceOptions(new Command('assign'))
    .description('let a policy decide which events match identifiers')
    .argument('<uuid>', 'uuid of the policy', parseUuid)
    .requiredOption('--to <ids>', 'ids of identifiers, such as 77,78', parseIdList)
    .option('--clean-past-events', 'also remove events that matched before')
    .option('--yes', 'do not ask')
    .action((id: string, options: AssignOptions) => assignPolicy(context, id, options))
}

function deleteCommand(context: Context): Command {
  return addServiceOptions(new Command('delete'))
    .description('delete policies, with all their assignments')
    .argument('<uuids...>', 'uuids of policies', appendUuid)
    .option('--yes', 'do not ask')
    .action((uuids: string[], options: DeleteOptions) => deletePolicies(context, uuids, options))
}

export async function getPolicy(
  context: Context,
  uuid: string,
  options: ServiceOptions,
): Promise<void> {
  const policy = await withClient(context, options, ({ client, callOptions }) =>
    nameFailure(`policy ${uuid}`, client.getPolicy({ uuid, ...callOptions() })),
  )
  printOne(context, options, policyListing, policy)
}

export interface ListPoliciesOptions extends ServiceOptions, PagingOptions {
  identifier?: number
}

export async function listPolicies(context: Context, options: ListPoliciesOptions): Promise<void> {
  const { identifier } = options
  const nowMs = systemClock.now()
  await withClient(context, options, async (api) => {
    const { client, callOptions } = api
    const tag = requestTag(api, 'policies list', { identifier })
    if (identifier !== undefined) {
      return printPages(context, options, {
        listing: assignmentListing,
        tag,
        fetch: async (): Promise<FetchedRows<WirePolicyAssignment>> => ({
          rows: await nameFailure(
            `identifier ${identifier}`,
            client.listIdentifierPolicies({ identifier, ...callOptions() }),
          ),
          next: null,
        }),
      })
    }
    await printPages(context, options, {
      listing: policyListing,
      tag,
      async fetch(word) {
        const position = parseScanPosition(word, options, { usual: pageSize, nowMs })
        const { cursor: from, size } = position
        const page = await client.listPolicies({ from, size, ...callOptions() })
        if (page === undefined) throw new CommandError('refused', noListRemedy)
        return { rows: page.items, next: formatScanPosition(position, page.next) }
      },
    })
  })
}

/** The largest page that the API returns (docs/api-notes.md, Page sizes). */
const pageSize = 25

const noListRemedy = 'this server lists no policies; name an identifier with --identifier'

export interface CreatePolicyOptions extends ServiceOptions {
  name?: string
  includedKeywords?: string[]
  excludedKeywords?: string[]
  query?: string
  cookies?: string[]
  matchSubdomains?: true
  file?: string
}

/** Creates a policy and prints it as the API returned it. */
export async function createPolicy(context: Context, options: CreatePolicyOptions): Promise<void> {
  const policy = checkRequest(policyCreation, await readPolicyBody(context, options))
  const created = await withClient(context, options, ({ client, callOptions }) =>
    nameFailure(`policy "${policy.name}"`, client.createPolicy({ policy, ...callOptions() })),
  )
  printOne(context, options, policyListing, created)
}

async function readPolicyBody(context: Context, options: CreatePolicyOptions): Promise<JsonObject> {
  const { file, name, cookies, matchSubdomains } = options
  const kinds = listKinds(options)
  if (file !== undefined) {
    if (kinds.length > 0 || name !== undefined || matchSubdomains) {
      throw new CommandError('mistake', '--file: holds the whole policy; leave out what else it is')
    }
    return toPolicyCreation(await readJsonObject(context, file))
  }
  const [kind, ...others] = kinds
  if (kind === undefined || others.length > 0) throw new CommandError('mistake', oneKindRemedy)
  if (matchSubdomains && cookies === undefined) {
    throw new CommandError('mistake', '--match-subdomains goes with --cookies')
  }
  return { name, ...kind }
}

const oneKindRemedy =
  'say which events match by one of --included-keywords, --excluded-keywords, --query, --cookies or --file'

/** The types and values that the options stand for (docs/api-notes.md, Matching policies). */
function listKinds(options: CreatePolicyOptions): { type: string; value: JsonObject }[] {
  const { includedKeywords, excludedKeywords, query, cookies, matchSubdomains } = options
  return [
    ...(includedKeywords ? [keywordsKind('INCLUDED_KEYWORDS', includedKeywords)] : []),
    ...(excludedKeywords ? [keywordsKind('EXCLUDED_KEYWORDS', excludedKeywords)] : []),
    ...(query === undefined ? [] : [{ type: 'LUCENE_QUERY', value: { query } }]),
    ...(cookies
      ? [
          {
            type: 'ASTP_COOKIES',
            value: { cookie_names: cookies, match_subdomains: matchSubdomains === true },
          },
        ]
      : []),
  ]
}

function keywordsKind(type: string, words: string[]): { type: string; value: JsonObject } {
  return { type, value: { keywords: words } }
}

/**
 * Also accepts a policy as the API returned it: its type is called `policy_type` there, and the
 * fields that the API sets are dropped.
 */
function toPolicyCreation(written: JsonObject): JsonObject {
  const { policy_type: type, uuid, created_at: _made, last_updated_at: _changed, ...rest } = written
  return uuid === undefined || type === undefined ? written : { type, ...rest }
}

export interface AssignOptions extends ServiceOptions {
  to: number[]
  cleanPastEvents?: true
  yes?: true
}

export async function assignPolicy(
  context: Context,
  uuid: string,
  options: AssignOptions,
): Promise<void> {
  const isClean = options.cleanPastEvents === true
  const assignment = { identifier_ids: [...new Set(options.to)], clean_past_events: isClean }
  await withClient(context, options, async ({ client, callOptions }) => {
    if (isClean && !options.yes)
      await requireConfirmation(context, [cleaningQuestion(uuid, assignment.identifier_ids)])
    await nameFailure(
      `policy ${uuid} for ${formatIdentifiers(assignment.identifier_ids)}`,
      client.assignPolicy({ uuid, assignment, ...callOptions() }),
    )
  })
  printOne(context, options, assignedListing, { policy_uuid: uuid, ...assignment })
}

function cleaningQuestion(uuid: string, ids: readonly number[]): string {
  const whose = formatIdentifiers(ids)
  return `Events that ${whose} matched and policy ${uuid} does not let through will be removed.`
}

function formatIdentifiers(ids: readonly number[]): string {
  return `${ids.length === 1 ? 'identifier' : 'identifiers'} ${ids.join(', ')}`
}

/** The API answers an assignment with an empty body, so the request is printed. */
interface AssignmentResult {
  policy_uuid: string
  identifier_ids: number[]
  clean_past_events: boolean
}

const assignedListing: Listing<AssignmentResult> = {
  columns: [
    { title: 'POLICY', width: 36, text: ({ policy_uuid: uuid }) => uuid },
    { title: 'ASSIGNED TO', width: 40, text: ({ identifier_ids: ids }) => formatIdentifiers(ids) },
  ],
  below: ({ clean_past_events: isClean }) => (isClean ? ['past events are cleaned'] : []),
  json: (assigned) => ({ ...assigned }),
  csv: ['policy_uuid', 'identifier_ids', 'clean_past_events'],
}

export interface DeleteOptions extends ServiceOptions {
  yes?: true
}

/** Finds all policies before it deletes the first. */
export async function deletePolicies(
  context: Context,
  uuids: readonly string[],
  options: DeleteOptions,
): Promise<void> {
  await withClient(context, options, async (api) => {
    const found = await findPolicies(api, uuids)
    if (!options.yes) await requireConfirmation(context, deletionQuestion([...found.values()]))
    await changeEach(context, options, uuids, {
      listing: deletedListing,
      done: 'deleted',
      async change(uuid) {
        const { client, callOptions } = api
        await nameFailure(`policy ${uuid}`, client.deletePolicy({ uuid, ...callOptions() }))
        return { uuid, name: found.get(uuid)?.name ?? '' }
      },
    })
  })
}

async function findPolicies(
  { client, callOptions }: ApiContext,
  uuids: readonly string[],
): Promise<Map<string, WirePolicy>> {
  const found = new Map<string, WirePolicy>()
  for (const uuid of uuids) {
    const policy = await nameFailure(`policy ${uuid}`, client.getPolicy({ uuid, ...callOptions() }))
    found.set(uuid, policy)
  }
  return found
}

function deletionQuestion(policies: readonly WirePolicy[]): string[] {
  const names = policies.map(({ uuid, name }) => `${uuid} (${sanitize(name)})`)
  const count = pluralize(policies.length, 'matching policy', 'matching policies')
  return [`${count} will be deleted, with all assignments: ${names.join(', ')}.`]
}

interface DeletedPolicy {
  uuid: string
  name: string
}

const deletedListing: Listing<DeletedPolicy> = {
  columns: [
    { title: 'DELETED', width: 36, text: ({ uuid }) => uuid },
    { title: 'NAME', width: 40, text: ({ name }) => name },
  ],
  json: ({ uuid, name }) => ({ uuid, name, deleted: true }),
  csv: ['uuid', 'name', 'deleted'],
}

/** In the order of the API description. */
const policyKeys = ['uuid', 'name', 'policy_type', 'value', 'created_at', 'last_updated_at']

export const policyListing: Listing<WirePolicy> = {
  columns: policyColumns((policy) => policy),
  below: (policy) => [valueLine(policy)],
  json: (policy) => policy,
  csv: policyKeys,
}

export const assignmentListing: Listing<WirePolicyAssignment> = {
  columns: policyColumns(({ matching_policy: policy }) => policy),
  below: ({ matching_policy: policy, assigned_at: at, clean_past_events: isClean }) => [
    valueLine(policy),
    `assigned ${sanitize(at ?? 'at an unknown time')}, past events ${isClean === true ? 'cleaned' : 'kept'}`,
  ],
  json: (assignment) => assignment,
  csv: [...policyKeys.map((key) => `matching_policy.${key}`), 'assigned_at', 'clean_past_events'],
}

function policyColumns<Row>(readPolicy: (row: Row) => WirePolicy): Column<Row>[] {
  return [
    { title: 'UUID', width: 36, text: (row) => readPolicy(row).uuid },
    { title: 'TYPE', width: 17, text: (row) => readPolicy(row).policy_type },
    { title: 'NAME', width: 40, text: (row) => readPolicy(row).name },
  ]
}

/** `keywords: breach, leak`; a field that is not documented is printed as JSON. */
function valueLine({ value }: WirePolicy): string {
  const fields = Object.entries(value ?? {}).map(
    ([key, fieldValue]) => `${key}: ${formatFieldValue(fieldValue)}`,
  )
  return sanitize(fields.join('; ') || 'no value', 1_000)
}

function formatFieldValue(value: unknown): string {
  if (typeof value === 'string') return value
  const isWords = Array.isArray(value) && value.every((word) => typeof word === 'string')
  return isWords ? value.join(', ') : JSON.stringify(value)
}
