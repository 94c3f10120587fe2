/** All requests of `monitoring`: reads what the service has, and carries out the steps of a plan. */
import { isOperationMissing } from '../../upstream/access/capabilities.ts'
import { UpstreamError } from '../../upstream/error.ts'
import { assetOperations, type AssetReplacement } from '../../upstream/resources/assets.ts'
import {
  assetTypes,
  eventSeverities,
  identifierTypes,
} from '../../upstream/resources/enumerations.ts'
import { identifierOperations, wireIdentifier } from '../../upstream/resources/identifiers.ts'
import type { Fields, Operation } from '../../upstream/resources/operation.ts'
import { policyOperations, wirePolicy, type WirePolicy } from '../../upstream/resources/policies.ts'
import { type ApiContext, explainRefusal, nameFailure } from '../api/api-command.ts'
import { CommandError, sanitize } from '../terminal.ts'
import type { DesiredState } from './monitoring-file.ts'
import { type Actual, type ActualAsset, type ActualPolicy, identityOf, type Step } from './plan.ts'

type Api = Pick<ApiContext, 'client' | 'callOptions'>

/**
 * Reads all assets of the tenant, the policies of those that the file names, and all policies where
 * the server lists them.
 */
export async function readActual(api: Api, desired: DesiredState): Promise<Actual> {
  const { client, callOptions } = api
  const assets = await readAssets(api, desired)
  if (desired.policies.length === 0) return { assets, policies: [], assigned: new Map() }
  const policies = new Map((await readPolicies(api)).map((one) => [one.uuid, toPolicy(one)]))
  const assigned = new Map<number, string[]>()
  const named = new Set(desired.assets.map(({ body }) => identityOf(body)))
  for (const { id } of assets.filter((asset) => named.has(identityOf(asset)))) {
    const request = client.call(policyOperations.ofIdentifier, { identifier_id: id }, callOptions())
    const found = (await nameFailure(`asset ${id}`, request)).map((one) => one.matching_policy)
    for (const policy of found) policies.set(policy.uuid, toPolicy(policy))
    const uuids = found.map(({ uuid }) => uuid)
    assigned.set(id, uuids)
  }
  return { assets, policies: [...policies.values()], assigned }
}

/** v4 lists some types only, and v3 those that are disabled only if asked for them. */
async function readAssets(
  { client, callOptions }: Api,
  desired: DesiredState,
): Promise<ActualAsset[]> {
  const newer = await ifThere(
    readAll(async (from) => {
      const request = { order_by: 'id', from, size: pageSize } as const
      return (await client.call(identifierOperations.list, request, callOptions())).page
    }),
  )
  const types = assetTypes.filter((type) => !newer || !identifierTypes.includes(type))
  const readOlder = async (isDisabled: boolean): Promise<ActualAsset[]> => {
    const filters = { order_by: 'id', types, is_disabled: isDisabled } as const
    const rows = readAll(async (from) => {
      const request = { ...filters, from, size: pageSize }
      return (await client.call(identifierOperations.listOlder, request, callOptions())).page
    })
    return (await rows).map((row) => toAsset(row, isDisabled))
  }
  const enabled = await ifThere(readOlder(false))
  const isNeeded = desired.assets.some(({ body }) => types.includes(body.type))
  if (!enabled && (!newer || isNeeded)) throw new CommandError('refused', noListRemedy)
  const older = enabled ? [...enabled, ...(await readOlder(true))] : []
  const all = [...older, ...(newer ?? []).map((row) => toAsset(row, false))]
  return [...new Map(all.map((asset) => [asset.id, asset])).values()]
}

/** The largest page of v4; v3 states none (docs/api-notes.md, Page sizes). */
const pageSize = 100

const noListRemedy =
  'this server or key does not list all assets of these types, and what is there must be known; "tocsin api identifiers.create" creates single assets'

/** Throws CommandError for pages without an end: what is left out would be created again. */
async function readAll<Item>(
  fetch: (
    from: string | null,
  ) => Promise<{ items: readonly Item[]; next?: string | null | undefined }>,
): Promise<Item[]> {
  const all: Item[] = []
  const seen = new Set<string | null>()
  for (let from: string | null = null; !seen.has(from);) {
    seen.add(from)
    const page = await fetch(from)
    all.push(...page.items)
    const next: string | null = page.next ?? null
    if (next === null || (next === from && page.items.length === 0)) return all
    from = next
  }
  throw new CommandError('refused', 'the pages of the list have no end')
}

/**
 * An asset of the list of v4, or of v3; each leaves out fields that the other has. Throws CommandError
 * for a field that is there and cannot be read, which would count as empty.
 */
