import { canonicalJson } from '../../feeds/canonical-json.ts'
import { knownOthersWith, othersWith } from './other-holders.ts'
import type { Others, Scene, Step, WhyPolicy } from './plan-step.ts'
import { assetIn, policyIn, type KnownPolicy, type PolicyContent } from './state-file.ts'
import type { WantedPolicy } from './wanted.ts'

/**
 * A policy of the file: created and assigned, or changed. The description has neither a change nor an
 * un-assignment: where the server has none beyond it, another policy is created and assigned, and the
 * old one deleted.
 */
export function policySteps(policy: WantedPolicy, scene: Scene): Step[] {
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
export function policyDeletions(scene: Scene): Step[] {
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
