/** What the service no longer has, or has without the state knowing: signs of a state that is older than it. */
import { canonicalJson } from '../../feeds/canonical-json.ts'
import { CommandError } from '../command-error.ts'
import type { Scene } from './plan-step.ts'
import { assetIn, policyIn, type MonitoringState, type PolicyContent } from './state-file.ts'
import type { WantedPolicy } from './wanted.ts'

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
