/** All requests of `monitoring`: reads what the service has, and carries out the steps of a plan. */
import { assetOperations, type AssetReplacement } from '../../upstream/resources/assets.ts'
import { identifierOperations, olderIdentifier } from '../../upstream/resources/identifiers.ts'
import type { Fields, Operation, SearchPage } from '../../upstream/resources/operation.ts'
import { policyOperations, wireAssignee, wirePolicy } from '../../upstream/resources/policies.ts'
import { type ApiContext, callRow, nameFailure } from '../api/api-command.ts'
import { CommandError, sanitize } from '../terminal.ts'
import type { DesiredState } from './monitoring-file.ts'
import { type Actual, type ActualAsset, type ActualPolicy, identityOf, type Step } from './plan.ts'

type Api = Pick<ApiContext, 'client' | 'callOptions'>

/** Reads all assets and policies of the tenant, and who has the policies that the file names. */
export async function readActual(api: Api, desired: DesiredState): Promise<Actual> {
  const assets = await readAssets(api)
  if (desired.policies.length === 0) return { assets, policies: [], assigned: new Map() }
  const policies = (await readAll(api, policyOperations.list, {})).map(toPolicy)
  const assigned = new Map<string, number[]>()
  const named = new Set(desired.policies.map(({ body }) => identityOf(body)))
  for (const policy of policies.filter((one) => named.has(identityOf(one)))) {
    const request = { policy_uuid: policy.uuid }
    const found = await readAll(api, policyOperations.assignments, request)
    assigned.set(
      policy.uuid,
      found.map((listed) => toAssignee(listed, policy.uuid)),
    )
  }
  return { assets, policies, assigned }
}

/** v3 has all types of assets, of which v4 knows nine; each list is of one state. */
async function readAssets(api: Api): Promise<ActualAsset[]> {
  const lists = [false, true].map(async (isDisabled) => {
    const request = { order_by: 'id', is_disabled: isDisabled, size: pageSize } as const
    const rows = await readAll(api, identifierOperations.listOlder, request)
    return rows.map((row) => toAsset(row, isDisabled))
  })
  const assets = (await Promise.all(lists)).flat().toReversed() // of one in both lists the first counts
  return [...new Map(assets.map((asset) => [asset.id, asset])).values()].toReversed()
}

/** v3 states no largest page (docs/api-notes.md, Page sizes). */
const pageSize = 100

/** Throws CommandError for pages without an end: what is left out would be created again. */
async function readAll<Request>(
  api: Api,
  row: Operation<Request, SearchPage>,
  request: Request,
): Promise<unknown[]> {
  const all: unknown[] = []
  const seen = new Set<string | null>()
  for (let from: string | null = null; !seen.has(from);) {
    seen.add(from)
    const { page }: SearchPage = await callRow(api, row, { ...request, from })
    all.push(...page.items)
    const next: string | null = page.next ?? null
    if (next === null || (next === from && page.items.length === 0)) return all
    from = next
  }
  throw new CommandError('refused', 'the pages of the list have no end')
}

/** Throws CommandError for a field that is there and cannot be read, which would count as empty. */
function toAsset(listed: unknown, isDisabled: boolean): ActualAsset {
  const given = (typeof listed === 'object' ? listed : null) as Fields | null
  const row = olderIdentifier.safeParse(given).data
  if (!row) throw unreadable('asset', given?.['id'], 'id')
  const { id, name, type, data, search_types, risks, experimental_search_types: further } = row
  const lost = Object.entries({
    type,
    data,
    search_types,
    risks,
    experimental_search_types: further,
  })
    .map(([field, value]) => (value === null && given?.[field] !== null ? field : undefined))
    .find((field) => field !== undefined)
  if (lost !== undefined || !data || !type) {
    throw unreadable('asset', id, lost ?? (data ? 'type' : 'data'))
  }
  return {
    id,
    name: name ?? '',
    type,
    data,
    isDisabled: row.is_disabled ?? isDisabled,
    search_types: search_types ?? [],
    risks: risks ?? [],
    experimental_search_types: further ?? [],
  }
}

function unreadable(thing: string, id: unknown, field: string): CommandError {
  const remedy = 'read it with "tocsin api", and change it at the service'
  return new CommandError(
    'refused',
    `${thing} ${sanitize(JSON.stringify(id) ?? '')} of the service: ${sanitize(field)} is not readable; ${remedy}`,
  )
}

function toPolicy(listed: unknown): ActualPolicy {
  const { data, error } = wirePolicy.safeParse(listed)
  if (!data) {
    const field = String(error.issues[0]?.path[0])
    throw unreadable('policy', (listed as Fields | null)?.['uuid'], field)
  }
  const { uuid, name, policy_type: type, value } = data
  return { uuid, name, type, value: value ?? {} }
}

function toAssignee(listed: unknown, policy: string): number {
  const { data } = wireAssignee.safeParse(listed)
  if (!data) throw unreadable('assignment of policy', policy, 'identifier_id')
  return data.identifier_id
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
  const call = <Request, Result>(row: Operation<Request, Result>, request: Request) =>
    callRow(api, row, request)
  switch (step.do) {
    case 'create asset': {
      const { id } = await call(assetOperations.create, step.body)
      return known.assets.set(step.key, id)
    }
    case 'replace asset':
      return replaceAsset(step, api)
    case 'enable asset':
    case 'disable asset': {
      const asset_id = known.assets.get(step.key) ?? 0
      const request = { asset_id, is_disabled: step.do === 'disable asset' }
      return call(assetOperations.toggle, request)
    }
    case 'create policy': {
      const { uuid } = await call(policyOperations.create, step.body)
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
      return call(policyOperations.assign, request)
    }
    case 'unassign policy': {
      const request = { policy_uuid: step.uuid, ...identifiersOf(step, known) }
      return call(policyOperations.unassign, request)
    }
    case 'delete policy':
      return call(policyOperations.delete, { policy_uuid: step.uuid })
    case 'delete asset':
      return call(assetOperations.delete, { asset_id: step.id })
  }
}

/** The request names all of an asset, so what the file leaves out is read first and stays. */
async function replaceAsset(
  { id: asset_id, body }: Step & { do: 'replace asset' },
  api: Api,
): Promise<unknown> {
  const { assets_group_id: _group, ...asset } = body
  const now = await callRow(api, assetOperations.get, { asset_id })
  // an identity is shown by its uuid, which is not written
  const data = asset.type === 'identity' ? asset.data : { ...now.data, ...asset.data }
  const whole = { ...now, ...asset, data } as AssetReplacement
  return callRow(api, assetOperations.replace, { asset_id, ...whole })
}

function identifiersOf(
  { assets }: { assets: readonly string[] },
  known: KnownIds,
): { identifier_ids: number[] } {
  return { identifier_ids: assets.flatMap((key) => known.assets.get(key) ?? []) }
}
