/**
 * Assets and matching policies: what each tenant watches for, and so which assets an event matches.
 * All of its state is in `snapshot` as plain JSON. It never changes an event itself.
 */
import { z } from 'zod'
import {
  policyTest,
  toSearchable,
  assetTerm,
  type Watcher,
  createWatcher,
} from '../api/matching.ts'
import type { EventPlaces, SandboxEvent, Watchlist } from '../history/history.ts'
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

export interface Monitoring extends MonitoringWatchlist {
  assets: AssetStore
  policies: PolicyStore
  assignments: AssignmentStore
  snapshot(): unknown
  /** Replaces the state. Throws ZodError if it is not a snapshot. */
  restore(snapshot: unknown): void
}

export function createMonitoring(settings: SandboxSettings): Monitoring {
  let revision = 0
  const bumpRevision = (): void => void revision++
  const assets = createAssetStore(settings, bumpRevision)
  const policies = createPolicyStore(settings.now, bumpRevision)
  const assignments = createAssignmentStore(settings.now, bumpRevision)
  const stores = { assets, policies, assignments }

  return {
    ...stores,
    ...createWatchlist({ ...stores, groups: settings.groups, revision: () => revision }),
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
 * Decides where an event shows. A generated event counts as mentioning the asset it was generated
 * for. Apart from that it shows for every matching asset of every tenant, except disabled assets
 * and those whose policies do not admit it.
 */
interface MonitoringWatchlist extends Watchlist {
  /**
   * Returns where `event` shows if `policy` applies to what `asset` matched; null if nothing
   * changes.
   */
  placesAfterPolicy(
    event: SandboxEvent,
    asset: SandboxAsset,
    policy: SandboxPolicy,
  ): EventPlaces | null
}

interface WatchlistParts {
  groups: readonly SandboxGroup[]
  assets: AssetStore
  policies: PolicyStore
  assignments: AssignmentStore
  /** Changes with each change of the stores. */
  revision: () => number
}

type Subject = SandboxGroup['identifiers'][number]

interface AssetWatcher extends Watcher {
  asset: SandboxAsset
}

function createWatchlist(parts: WatchlistParts): MonitoringWatchlist {
  const { groups, assets, revision } = parts
  const watchers = memoizeBy(revision, () => buildWatchers(parts))
  // a new tenant adds a group without changing the revision
  const watchedGroups = memoizeBy(
    () => `${revision()} ${groups.length}`,
    () => groupsWithSubjects(groups, assets.all()),
  )

  return {
    groups: watchedGroups,
    findPlaces(event) {
      const searchable = toSearchable(event)
      const isSubject = ({ asset }: AssetWatcher): boolean => isAbout(event, asset)
      const matching = watchers()
        .filter((one) => one.admits(searchable))
        .filter((one) => isSubject(one) || one.mentions(searchable))
        .toSorted((left, right) => Number(isSubject(right)) - Number(isSubject(left)))
      return toPlaces(matching.map(({ asset }) => asset))
    },
    placesAfterPolicy(event, asset, policy) {
      if (!isAbout(event, asset)) return null
      if (policyTest(policy, asset)(toSearchable(event))) return null
      const identifiers = event.identifiers.filter(({ id }) => id !== asset.id)
      const remainingGroups = new Set(identifiers.map(({ id }) => assets.get(id)?.groupId))
      const groupIds = event.groupIds.filter(
        (id) => id !== asset.groupId || remainingGroups.has(id),
      )
      return { groupIds, identifiers }
    },
  }
}

/**
 * Remakes the value when the key changes: each event would otherwise process thousands of groups.
 */
function memoizeBy<T>(key: () => unknown, make: () => T): () => T {
  let cached: { key: unknown; made: T } | null = null
  return () => {
    const now = key()
    if (cached === null || cached.key !== now) cached = { key: now, made: make() }
    return cached.made
  }
}

function groupsWithSubjects(
  groups: readonly SandboxGroup[],
  assets: readonly SandboxAsset[],
): SandboxGroup[] {
  const result = groups.map((group) => ({ ...group, identifiers: [] as Subject[] }))
  const byId = new Map(result.map((group) => [group.id, group]))
  for (const asset of assets) byId.get(asset.groupId ?? -1)?.identifiers.push(toSubject(asset))
  return result
}

function buildWatchers({ assets, policies, assignments }: WatchlistParts): AssetWatcher[] {
  return assets.all().map((asset) => {
    const deciding = assignments
      .ofIdentifier(asset.id)
      .map(({ policyUuid }) => policies.get(policyUuid))
      .filter((policy) => policy !== undefined)
    return { asset, ...createWatcher(asset, deciding) }
  })
}

function isAbout(event: SandboxEvent, asset: SandboxAsset): boolean {
  return event.identifiers.some(({ id }) => id === asset.id)
}

function toPlaces(found: readonly SandboxAsset[]): EventPlaces {
  const groupIds = found.map(({ groupId }) => groupId).filter((id) => id !== null)
  return {
    groupIds: [...new Set(groupIds)],
    identifiers: found.map(({ id, name }) => ({ id, name })),
  }
}

/** Returns the subject of new events: the asset's term, or its name if it has no term. */
function toSubject(asset: SandboxAsset): Subject {
  return { id: asset.id, name: asset.name, term: assetTerm(asset) ?? asset.name }
}
