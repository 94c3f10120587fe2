/**
 * Which steps bring the service from what it is to what the file asks for; pure. No step takes a policy
 * from an asset before its successor is there; nothing is planned that is so already.
 */
import { canonicalJson } from '../../feed-types/field-reader.ts'
import type { Finding } from '../../lib/config-fields.ts'
import { CommandError } from '../terminal.ts'
import type { Wanted, WantedAsset, WantedPolicy } from './monitoring-file.ts'
import {
  assetIn,
  isUnseen,
  type KnownAsset,
  type KnownPolicy,
  type MonitoringState,
  type PolicyContent,
  policyIn,
} from './state-file.ts'

/** In the order in which steps are taken. */
const order: readonly Step['do'][] = [
  'create policy',
  'disable asset',
  'create asset',
  'replace asset',
  'update policy',
  'assign policy',
  'assign to others',
  'unassign policy',
  'enable asset',
  'delete policy',
]

export function planChanges(scene: Scene): Step[] {
  const { wanted, state } = scene
  const steps = [
    ...wanted.policies.flatMap((policy) => policySteps(policy, scene)),
    ...wanted.assets.flatMap((asset) => assetSteps(asset, assetIn(state, asset.key))),
    ...leftAssets(scene),
    ...policyDeletions(scene),
  ]
  return steps.toSorted((left, right) => placeOf(left) - placeOf(right))
}

function placeOf(step: Step): number {
  const isOfNew = step.do === 'disable asset' && step.id === undefined
  return order.indexOf(isOfNew ? 'create asset' : step.do)
}

/** Of one that was adopted nothing is known, and nothing planned, until somebody has looked at it. */
function assetSteps(asset: WantedAsset, known: KnownAsset | undefined): Step[] {
  const { key } = asset
  if (known === undefined) {
    const off: Step[] = asset.enabled === false ? [{ do: 'disable asset', key, why: 'asked' }] : []
    return [{ do: 'create asset', asset }, ...off]
  }
  if (isUnseen(known)) return []
  const { id, disabled } = known
  const isOn = shallBeOn(asset, known)
  const verb = isOn ? 'enable asset' : 'disable asset'
  const switched: Step[] = disabled === isOn ? [{ do: verb, key, id, why: 'asked' }] : []
  const fields = changedFields(asset, known)
  return fields.length === 0 ? switched : [...switched, { do: 'replace asset', asset, id, fields }]
}

/** Where the file does not say, what somebody else has disabled stays so. */
function shallBeOn({ enabled }: WantedAsset, known: KnownAsset): boolean {
  return enabled ?? (known.disabled_by_file || known.disabled !== true)
}

/** The group counts at its creation alone. */
function changedFields({ written }: WantedAsset, known: KnownAsset): string[] {
  return Object.keys(written)
    .filter((field) => field !== 'assets_group_id')
    .filter((field) => canonicalJson(known.written?.[field]) !== canonicalJson(written[field]))
}

/** The API deletes no asset. */
function leftAssets({ wanted, state, actual }: Scene): Step[] {
  const named = new Set(wanted.assets.map(({ key }) => key))
  return Object.entries(state.assets)
    .filter(
      ([key, { id, disabled }]) => !named.has(key) && disabled !== true && !actual.gone.has(id),
    )
    .map(([key, { id }]) => ({ do: 'disable asset', key, id, why: 'left' }))
}

/**
 * A policy of the file: created and assigned, or changed. The description has neither a change nor an
 * un-assignment: where the server has none beyond it, another policy is created and assigned, and the
 * old one deleted.
 */
function policySteps(policy: WantedPolicy, scene: Scene): Step[] {
  const { key } = policy
  const known = policyIn(scene.state, key)
  if (known === undefined) {
    return [{ do: 'create policy', policy, why: 'new' }, ...assignment(key, assetsWith(key, scene))]
  }
  const { uuid } = known
  const { update, unassign } = scene.actual.can
  const there = scene.actual.policies.get(uuid)
  const why = changeOf(policy, known, there)
  const wrong = wronglyAssigned(key, uuid, scene)
  const canChange = why === undefined || (update && there?.type === policy.body.type)
  if (!canChange || (wrong.length > 0 && !unassign)) {
    return [
      { do: 'create policy', policy, why: why ?? 'unassign', instead: uuid },
      ...assignment(key, assetsWith(key, scene)),
      ...assignmentToOthers(key, [uuid], scene),
      deletion({ key, uuid, why: 'replaced' }, scene),
    ]
  }
  const missing = assetsWith(key, scene).filter((asset) => !hasPolicy(asset, uuid, scene))
  const taken = missing.filter((asset) => isAssignedByUs(asset, key, scene))
  const others = othersWith(uuid, scene)
  return [
    ...(why === undefined ? [] : [{ do: 'update policy' as const, policy, uuid, why, others }]),
    ...assignment(key, missing, taken),
    ...assignmentToOthers(key, [], scene),
    ...unassignment(key, uuid, wrong, scene),
  ]
}

