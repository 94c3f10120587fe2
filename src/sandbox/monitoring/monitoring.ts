/**
 * Assets and matching policies: what each tenant watches for, and so which events concern whom. All of
 * it is state that `snapshot` tells in plain JSON; it never touches an event itself.
 */
import { z } from 'zod'
import type { SandboxSettings } from '../options.ts'
import { createAssetStore, type AssetStore } from './asset-store.ts'
import { createAssignmentStore, type AssignmentStore } from './assignment-store.ts'
import { createPolicyStore, type PolicyStore } from './policy-store.ts'
import { createWatch, type MonitoringWatch } from './watch.ts'

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
