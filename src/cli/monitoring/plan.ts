/**
 * Plans the steps from what the API has to what the file asks for; pure. No step takes a policy
 * from an asset before its successor is assigned, and nothing is planned that is already so.
 */
import { canonicalJson } from '../../feed-types/field-reader.ts'
import type { Finding } from '../../lib/config-fields.ts'
import type { WireAsset } from '../../upstream/resources/assets.ts'
import { CommandError } from '../terminal.ts'
import type { DesiredState, DesiredAsset, DesiredPolicy } from './monitoring-file.ts'
import {
  findAsset,
  isUnseen,
  type KnownAsset,
  type KnownPolicy,
  type MonitoringState,
  type PolicyContent,
  findPolicy,
} from './state-file.ts'

/** The order in which steps run. */
const stepOrder: readonly Step['do'][] = [
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

export function planChanges(input: PlanInput): Step[] {
  const { desired } = input
  const steps = [
    ...desired.policies.flatMap((policy) => policySteps(policy, input)),
    ...desired.assets.flatMap((asset) => assetSteps(asset, input)),
    ...leftAssetSteps(input),
    ...policyDeletions(input),
  ]
  return steps.toSorted((left, right) => stepRank(left) - stepRank(right))
}

function stepRank(step: Step): number {
  const isNewAsset = step.do === 'disable asset' && step.id === undefined
  return stepOrder.indexOf(isNewAsset ? 'create asset' : step.do)
}

/** Plans nothing for an adopted asset until it was inspected: its content is unknown. */
function assetSteps(asset: DesiredAsset, { state, actual }: PlanInput): Step[] {
  const { key } = asset
  const known = findAsset(state, key)
  if (known === undefined) {
    const off: Step[] = asset.enabled === false ? [{ do: 'disable asset', key, why: 'asked' }] : []
    return [{ do: 'create asset', asset }, ...off]
  }
  if (isUnseen(known)) return []
  const { id } = known
  const fields = changedFields(asset, known)
  const switched = switchSteps(asset, known)
  if (fields.length === 0) return switched
  const drifted = fields.filter((field) => known.written?.[field] === null)
  const isBlind = !actual.assets.has(id)
  const replace: Step = {
    do: 'replace asset',
    asset,
    id,
    fields,
    drifted: drifted.map((field) => ({ field, now: known.returned?.[field] })),
    isBlind,
  }
  return [...switched, replace]
}

function switchSteps(asset: DesiredAsset, known: KnownAsset): Step[] {
  const { id, disabled, disabled_by_file: isByFile } = known
  const isEnabled = shouldBeEnabled(asset, known)
  if (disabled !== isEnabled) return []
  const verb = isEnabled ? 'enable asset' : 'disable asset'
  // The file switches back what somebody else has switched.
  const why = isByFile === isEnabled ? 'asked' : 'drifted'
  return [{ do: verb, key: asset.key, id, why }]
}

/** When the file does not say, an asset that somebody else disabled stays disabled. */
function shouldBeEnabled({ enabled }: DesiredAsset, known: KnownAsset): boolean {
  return enabled ?? (known.disabled_by_file || known.disabled !== true)
}

/** The group counts only when the asset is created. */
function changedFields({ written }: DesiredAsset, known: KnownAsset): string[] {
  return Object.keys(written)
    .filter((field) => field !== 'assets_group_id')
    .filter((field) => canonicalJson(known.written?.[field]) !== canonicalJson(written[field]))
}

/** Disables assets that left the file: deleting one may delete what it found. */
function leftAssetSteps({ desired, state, actual }: PlanInput): Step[] {
  const named = new Set(desired.assets.map(({ key }) => key))
  return Object.entries(state.assets)
    .filter(
      ([key, { id, disabled }]) =>
        !named.has(key) && disabled !== true && !actual.missingAssets.has(id),
    )
    .map(([key, { id, disabled_by_file: isByFile }]) => {
      const why = isByFile ? 'left, and enabled again' : 'left'
      return { do: 'disable asset', key, id, why }
    })
}

/**
 * Creates and assigns, or changes, a policy of the file. The documented API neither changes nor
 * unassigns a policy: unless the server can, a new policy is created and assigned, and the old one
 * deleted.
 */
function policySteps(policy: DesiredPolicy, input: PlanInput): Step[] {
  const { key } = policy
  const known = findPolicy(input.state, key)
  if (known === undefined) {
    return [
      { do: 'create policy', policy, why: 'new' },
      ...assignmentSteps(key, assetsWith(key, input)),
    ]
  }
  const { uuid } = known
  const { update, unassign } = input.actual.capabilities
  const there = input.actual.policies.get(uuid)
  const why = findPolicyChange(policy, known, there)
  const wrong = findWronglyAssigned(key, uuid, input)
  const canChange = why === undefined || (update && there?.type === policy.body.type)
  if (!canChange || (wrong.length > 0 && !unassign)) {
    return [
      { do: 'create policy', policy, why: why ?? 'unassign', instead: uuid },
      ...assignmentSteps(key, assetsWith(key, input)),
      ...assignmentToOthersSteps(key, [uuid], input),
      deletionStep({ key, uuid, why: 'replaced' }, input),
    ]
  }
  const missing = assetsWith(key, input).filter((asset) => !hasPolicy(asset, uuid, input))
  const taken = missing.filter((asset) => isAssignedByUs(asset, key, input))
  const others = findOtherHolders(uuid, input)
  return [
    ...(why === undefined ? [] : [{ do: 'update policy' as const, policy, uuid, why, others }]),
    ...assignmentSteps(key, missing, taken),
    ...assignmentToOthersSteps(key, [], input),
    ...unassignmentSteps(key, uuid, wrong, input),
  ]
}

/** Deletes policies that left the file or were replaced; runs after all other steps. */
function policyDeletions(input: PlanInput): Step[] {
  const { desired, state } = input
  const named = new Set(desired.policies.map(({ key }) => key))
  const left = Object.entries(state.policies).filter(([key]) => !named.has(key))
  return [
    ...state.retired.map(({ name: key, uuid }) =>
      deletionStep({ key, uuid, why: 'replaced' }, input),
    ),
    ...left.map(([key, { uuid }]) => deletionStep({ key, uuid, why: 'left' }, input)),
  ]
}

function deletionStep(
  { key, uuid, why }: { key: string; uuid: string; why: 'left' | 'replaced' },
  input: PlanInput,
): Step {
  const others = findOtherHolders(uuid, input)
  const isReplaced = input.desired.policies.some((policy) => policy.key === key)
  const losers: OtherHolders = isReplaced && others !== 'unknown' ? [] : others
  return { do: 'delete policy', key, uuid, why, losers }
}

/**
 * Assigns a new policy to holders that are not of the file too: only their owners know what else
 * they have, so the policy is not taken from them.
 */
function assignmentToOthersSteps(
  key: string,
  replaced: readonly string[],
  input: PlanInput,
): Step[] {
  const before = input.state.retired.filter(({ name }) => name === key).map(({ uuid }) => uuid)
  const ids = [...replaced, ...before].flatMap((uuid) => findKnownHolders(uuid, input))
  return ids.length === 0 ? [] : [{ do: 'assign to others', key, ids: [...new Set(ids)] }]
}

function assignmentSteps(
  key: string,
  assets: readonly string[],
  drifted: readonly string[] = [],
): Step[] {
  return assets.length === 0 ? [] : [{ do: 'assign policy', key, assets, drifted }]
}

function unassignmentSteps(
  key: string,
  uuid: string,
  assets: readonly string[],
  input: PlanInput,
): Step[] {
  if (assets.length === 0) return []
  const drifted = assets.filter((asset) => !isAssignedByUs(asset, key, input))
  return [{ do: 'unassign policy', key, uuid, assets, drifted }]
}

/** A value that the API itself changed, such as by adding a default, is no change. */
function findPolicyChange(
  { body }: DesiredPolicy,
  { written, returned }: KnownPolicy,
  there: PolicyContent | undefined,
): PolicyReason | undefined {
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

function assetsWith(policy: string, { desired }: PlanInput): string[] {
  return desired.assets.filter(({ policies }) => policies.includes(policy)).map(({ key }) => key)
}

function hasPolicy(asset: string, uuid: string, { state, actual }: PlanInput): boolean {
  const known = findAsset(state, asset)
  return known !== undefined && (actual.assigned.get(known.id) ?? []).includes(uuid)
}

function isAssignedByUs(asset: string, policy: string, { state }: PlanInput): boolean {
  return findAsset(state, asset)?.policies.includes(policy) ?? false
}

/** Assets of the file that have the policy and should not. */
function findWronglyAssigned(policy: string, uuid: string, input: PlanInput): string[] {
  return input.desired.assets
    .filter(({ key, policies }) => !policies.includes(policy) && hasPolicy(key, uuid, input))
    .map(({ key }) => key)
}

/** What the API said before planning. */
export interface ActualState {
  /** Assets as they are; no entry where the server or the key does not show one. */
  assets: ReadonlyMap<number, WireAsset>
  /** Uuids of the policies of each identifier. */
  assigned: ReadonlyMap<number, readonly string[]>
  /** The existing policies among those that the state knows or the operator names. */
  policies: ReadonlyMap<string, PolicyContent>
  /** Ids of assets that do not exist. */
  missingAssets: ReadonlySet<number>
  /** Ids of assets that may be gone: nothing says whether a 404 was about them or about the path. */
  doubtfulAssets: ReadonlySet<number>
  /**
   * Identifiers to which a policy is assigned, by anybody; no entry when the server does not list
   * them.
   */
  holders: ReadonlyMap<string, readonly number[]>
  capabilities: Capabilities
}

/** Operations that are not documented but that a server may have. */
interface Capabilities {
  update: boolean
  unassign: boolean
}

/** What a plan is made from. */
export interface PlanInput {
  desired: DesiredState
  state: MonitoringState
  actual: ActualState
}

export type PolicyReason = 'new' | 'changed' | 'drifted' | 'unassign'

/** `drifted`: somebody else has switched it. */
export type SwitchReason = 'asked' | 'drifted' | 'left' | 'left, and enabled again'

/** `now`: its value at the service; of `data` only a digest. */
export interface DriftedField {
  field: string
  now: unknown
}

/** Identifiers that are not of the file; `unknown`: the server does not list the holders. */
export type OtherHolders = readonly number[] | 'unknown'

export type Step =
  /** `instead`: uuid of the policy that it replaces. */
  | { do: 'create policy'; policy: DesiredPolicy; why: PolicyReason; instead?: string }
  | { do: 'create asset'; asset: DesiredAsset }
  /**
   * `drifted`: those of the fields that somebody changed at the service. `isBlind`: the server does
   * not show what else the asset is now.
   */
  | {
      do: 'replace asset'
      asset: DesiredAsset
      id: number
      fields: readonly string[]
      drifted: readonly DriftedField[]
      isBlind: boolean
    }
  /** `id` is missing for an asset that another step creates. */
  | { do: 'enable asset' | 'disable asset'; key: string; id?: number; why: SwitchReason }
  /** `others`: identifiers outside the file that also have the policy. */
  | {
      do: 'update policy'
      policy: DesiredPolicy
      uuid: string
      why: PolicyReason
      others: OtherHolders
    }
  /**
   * `assets`: keys, since another step may bring the id; `drifted`: those that somebody else has
   * changed.
   */
  | { do: 'assign policy'; key: string; assets: readonly string[]; drifted: readonly string[] }
  /** Identifiers outside the file that have the replaced policy. */
  | { do: 'assign to others'; key: string; ids: readonly number[] }
  | {
      do: 'unassign policy'
      key: string
      uuid: string
      assets: readonly string[]
      drifted: readonly string[]
    }
  /** `losers`: identifiers that have the policy and get no successor. */
  | {
      do: 'delete policy'
      key: string
      uuid: string
      why: 'left' | 'replaced'
      losers: OtherHolders
    }

export type StepOf<Kind extends Step['do']> = Extract<Step, { do: Kind }>

/** Finds changes for which the API has no operation, before anything is sent. */
export function findImpossibleChanges(
  desired: DesiredState,
  state: MonitoringState,
  steps: readonly Step[],
): Finding[] {
  return [...checkGroupChanges(desired, state), ...checkCreationOnlyTypes(steps)]
}

function checkGroupChanges({ assets }: DesiredState, state: MonitoringState): Finding[] {
  return assets.flatMap(({ key, written: { assets_group_id: group } }) => {
    const before = findAsset(state, key)?.written
    if (!before || group === undefined || before['assets_group_id'] === group) return []
    const was = before['assets_group_id']
    const problem = 'it was created elsewhere, and the API moves no asset'
    const remedy = typeof was === 'number' ? `write ${was}` : 'remove the line'
    return [{ path: ['assets', key, 'group'], problem, remedy }]
  })
}

/**
 * Finds `ad` and `ads` where an asset is replaced: only a creation accepts them (docs/api-notes.md,
 * Assets).
 */
function checkCreationOnlyTypes(steps: readonly Step[]): Finding[] {
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

/** Identifiers outside the file that have the policy. */
function findOtherHolders(uuid: string, input: PlanInput): OtherHolders {
  const { policies, holders } = input.actual
  if (!policies.has(uuid)) return []
  const ids = holders.get(uuid)
  return ids === undefined ? 'unknown' : excludeFileAssets(ids, input)
}

/**
 * Identifiers outside the file that are known to have the policy from any source; assets that left
 * the file are always known.
 */
function findKnownHolders(uuid: string, input: PlanInput): number[] {
  const others = findOtherHolders(uuid, input)
  const { assigned, missingAssets } = input.actual
  const found = [...assigned].flatMap(([id, uuids]) =>
    uuids.includes(uuid) && !missingAssets.has(id) ? [id] : [],
  )
  return excludeFileAssets([...new Set([...(others === 'unknown' ? [] : others), ...found])], input)
}

function excludeFileAssets(ids: readonly number[], { desired, state }: PlanInput): number[] {
  const named = new Set(desired.assets.map(({ key }) => key))
  const known = Object.entries(state.assets).filter(([key]) => named.has(key))
  const own = new Set(known.map(([, { id }]) => id))
  return ids.filter((id) => !own.has(id)).toSorted((left, right) => left - right)
}

/**
 * Throws CommandError when an asset or policy of the file no longer exists: a sign of another
 * tenant, or of an outdated state file. Created unasked, it would be there twice.
 */
export function refuseGone(input: PlanInput): void {
  const { desired, state, actual } = input
  const assets = desired.assets.flatMap(({ key }) => {
    const id = findAsset(state, key)?.id
    const isGone = id !== undefined && actual.missingAssets.has(id)
    return isGone ? [{ key, what: `asset ${key} (${id})` }] : []
  })
  const policies = desired.policies.flatMap((policy) => {
    const { key } = policy
    const uuid = findPolicy(state, key)?.uuid
    const isGone = uuid !== undefined && !actual.policies.has(uuid)
    return isGone
      ? [{ key, what: `policy ${key} (${uuid})`, found: findNamesakes(policy, input) }]
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
      (assets.length > 0
        ? `If one is there under another id, say ${assets.map(({ key }) => `--adopt ${key}=<id>`).join(' ')}. `
        : '') +
      `To create anew, say ${options}`,
  )
}

/** Whether nothing shows that the asset is still there. */
export function mayBeGone(id: number, { missingAssets, doubtfulAssets }: ActualState): boolean {
  return missingAssets.has(id) || doubtfulAssets.has(id)
}

/**
 * Throws CommandError when a policy to be created is already assigned to an asset of the file: a
 * sign of an outdated state file.
 */
export function refuseTwins(input: PlanInput, createAgain: readonly string[] = []): void {
  const [twin] = input.desired.policies
    .filter(({ key }) => findPolicy(input.state, key) === undefined && !createAgain.includes(key))
    .flatMap(({ key }) => findTwins(key, input).map((uuid) => ({ key, uuid })))
  if (twin === undefined) return
  const { key, uuid } = twin
  throw new CommandError(
    'refused',
    `policy ${key}: an asset of the file has one of the same name and content (${uuid}) that the ` +
      `state does not know: is the state older than the service? Adopt it with --adopt ${key}=${uuid}, ` +
      `or say --create-again ${key} for another one`,
  )
}

/**
 * Uuids of policies with the same name and content that an asset of the file has and the state does
 * not know.
 */
export function findTwins(key: string, input: PlanInput): string[] {
  const policy = input.desired.policies.find((one) => one.key === key)
  if (policy === undefined) return []
  return findNamesakes(policy, input).filter((uuid) => {
    const there = input.actual.policies.get(uuid)
    return there?.type === policy.body.type && includesValue(there, policy.body)
  })
}

function findNamesakes({ body }: DesiredPolicy, input: PlanInput): string[] {
  const { desired, state, actual } = input
  const ids = desired.assets.flatMap(({ key }) => findAsset(state, key)?.id ?? [])
  const uuids = new Set(ids.flatMap((id) => actual.assigned.get(id) ?? []))
  const own = ownUuids(state)
  return [...uuids].filter(
    (uuid) => !own.has(uuid) && actual.policies.get(uuid)?.name === body.name,
  )
}

/** Policies that the state knows, including replaced ones. */
export function ownUuids({ policies, retired }: MonitoringState): Set<string> {
  return new Set([...Object.values(policies), ...retired].map(({ uuid }) => uuid))
}

/** The API may have added a default. */
function includesValue(there: PolicyContent, body: PolicyContent): boolean {
  return Object.entries(body.value).every(
    ([field, value]) => canonicalJson(there.value[field]) === canonicalJson(value),
  )
}