/** Those that left the file, and those whose successors are there; after all else. */
function policyDeletions(scene: Scene): Step[] {
  const { wanted, state } = scene
  const named = new Set(wanted.policies.map(({ key }) => key))
  const left = Object.entries(state.policies).filter(([key]) => !named.has(key))
  return [
    ...state.retired.map(({ name: key, uuid }) => deletion({ key, uuid, why: 'replaced' }, scene)),
    ...left.map(([key, { uuid }]) => deletion({ key, uuid, why: 'left' }, scene)),
  ]
}

function deletion(
  { key, uuid, why }: { key: string; uuid: string; why: 'left' | 'replaced' },
  scene: Scene,
): Step {
  const others = othersWith(uuid, scene)
  const isReplaced = scene.wanted.policies.some((policy) => policy.key === key)
  const losers: Others = isReplaced && others !== 'unknown' ? [] : others
  return { do: 'delete policy', key, uuid, why, losers }
}

/** Of what they have in its place nobody but them knows, so it is not taken from them. */
function assignmentToOthers(key: string, replaced: readonly string[], scene: Scene): Step[] {
  const before = scene.state.retired.filter(({ name }) => name === key).map(({ uuid }) => uuid)
  const ids = [...replaced, ...before].flatMap((uuid) => knownOthersWith(uuid, scene))
  return ids.length === 0 ? [] : [{ do: 'assign to others', key, ids: [...new Set(ids)] }]
}

function assignment(
  key: string,
  assets: readonly string[],
  drifted: readonly string[] = [],
): Step[] {
  return assets.length === 0 ? [] : [{ do: 'assign policy', key, assets, drifted }]
}

function unassignment(key: string, uuid: string, assets: readonly string[], scene: Scene): Step[] {
  if (assets.length === 0) return []
  const drifted = assets.filter((asset) => !isAssignedByUs(asset, key, scene))
  return [{ do: 'unassign policy', key, uuid, assets, drifted }]
}

/** What the service made of a value, such as a default that it added, is no change. */
function changeOf(
  { body }: WantedPolicy,
  { written, returned }: KnownPolicy,
  there: PolicyContent | undefined,
): WhyPolicy | undefined {
  if (there === undefined) return 'drifted'
  if (isSame(there, body)) return undefined
  if (written === null || returned === null || !isSame(written, body)) return 'changed'
  return isSame(returned, there) ? undefined : 'drifted'
}

export function isSame(left: PolicyContent, right: PolicyContent): boolean {
  return contentText(left) === contentText(right)
}

function contentText({ name, type, value }: PolicyContent): string {
  return canonicalJson({ name, type, value })
}

function assetsWith(policy: string, { wanted }: Scene): string[] {
  return wanted.assets.filter(({ policies }) => policies.includes(policy)).map(({ key }) => key)
}

function hasPolicy(asset: string, uuid: string, { state, actual }: Scene): boolean {
  const known = assetIn(state, asset)
  return known !== undefined && (actual.assigned.get(known.id) ?? []).includes(uuid)
}

function isAssignedByUs(asset: string, policy: string, { state }: Scene): boolean {
  return assetIn(state, asset)?.policies.includes(policy) ?? false
}

/** Assets of the file that have the policy and shall not. */
function wronglyAssigned(policy: string, uuid: string, scene: Scene): string[] {
  return scene.wanted.assets
    .filter(({ key, policies }) => !policies.includes(policy) && hasPolicy(key, uuid, scene))
    .map(({ key }) => key)
}

/** What `assets apply` may do, one thing at a time; and what it must know before it plans. */

