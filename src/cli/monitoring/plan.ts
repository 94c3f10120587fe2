/**
 * Compares what the file asks for with what the service has, by type and name, and plans the steps
 * from one to the other; pure. An asset is enabled after it has its policies.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Finding } from '../../lib/config/config-fields.ts'
import type { AssetCreation } from '../../upstream/resources/assets.ts'
import type { PolicyCreation } from '../../upstream/resources/policies.ts'
import type { DesiredAsset, DesiredPolicy, DesiredState } from './monitoring-file.ts'

/** What the service has. */
export interface Actual {
  assets: readonly ActualAsset[]
  policies: readonly ActualPolicy[]
  /** Ids of the assets that have a policy, by its uuid. */
  assigned: ReadonlyMap<string, readonly number[]>
}

export interface ActualAsset {
  id: number
  name: string
  type: string
  data: Readonly<Record<string, unknown>>
  isDisabled: boolean
  search_types: readonly string[]
  risks: readonly number[]
  experimental_search_types: readonly string[]
}

export interface ActualPolicy {
  uuid: string
  name: string
  type: string
  value: Readonly<Record<string, unknown>>
}

/** `key`: the key in the file; of what is deleted, its id. `assets`: keys in the file. */
export type Step =
  | { do: 'create asset'; key: string; body: AssetCreation }
  | { do: 'replace asset'; key: string; id: number; fields: string[]; body: AssetCreation }
  | { do: 'enable asset' | 'disable asset'; key: string }
  | { do: 'create policy'; key: string; body: PolicyCreation }
  | { do: 'update policy'; key: string; uuid: string; body: PolicyCreation }
  | { do: 'assign policy'; key: string; assets: string[]; clean_past_events: boolean }
  | { do: 'unassign policy'; key: string; uuid: string; assets: string[] }
  | { do: 'delete policy'; key: string; uuid: string; type: string; name: string }
  | { do: 'delete asset'; key: string; id: number; type: string; name: string }

/** Policies come first: no asset is watched without those that it is to have for longer than needed. */
const stepOrder: readonly Step['do'][] = [
  'create policy',
  'update policy',
  'create asset',
  'disable asset',
  'replace asset',
  'assign policy',
  'unassign policy',
  'enable asset',
  'delete policy',
  'delete asset',
]

export interface Plan {
  steps: readonly Step[]
  /** What the file asks for and the server cannot do. */
  findings: readonly Finding[]
  /** How many assets and policies of the service the file does not name. */
  unnamed: { assets: number; policies: number }
  assets: Map<string, number>
  policies: Map<string, string>
}

/** What the service calls the same thing. */
export function identityOf({ type, name }: { type: string; name: string }): string {
  return `${type} ${name}`
}

export function planChanges(desired: DesiredState, actual: Actual, prune = false): Plan {
  const assets = matchUp(desired.assets, actual.assets, 'assets')
  const policies = matchUp(desired.policies, actual.policies, 'policies')
  const pairs = { assets: assets.pairs, policies: policies.pairs }
  const ofAssets = desired.assets.flatMap((one) => planAsset(one, assets.pairs.get(one.key)))
  const ofPolicies = desired.policies.flatMap((one) => planPolicy(one, pairs, { desired, actual }))
  const deletions = prune
    ? [...deletePolicies(policies.others), ...deleteAssets(assets.others)]
    : []
  const steps = [...ofAssets, ...ofPolicies, ...deletions]
  return {
    steps: steps.toSorted((one, other) => stepOrder.indexOf(one.do) - stepOrder.indexOf(other.do)),
    findings: [...assets.findings, ...policies.findings],
    unnamed: { assets: assets.others.length, policies: policies.others.length },
    assets: new Map([...assets.pairs].map(([key, { id }]) => [key, id])),
    policies: new Map([...policies.pairs].map(([key, { uuid }]) => [key, uuid])),
  }
}

interface Matched<Thing> {
  findings: Finding[]
  /** By the key in the file. */
  pairs: Map<string, Thing>
  /** What the file does not name; none where the file has no such section. */
  others: Thing[]
}

