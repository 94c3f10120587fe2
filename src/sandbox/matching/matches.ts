/** Which events concern an asset: by its state, its search types, risks, term and policies (pure). */
import { typesOf } from '../api/filters.ts'
import { knownSeverities } from '../api/search-body.ts'
import type { SandboxEvent } from '../history/sandbox-event.ts'
import { mentionOf } from './mention.ts'
import { agreementOf } from './policy-agreement.ts'
import type { SandboxAsset } from '../monitoring/sandbox-asset.ts'
import type { SandboxPolicy } from '../monitoring/sandbox-policy.ts'
import { sightingOf, type Sighting } from './sighting.ts'

export interface Watcher {
  /** Everything but the term: state, search types, risks, policies. */
  admits(sighting: Sighting): boolean
  /** Whether the asset's term is found. */
  mentions(sighting: Sighting): boolean
}

export type Watched = Pick<
  SandboxAsset,
  'type' | 'data' | 'attributes' | 'searchTypes' | 'risks' | 'isDisabled'
>
type Deciding = Pick<SandboxPolicy, 'type' | 'value'>

/** Whether `event` concerns `asset`, to which `policies` are assigned. */
export function matches(
  asset: Watched,
  policies: readonly Deciding[],
  event: SandboxEvent,
): boolean {
  const sighting = sightingOf(event)
  const watcher = watcherOf(asset, policies)
  return watcher.admits(sighting) && watcher.mentions(sighting)
}

/** The same, made ready for many events. */
export function watcherOf(asset: Watched, policies: readonly Deciding[]): Watcher {
  const types = asset.searchTypes.length > 0 ? typesOf(asset.searchTypes) : null
  const agreements = policies.map((policy) => agreementOf(policy, asset))
  const finds = mentionOf(asset)
  return {
    admits: (sighting) =>
      !asset.isDisabled &&
      (types === null || types.has(sighting.event.type)) &&
      (asset.risks.length === 0 || asset.risks.includes(riskOf(sighting.event.severity))) &&
      agreements.every((agrees) => agrees(sighting)),
    mentions: finds,
  }
}

/** 1 to 5 (facts.md 1, row 5); a word that no list has ranks highest, as in the filters. */
function riskOf(severity: string): number {
  const rank = (knownSeverities as readonly string[]).indexOf(severity)
  return rank === -1 ? knownSeverities.length : rank + 1
}