/** What the service said before anything is planned. */
export interface Actual {
  /** Of each identifier the uuids of its policies. */
  assigned: ReadonlyMap<number, readonly string[]>
  /** Of the policies that the state knows, or the operator names, those that are there. */
  policies: ReadonlyMap<string, PolicyContent>
  /** Ids of assets that are not there. */
  gone: ReadonlySet<number>
  /** To which identifiers a policy is assigned, whoever did it; none of one that the server does not tell. */
  holders: ReadonlyMap<string, readonly number[]>
  can: Capabilities
}

/** Operations that the description does not have and a server may. */
interface Capabilities {
  update: boolean
  unassign: boolean
}

/** What a plan is made from. */
export interface Scene {
  wanted: Wanted
  state: MonitoringState
  actual: Actual
}

export type WhyPolicy = 'new' | 'changed' | 'drifted' | 'unassign'

/** Identifiers that are not of the file; `unknown`: the server does not tell. */
export type Others = readonly number[] | 'unknown'

export type Step =
  /** `instead`: uuid of the one whose place it takes. */
  | { do: 'create policy'; policy: WantedPolicy; why: WhyPolicy; instead?: string }
  | { do: 'create asset'; asset: WantedAsset }
  | { do: 'replace asset'; asset: WantedAsset; id: number; fields: readonly string[] }
  /** `id` is open of an asset that another step creates. */
  | { do: 'enable asset' | 'disable asset'; key: string; id?: number; why: 'asked' | 'left' }
  /** `others` have it too. */
  | { do: 'update policy'; policy: WantedPolicy; uuid: string; why: WhyPolicy; others: Others }
  /** Keys of assets, whose ids another step may bring; `drifted`: what somebody else has changed. */
  | { do: 'assign policy'; key: string; assets: readonly string[]; drifted: readonly string[] }
  /** Those that have the policy whose place it takes, and are not of the file. */
  | { do: 'assign to others'; key: string; ids: readonly number[] }
  | {
      do: 'unassign policy'
      key: string
      uuid: string
      assets: readonly string[]
      drifted: readonly string[]
    }
  /** `losers`: those that have it, and no successor. */
  | { do: 'delete policy'; key: string; uuid: string; why: 'left' | 'replaced'; losers: Others }

export type StepOf<Kind extends Step['do']> = Extract<Step, { do: Kind }>

/** What the file asks for and the API has no operation for; found before anything is sent. */
export function impossibleChanges(
  wanted: Wanted,
  state: MonitoringState,
  steps: readonly Step[],
): Finding[] {
  return [...groupChanges(wanted, state), ...creationOnlyWords(steps)]
}

function groupChanges({ assets }: Wanted, state: MonitoringState): Finding[] {
  return assets.flatMap(({ key, written: { assets_group_id: group } }) => {
    const before = assetIn(state, key)?.written
    if (!before || group === undefined || before['assets_group_id'] === group) return []
    const was = before['assets_group_id']
    const problem = 'it was created elsewhere, and the API moves no asset'
    const remedy = typeof was === 'number' ? `write ${was}` : 'remove the line'
    return [{ path: ['assets', key, 'group'], problem, remedy }]
  })
}

/** Finds `ad` and `ads` where an asset is replaced: only a creation takes them (docs/api-notes.md, Assets). */
function creationOnlyWords(steps: readonly Step[]): Finding[] {
  return steps.flatMap((step) => {
    if (step.do !== 'replace asset') return []
    const { key, body } = step.asset
    return body.search_types.flatMap((word, index) =>
      word === 'ad' || word === 'ads'
        ? [
            {
              path: ['assets', key, 'search_types', index],
              problem: `"${word}" may be given when an asset is created, and this one must be replaced (${step.fields.join(', ')})`,
              remedy: 'remove the word, or take the change back',
            },
          ]
        : [],
    )
  })
}

/** What has a policy and is not of the file. */
function othersWith(uuid: string, scene: Scene): Others {
  const { policies, holders } = scene.actual
  if (!policies.has(uuid)) return []
  const ids = holders.get(uuid)
  return ids === undefined ? 'unknown' : notOfFile(ids, scene)
}