function matchUp<Thing extends { type: string; name: string }>(
  desired: readonly { key: string; body: { type: string; name: string } }[],
  actual: readonly Thing[],
  section: string,
): Matched<Thing> {
  const byIdentity = Map.groupBy(actual, identityOf)
  const keys = new Map(desired.map(({ key, body }) => [identityOf(body), key]))
  const found = [...keys].map(([identity, key]) => ({ key, all: byIdentity.get(identity) ?? [] }))
  return {
    pairs: new Map(found.flatMap(({ key, all: [one] }) => (one ? [[key, one]] : []))),
    others: desired.length === 0 ? [] : actual.filter((thing) => !keys.has(identityOf(thing))),
    findings: found
      .filter(({ all }) => all.length > 1)
      .map(({ key, all }) => ({
        path: [section, key],
        problem: `the service has ${all.length} of this type and name`,
        remedy: 'rename or delete all but one there',
      })),
  }
}

function planAsset({ key, body, enabled }: DesiredAsset, there: ActualAsset | undefined): Step[] {
  if (there === undefined) {
    const off: Step[] = enabled === false ? [{ do: 'disable asset', key }] : []
    return [{ do: 'create asset', key, body }, ...off]
  }
  const { id } = there
  const fields = changedFields(body, there)
  const isSwitched = enabled !== undefined && enabled === there.isDisabled
  return [
    ...(fields.length > 0 ? [{ do: 'replace asset', key, id, fields, body } as const] : []),
    ...(isSwitched ? [{ do: enabled ? 'enable asset' : 'disable asset', key } as const] : []),
  ]
}

function changedFields(body: AssetCreation, there: ActualAsset): string[] {
  const lists = (['search_types', 'risks', 'experimental_search_types'] as const).filter(
    (field) => body[field] !== undefined && !isAlike(body[field], there[field]),
  )
  return [...changedData(body, there).map((field) => `data.${field}`), ...lists]
}

/** The API does not give a secret back, and not always what an identity consists of. */
function changedData({ type, data }: AssetCreation, there: ActualAsset): string[] {
  if (type === 'secret' || (type === 'identity' && !('attributes' in there.data))) return []
  return changedKeys(data, there.data).filter((field) => field !== 'type')
}

/** What the service adds is no change. */
function changedKeys(
  wanted: Readonly<Record<string, unknown>>,
  there: Readonly<Record<string, unknown>>,
): string[] {
  return Object.keys(wanted).filter((key) => !isAlike(wanted[key], there[key]))
}

/** A list is compared as a set. */
function isAlike(one: unknown, other: unknown): boolean {
  const toSet = (value: unknown): unknown => (Array.isArray(value) ? new Set(value) : value)
  return isDeepStrictEqual(toSet(one), toSet(other))
}

interface Pairs {
  assets: ReadonlyMap<string, ActualAsset>
  policies: ReadonlyMap<string, ActualPolicy>
}

function planPolicy(
  { key, body }: DesiredPolicy,
  { assets, policies }: Pairs,
  { desired, actual }: { desired: DesiredState; actual: Actual },
): Step[] {
  const there = policies.get(key)
  const isChanged = there !== undefined && changedKeys(body.value, there.value).length > 0
  const hasIt = (asset: DesiredAsset): boolean => {
    const id = assets.get(asset.key)?.id ?? 0
    return there !== undefined && (actual.assigned.get(there.uuid) ?? []).includes(id)
  }
  const wants = ({ policies: wanted }: DesiredAsset): boolean => wanted.includes(key)
  const keysOf = (some: DesiredAsset[]): string[] => some.map((asset) => asset.key)
  const without = keysOf(desired.assets.filter((asset) => wants(asset) && !hasIt(asset)))
  const within = keysOf(desired.assets.filter((asset) => !wants(asset) && hasIt(asset)))
  const uuid = there?.uuid ?? ''
  const clean_past_events = desired.cleanPastEvents
  return [
    ...(there === undefined ? [{ do: 'create policy', key, body } as const] : []),
    ...(isChanged ? [{ do: 'update policy', key, uuid, body } as const] : []),
    ...(without.length > 0
      ? [{ do: 'assign policy', key, assets: without, clean_past_events } as const]
      : []),
    ...(within.length > 0 ? [{ do: 'unassign policy', key, uuid, assets: within } as const] : []),
  ]
}

function deletePolicies(policies: readonly ActualPolicy[]): Step[] {
  return policies.map(({ uuid, type, name }) => ({
    do: 'delete policy',
    key: uuid,
    uuid,
    type,
    name,
  }))
}

function deleteAssets(assets: readonly ActualAsset[]): Step[] {
  return assets.map(({ id, type, name }) => ({
    do: 'delete asset',
    key: String(id),
    id,
    type,
    name,
  }))
}
