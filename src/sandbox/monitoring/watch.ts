/**
 * Whom an event concerns. One that is drawn about an asset counts as mentioning it; apart from that
 * every asset of every tenant that matches gets it, and none that is disabled or that a policy forbids.
 */
import type { SandboxEvent } from '../history/sandbox-event.ts'
import type { Places, Watch } from '../history/watch.ts'
import { watcherOf, type Watcher } from '../matching/matches.ts'
import { agreementOf } from '../matching/policy-agreement.ts'
import { sightingOf } from '../matching/sighting.ts'
import { termOf } from '../matching/term.ts'
import type { SandboxGroup } from '../options.ts'
import type { AssetStore } from './asset-store.ts'
import type { AssignmentStore } from './assignment-store.ts'
import type { PolicyStore } from './policy-store.ts'
import type { SandboxAsset } from './sandbox-asset.ts'
import type { SandboxPolicy } from './sandbox-policy.ts'

export interface MonitoringWatch extends Watch {
  /** Where `event` shows once `policy` has judged what `asset` matched; null: nothing changes. */
  placesAfter(event: SandboxEvent, asset: SandboxAsset, policy: SandboxPolicy): Places | null
}

interface WatchParts {
  groups: readonly SandboxGroup[]
  assets: AssetStore
  policies: PolicyStore
  assignments: AssignmentStore
  /** Another number after each change of these. */
  revision: () => number
}

type Subject = SandboxGroup['identifiers'][number]

interface Watching extends Watcher {
  asset: SandboxAsset
}

export function createWatch(parts: WatchParts): MonitoringWatch {
  const { groups, assets, revision } = parts
  const watching = oncePer(revision, () => watchingOf(parts))
  // a tenant that is created brings a group, and changes nothing else
  const watchedGroups = oncePer(
    () => `${revision()} ${groups.length}`,
    () => withSubjects(groups, assets.all()),
  )

  return {
    groups: watchedGroups,
    placesOf(event) {
      const sighting = sightingOf(event)
      const isSubject = ({ asset }: Watching): boolean => isFor(event, asset)
      const found = watching()
        .filter((one) => one.admits(sighting))
        .filter((one) => isSubject(one) || one.mentions(sighting))
        .toSorted((left, right) => Number(isSubject(right)) - Number(isSubject(left)))
      return placesWith(found.map(({ asset }) => asset))
    },
    placesAfter(event, asset, policy) {
      if (!isFor(event, asset)) return null
      if (agreementOf(policy, asset)(sightingOf(event))) return null
      const identifiers = event.identifiers.filter(({ id }) => id !== asset.id)
      const left = new Set(identifiers.map(({ id }) => assets.get(id)?.groupId))
      const groupIds = event.groupIds.filter((id) => id !== asset.groupId || left.has(id))
      return { groupIds, identifiers }
    },
  }
}

/** Makes it anew when the key has changed: with each event thousands of groups are asked for. */
function oncePer<T>(key: () => unknown, make: () => T): () => T {
  let ready: { key: unknown; made: T } | null = null
  return () => {
    const now = key()
    if (ready === null || ready.key !== now) ready = { key: now, made: make() }
    return ready.made
  }
}

function withSubjects(
  groups: readonly SandboxGroup[],
  assets: readonly SandboxAsset[],
): SandboxGroup[] {
  const made = groups.map((group) => ({ ...group, identifiers: [] as Subject[] }))
  const byId = new Map(made.map((group) => [group.id, group]))
  for (const asset of assets) byId.get(asset.groupId ?? -1)?.identifiers.push(subjectOf(asset))
  return made
}

function watchingOf({ assets, policies, assignments }: WatchParts): Watching[] {
  return assets.all().map((asset) => {
    const deciding = assignments
      .ofIdentifier(asset.id)
      .map(({ policyUuid }) => policies.get(policyUuid))
      .filter((policy) => policy !== undefined)
    return { asset, ...watcherOf(asset, deciding) }
  })
}

function isFor(event: SandboxEvent, asset: SandboxAsset): boolean {
  return event.identifiers.some(({ id }) => id === asset.id)
}

function placesWith(found: readonly SandboxAsset[]): Places {
  const groupIds = found.map(({ groupId }) => groupId).filter((id) => id !== null)
  return {
    groupIds: [...new Set(groupIds)],
    identifiers: found.map(({ id, name }) => ({ id, name })),
  }
}

/** What new events are about: the asset's term, or its name where it has none. */
function subjectOf(asset: SandboxAsset): Subject {
  return { id: asset.id, name: asset.name, term: termOf(asset) ?? asset.name }
}