/** Those of them that are known by whatever way: an asset that left the file is always. */
function knownOthersWith(uuid: string, scene: Scene): number[] {
  const others = othersWith(uuid, scene)
  const { assigned, gone } = scene.actual
  const found = [...assigned].flatMap(([id, uuids]) =>
    uuids.includes(uuid) && !gone.has(id) ? [id] : [],
  )
  return notOfFile([...new Set([...(others === 'unknown' ? [] : others), ...found])], scene)
}

function notOfFile(ids: readonly number[], { wanted, state }: Scene): number[] {
  const named = new Set(wanted.assets.map(({ key }) => key))
  const known = Object.entries(state.assets).filter(([key]) => named.has(key))
  const own = new Set(known.map(([, { id }]) => id))
  return ids.filter((id) => !own.has(id)).toSorted((left, right) => left - right)
}

/** What the service no longer has, or has without the state knowing: signs of a state that is older than it. */

/** Throws CommandError where an asset or policy of the file is no longer at the service. */
export function refuseGone(scene: Scene): void {
  const { wanted, state, actual } = scene
  const assets = wanted.assets.flatMap(({ key }) => {
    const id = assetIn(state, key)?.id
    return id !== undefined && actual.gone.has(id) ? [{ key, what: `${key} (${id})` }] : []
  })
  const policies = wanted.policies.flatMap((policy) => {
    const { key } = policy
    const uuid = policyIn(state, key)?.uuid
    const isGone = uuid !== undefined && !actual.policies.has(uuid)
    return isGone
      ? [{ key, what: `policy ${key} (${uuid})`, found: namesakesOf(policy, scene) }]
      : []
  })
  const lost = [...assets, ...policies]
  if (lost.length === 0) return
  const adopt = policies.flatMap(({ key, found }) => found.map((uuid) => `--adopt ${key}=${uuid}`))
  const options = [...new Set(lost.map(({ key }) => `--create-again ${key}`))].join(' ')
  throw new CommandError(
    'refused',
    `the service no longer has ${lost.map(({ what }) => what).join(', ')}: ` +
      'is it the right tenant, and the state not older than the service? ' +
      (adopt.length > 0
        ? `An asset of the file has one of that name: say ${adopt.join(' ')}. `
        : '') +
      `To create anew, say ${options}`,
  )
}

/** Throws CommandError where a policy is to be created that an asset of the file has already. */
export function refuseTwins(scene: Scene, createAgain: readonly string[] = []): void {
  const [twin] = scene.wanted.policies
    .filter(({ key }) => policyIn(scene.state, key) === undefined && !createAgain.includes(key))
    .flatMap(({ key }) => twinsOf(key, scene).map((uuid) => ({ key, uuid })))
  if (twin === undefined) return
  const { key, uuid } = twin
  throw new CommandError(
    'refused',
    `policy ${key}: an asset of the file has one of the same name and content (${uuid}) that the ` +
      `state does not know: is the state older than the service? Adopt it with --adopt ${key}=${uuid}, ` +
      `or say --create-again ${key} for another one`,
  )
}

/** Uuids of policies of the same name and content, which an asset of the file has and the state does not know. */
export function twinsOf(key: string, scene: Scene): string[] {
  const policy = scene.wanted.policies.find((one) => one.key === key)
  if (policy === undefined) return []
  return namesakesOf(policy, scene).filter((uuid) => {
    const there = scene.actual.policies.get(uuid)
    return there?.type === policy.body.type && holds(there, policy.body)
  })
}

function namesakesOf({ body }: WantedPolicy, scene: Scene): string[] {
  const { wanted, state, actual } = scene
  const ids = wanted.assets.flatMap(({ key }) => assetIn(state, key)?.id ?? [])
  const uuids = new Set(ids.flatMap((id) => actual.assigned.get(id) ?? []))
  const own = ownUuids(state)
  return [...uuids].filter(
    (uuid) => !own.has(uuid) && actual.policies.get(uuid)?.name === body.name,
  )
}

/** Of the policies that the state knows, those whose successors are there included. */
export function ownUuids({ policies, retired }: MonitoringState): Set<string> {
  return new Set([...Object.values(policies), ...retired].map(({ uuid }) => uuid))
}

/** The service may have added a default. */
function holds(there: PolicyContent, body: PolicyContent): boolean {
  return Object.entries(body.value).every(
    ([field, value]) => canonicalJson(there.value[field]) === canonicalJson(value),
  )
}
