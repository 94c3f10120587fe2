/**
 * Which steps bring the service from what it is to what the file asks for; pure. No step takes a policy
 * from an asset before its successor is there; nothing is planned that is so already.
 */
import { canonicalJson } from '../../feeds/canonical-json.ts'
import { policyDeletions, policySteps } from './plan-policies.ts'
import type { Scene, Step } from './plan-step.ts'
import { assetIn, isUnseen, type KnownAsset } from './state-file.ts'
import type { WantedAsset } from './wanted.ts'

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