function toAsset(listed: unknown, isDisabled: boolean): ActualAsset {
  const given = (typeof listed === 'object' ? listed : null) as Fields | null
  const row = wireIdentifier.safeParse(given).data
  if (!row) throw unreadable('asset', given?.['id'], 'id')
  const lost = Object.keys(row).find((field) => row[field] === null && given?.[field] !== null)
  const { type: innerType, ...data } = row.data ?? {}
  const type = row.type ?? innerType
  if (lost !== undefined || !row.data || typeof type !== 'string') {
    throw unreadable('asset', row.id, lost ?? (row.data ? 'type' : 'data'))
  }
  const risks = row.severities?.map((word) => eventSeverities.findIndex((one) => one === word) + 1)
  return {
    id: row.id,
    name: row.name ?? '',
    type,
    data,
    isDisabled: row.is_disabled ?? isDisabled,
    search_types: row.categories ?? row.search_types ?? [],
    risks: (risks ?? row.risks ?? []).filter((risk) => risk > 0), // 0: a word without a number
    experimental_search_types: row.emerging_categories ?? row.experimental_search_types ?? [],
  }
}

function unreadable(thing: string, id: unknown, field: string): CommandError {
  const remedy = 'read it with "tocsin api", and change it at the service'
  return new CommandError(
    'refused',
    `${thing} ${sanitize(JSON.stringify(id) ?? '')} of the service: ${sanitize(field)} is not readable; ${remedy}`,
  )
}

function toPolicy({ uuid, name, policy_type: type, value }: WirePolicy): ActualPolicy {
  return { uuid, name, type, value: value ?? {} }
}

/** All policies of the tenant; none if the server does not list them. */
async function readPolicies({ client, callOptions }: Api): Promise<WirePolicy[]> {
  const listed = await ifThere(
    readAll(async (from) => {
      const request = from === null ? {} : { from }
      return (await client.call(policyOperations.list, request, callOptions())).page
    }),
  )
  return (listed ?? []).map((item) => {
    const { data, error } = wirePolicy.safeParse(item)
    if (data) return data
    throw unreadable('policy', (item as Fields | null)?.['uuid'], String(error.issues[0]?.path[0]))
  })
}

async function ifThere<Result>(request: Promise<Result>): Promise<Result | undefined> {
  try {
    return await request
  } catch (error) {
    if (error instanceof UpstreamError && isOperationMissing(error)) return undefined
    throw error
  }
}

/** Ids of assets and uuids of policies by their keys in the file; a step that creates adds its own. */
export interface KnownIds {
  assets: Map<string, number>
  policies: Map<string, string>
}

/** Throws UpstreamError, with `mayBeDone` if it is unknown whether the step was done. */
export async function carryOut(step: Step, known: KnownIds, api: Api): Promise<void> {
  await nameFailure(`${step.do} ${step.key}`, send(step, known, api))
}

async function send(step: Step, known: KnownIds, api: Api): Promise<unknown> {
  const { client, callOptions } = api
  const call = <Request, Result>(row: Operation<Request, Result>, request: Request) =>
    explainRefusal(row, request as Fields, client.call(row, request, callOptions()))
  switch (step.do) {
    case 'create asset': {
      const { id } = await client.call(assetOperations.create, step.body, callOptions())
      return known.assets.set(step.key, id)
    }
    case 'replace asset':
      return replaceAsset(step, api)
    case 'enable asset':
    case 'disable asset': {
      const asset_id = known.assets.get(step.key) ?? 0
      const request = { asset_id, is_disabled: step.do === 'disable asset' }
      return client.call(assetOperations.toggle, request, callOptions())
    }
    case 'create policy': {
      const { uuid } = await client.call(policyOperations.create, step.body, callOptions())
      return known.policies.set(step.key, uuid)
    }
    case 'update policy': {
      const { name, value } = step.body
      const request = { policy_uuid: step.uuid, name, value }
      return call(policyOperations.update, request)
    }
    case 'assign policy': {
      const request = {
        policy_uuid: known.policies.get(step.key) ?? '',
        ...identifiersOf(step, known),
        clean_past_events: step.clean_past_events,
      }
      return client.call(policyOperations.assign, request, callOptions())
    }
    case 'unassign policy': {
      const request = { policy_uuid: step.uuid, ...identifiersOf(step, known) }
      return call(policyOperations.unassign, request)
    }
    case 'delete policy':
      return client.call(policyOperations.delete, { policy_uuid: step.uuid }, callOptions())
    case 'delete asset':
      return client.call(assetOperations.delete, { asset_id: step.id }, callOptions())
  }
}

/** The request names all of an asset, so what the file leaves out is read first and stays. */
async function replaceAsset(
  { id: asset_id, body }: Step & { do: 'replace asset' },
  { client, callOptions }: Api,
): Promise<unknown> {
  const { assets_group_id: _group, ...asset } = body
  const now = await client.call(assetOperations.get, { asset_id }, callOptions())
  // an identity is shown by its uuid, which is not written
  const data = asset.type === 'identity' ? asset.data : { ...now.data, ...asset.data }
  const whole = { ...now, ...asset, data } as AssetReplacement
  return client.call(assetOperations.replace, { asset_id, ...whole }, callOptions())
}

function identifiersOf(
  { assets }: { assets: readonly string[] },
  known: KnownIds,
): { identifier_ids: number[] } {
  return { identifier_ids: assets.flatMap((key) => known.assets.get(key) ?? []) }
}
