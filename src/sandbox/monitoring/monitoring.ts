/** Assets and matching policies: what each tenant watches for, and so what new events are about. */
import { randomUUID } from 'node:crypto'
import type { AssetType } from '../../upstream/resources/enumerations.ts'
import type { PolicyCreation } from '../../upstream/resources/policies.ts'
import type { SandboxGroup, SandboxSettings } from '../options.ts'

/** The fields of an asset (identifier) that a client writes, in the words of v2. */
export interface AssetWriting {
  name: string
  type: AssetType
  data: Readonly<Record<string, unknown>>
  search_types: readonly string[]
  experimental_search_types: readonly string[]
  risks: readonly number[]
  /** The identifier group that shows its events; null: none. */
  groupId: number | null
  isDisabled: boolean
  /** Unknown fields, as they were sent. */
  others: Readonly<Record<string, unknown>>
}

export interface SandboxAsset extends AssetWriting {
  id: number
  tenantId: number
  dataUpdatedAtMs: number
}

export interface SandboxPolicy {
  uuid: string
  tenantId: number
  name: string
  type: PolicyCreation['type']
  value: PolicyCreation['value']
  createdAtMs: number
  updatedAtMs: number
}

interface Assignment {
  policyUuid: string
  identifierId: number
  cleanPastEvents: boolean
  assignedAtMs: number
}

export interface Monitoring {
  assets: AssetStore
  policies: PolicyStore
  /** Of what is still there, in order of assignment. */
  assignments: () => readonly Assignment[]
  /** Renews existing assignments. */
  assign(policyUuid: string, identifierIds: readonly number[], cleanPastEvents: boolean): void
  unassign(policyUuid: string, identifierIds: readonly number[]): void
}

interface AssetStore {
  /** In order of creation, initial ones first. */
  all(): readonly SandboxAsset[]
  get(id: number): SandboxAsset | undefined
  create(tenantId: number, writing: AssetWriting): SandboxAsset
  /** Throws if there is no such asset. */
  change(id: number, writing: Partial<AssetWriting>): SandboxAsset
  delete(id: number): void
  /** The identifier groups with their enabled assets: the subjects of new events. */
  subjects: () => readonly SandboxGroup[]
}

interface PolicyStore {
  all(): readonly SandboxPolicy[]
  get(uuid: string): SandboxPolicy | undefined
  create(given: Pick<SandboxPolicy, 'tenantId' | 'name' | 'type' | 'value'>): SandboxPolicy
  change(policy: SandboxPolicy, given: Pick<SandboxPolicy, 'name' | 'value'>): SandboxPolicy
  delete(uuid: string): void
}

export function createMonitoring(settings: SandboxSettings): Monitoring {
  const assets = createAssetStore(settings)
  const policies = createPolicyStore(settings)
  let assignments: Assignment[] = []

  function unassign(policyUuid: string, identifierIds: readonly number[]): void {
    assignments = assignments.filter(
      (one) => one.policyUuid !== policyUuid || !identifierIds.includes(one.identifierId),
    )
  }

  return {
    assets,
    policies,
    assignments: () =>
      assignments.filter((one) => assets.get(one.identifierId) && policies.get(one.policyUuid)),
    unassign,
    assign(policyUuid, identifierIds, cleanPastEvents) {
      unassign(policyUuid, identifierIds)
      for (const identifierId of new Set(identifierIds)) {
        assignments.push({
          policyUuid,
          identifierId,
          cleanPastEvents,
          assignedAtMs: settings.now(),
        })
      }
    },
  }
}

/** One id in three exceeds 32 bits, as the API's own may (docs/api-notes.md, Events). */
const largeIdBase = 406_285_300_000

function createAssetStore({ groups, now }: SandboxSettings): AssetStore {
  const initial = groups.flatMap((group) => initialAssets(group, now()))
  const assets = new Map(initial.map((asset) => [asset.id, asset]))
  let created = 0
  // remade after a change alone: each event would otherwise go through thousands of assets
  let subjects: readonly SandboxGroup[] | undefined

  function keep(asset: SandboxAsset): SandboxAsset {
    assets.set(asset.id, asset)
    subjects = undefined
    return asset
  }

  return {
    all: () => [...assets.values()],
    get: (id) => assets.get(id),
    create(tenantId, writing) {
      let id = 0
      do id = (++created % 3 === 0 ? largeIdBase : 5000) + created
      while (assets.has(id))
      return keep({ id, tenantId, ...writing, dataUpdatedAtMs: now() })
    },
    change(id, writing) {
      const asset = assets.get(id)
      if (!asset) throw new Error(`the sandbox has no asset ${id}`)
      const dataUpdatedAtMs = 'data' in writing ? now() : asset.dataUpdatedAtMs
      return keep({ ...asset, ...writing, dataUpdatedAtMs })
    },
    delete(id) {
      assets.delete(id)
      subjects = undefined
    },
    subjects: () => (subjects ??= withSubjects(groups, [...assets.values()])),
  }
}

/** The assets of a group: a name that looks like a host is a domain, any other a keyword. */
function initialAssets(
  { id: groupId, tenantId, identifiers }: SandboxGroup,
  nowMs: number,
): SandboxAsset[] {
  return identifiers.map(({ id, name }) => {
    const isHost = /^[a-z0-9-]+(\.[a-z0-9-]+)+$/i.test(name)
    return {
      id,
      tenantId,
      groupId,
      name,
      type: isHost ? 'domain' : 'keyword',
      data: isHost ? { fqdn: name.toLowerCase() } : { keyword: name },
      search_types: [],
      experimental_search_types: [],
      risks: [],
      isDisabled: false,
      dataUpdatedAtMs: nowMs,
      others: {},
    }
  })
}

/** Leaves out groups without a subject. */
function withSubjects(
  groups: readonly SandboxGroup[],
  assets: readonly SandboxAsset[],
): SandboxGroup[] {
  const byGroup = Map.groupBy(
    assets.filter(({ isDisabled }) => !isDisabled),
    ({ groupId }) => groupId,
  )
  return groups.flatMap((group) => {
    const identifiers = byGroup.get(group.id) ?? []
    return identifiers.length === 0 ? [] : [{ ...group, identifiers }]
  })
}

function createPolicyStore({ now }: SandboxSettings): PolicyStore {
  const policies = new Map<string, SandboxPolicy>()

  function keep(policy: SandboxPolicy): SandboxPolicy {
    policies.set(policy.uuid, policy)
    return policy
  }

  return {
    all: () => [...policies.values()],
    get: (uuid) => policies.get(uuid),
    create: (given) =>
      keep({ uuid: randomUUID(), ...given, createdAtMs: now(), updatedAtMs: now() }),
    change: (policy, given) => keep({ ...policy, ...given, updatedAtMs: now() }),
    delete: (uuid) => void policies.delete(uuid),
  }
}
