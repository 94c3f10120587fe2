/**
 * Assets and matching policies: what each tenant watches for, and so which events concern whom. All of
 * it is state that `snapshot` tells in plain JSON; it never touches an event itself.
 */
import { z } from 'zod'
import { agreementOf, sightingOf, termOf, type Watcher, watcherOf } from '../api/matching.ts'
import type { Places, SandboxEvent, Watch } from '../history/history.ts'
import type { SandboxGroup, SandboxSettings } from '../options.ts'
import {
  type AssetStore,
  type AssignmentStore,
  createAssetStore,
  createAssignmentStore,
  createPolicyStore,
  type PolicyStore,
  type SandboxAsset,
  type SandboxPolicy,
} from './store.ts'

export interface Monitoring extends MonitoringWatch {
  assets: AssetStore
  policies: PolicyStore
  assignments: AssignmentStore
  snapshot(): unknown
  /** Instead of what is there. Throws ZodError on what no snapshot is. */
  restore(snapshot: unknown): void
}

export function createMonitoring(settings: SandboxSettings): Monitoring {
  let revision = 0
  const changed = (): void => void revision++
  const assets = createAssetStore(settings, changed)
  const policies = createPolicyStore(settings.now, changed)
  const assignments = createAssignmentStore(settings.now, changed)
  const stores = { assets, policies, assignments }

  return {
    ...stores,
    ...createWatch({ ...stores, groups: settings.groups, revision: () => revision }),
    snapshot: () => ({
      assets: assets.snapshot(),
      policies: policies.snapshot(),
      assignments: assignments.snapshot(),
    }),
    restore(snapshot) {
      const parts = monitoringSnapshot.parse(snapshot)
      assets.restore(parts.assets)
      policies.restore(parts.policies)
      assignments.restore(parts.assignments)
    },
  }
}

const monitoringSnapshot = z.object({
  assets: z.unknown(),
  policies: z.unknown(),
  assignments: z.unknown(),
})

/**
 * Whom an event concerns. One that is drawn about an asset counts as mentioning it; apart from that
 * every asset of every tenant that matches gets it, and none that is disabled or that a policy forbids.
 */

interface MonitoringWatch extends Watch {
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

function createWatch(parts: WatchParts): MonitoringWatch {
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
