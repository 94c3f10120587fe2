import type { Others, Scene } from './plan-step.ts'

/** What has a policy and is not of the file. */
export function othersWith(uuid: string, scene: Scene): Others {
  const { policies, holders } = scene.actual
  if (!policies.has(uuid)) return []
  const ids = holders.get(uuid)
  return ids === undefined ? 'unknown' : notOfFile(ids, scene)
}

/** Those of them that are known by whatever way: an asset that left the file is always. */
export function knownOthersWith(uuid: string, scene: Scene): number[] {
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
