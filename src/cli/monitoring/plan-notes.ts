/** What a plan leaves as it is, and who should know; each a sentence. */
import { harmless } from '../words.ts'
import { lookWords, unseenAssets } from './look-at-adopted.ts'
import { ownUuids } from './lost-and-found.ts'
import { isSame } from './plan-policies.ts'
import type { Scene } from './plan-step.ts'
import { assetIn, policyIn } from './state-file.ts'

export function notesOn(scene: Scene): string[] {
  return [
    ...adoptedAssets(scene),
    ...adoptedPolicies(scene),
    ...foreignPolicies(scene),
    ...disabledByOthers(scene),
  ]
}

/** Of a plan alone, which switches nothing. */
function adoptedAssets({ wanted, state }: Scene): string[] {
  return unseenAssets(wanted, state).map(
    (unseen) => `${lookWords(unseen)}, so what must be replaced in it is not known yet`,
  )
}

function adoptedPolicies({ wanted, state, actual }: Scene): string[] {
  return wanted.policies.flatMap(({ key, body }) => {
    const known = policyIn(state, key)
    const there = known?.written === null ? actual.policies.get(known.uuid) : undefined
    if (known === undefined || there === undefined || isSame(there, body)) return []
    return [
      `policy ${key} is taken to be "${harmless(there.name, 60)}" (${known.uuid}), which is not as the file has it`,
    ]
  })
}

/** Policies of an asset that the file does not know, which are left alone. */
function foreignPolicies({ state, actual }: Scene): string[] {
  const own = ownUuids(state)
  return Object.entries(state.assets).flatMap(([key, { id }]) =>
    (actual.assigned.get(id) ?? [])
      .filter((uuid) => !own.has(uuid))
      .map((uuid) => {
        const name = harmless(actual.policies.get(uuid)?.name ?? '', 60)
        return `asset ${key} also has the policy "${name}" (${harmless(uuid, 64)}), which is not of this file: left as it is`
      }),
  )
}

function disabledByOthers({ wanted, state }: Scene): string[] {
  return wanted.assets.flatMap(({ key, enabled }) => {
    const known = assetIn(state, key)
    const isLeft = enabled === undefined && known?.disabled === true && !known.disabled_by_file
    return isLeft
      ? [
          `asset ${key} (${known.id}) is disabled, and not by this file: left as it is; "enabled: true" enables it`,
        ]
      : []
  })
}
