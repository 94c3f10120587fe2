/**
 * Assets and matching policies: what each tenant watches for, and so where an event shows. It never
 * changes an event itself.
 */
import { randomUUID } from 'node:crypto'
import type { AssetType } from '../../upstream/resources/enumerations.ts'
import type { PolicyCreation } from '../../upstream/resources/policies.ts'
import { toDocument } from '../api/document.ts'
import { admissionTest, termOf, type Test, termTest, type WatchedAsset } from '../api/matching.ts'
import type { EventPlaces, SandboxEvent, Watchlist } from '../history/history.ts'
import type { SandboxGroup, SandboxSettings } from '../options.ts'

/** An asset (identifier) as the sandbox stores it; its wire shape is made on each read. */
export interface SandboxAsset extends WatchedAsset {
  id: number
  tenantId: number
  /** The identifier group that shows its events; null: none. */
  groupId: number | null
  name: string
  experimentalSearchTypes: readonly string[]
  source: string
  dataUpdatedAtMs: number
  /** Unknown fields, as they were sent. */
  others: Readonly<Record<string, unknown>>
}

/** The fields of an asset that a client may write. */
export type AssetWriting = Omit<SandboxAsset, 'id' | 'tenantId' | 'source' | 'dataUpdatedAtMs'>

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

export interface Monitoring extends Watchlist {
  assets: AssetStore
  policies: PolicyStore
  /** In order of assignment. */
  assignments: () => readonly Assignment[]
  /** Renews existing assignments. */
  assign(policyUuid: string, identifierIds: readonly number[], cleanPastEvents: boolean): void
  unassign(policyUuid: string, identifierIds: readonly number[]): void
}

interface AssetStore {
  /** In order of creation, initial ones first. */
  all(): readonly SandboxAsset[]
  get(id: number): SandboxAsset | undefined
  /** The id that the next created asset gets. */
  nextId(): number
  create(tenantId: number, writing: AssetWriting): SandboxAsset
  /** Throws if there is no such asset. */
  change(id: number, writing: Partial<AssetWriting>): SandboxAsset
  /** Its assignments go too. */
  delete(id: number): void
}

interface PolicyStore {
  all(): readonly SandboxPolicy[]
  get(uuid: string): SandboxPolicy | undefined
  create(given: Pick<SandboxPolicy, 'tenantId' | 'name' | 'type' | 'value'>): SandboxPolicy
  change(policy: SandboxPolicy, given: Pick<SandboxPolicy, 'name' | 'value'>): SandboxPolicy
  /** Its assignments go too. */
  delete(uuid: string): void
}

export function createMonitoring({ groups, now }: SandboxSettings): Monitoring {
  let assignments: Assignment[] = []
  let revision = 0
  const keep = (left: (one: Assignment) => boolean): void => {
    assignments = assignments.filter(left)
    revision++
  }
  const assets = createAssetStore({ groups, now }, (deleted) =>
    keep(({ identifierId }) => identifierId !== deleted),
  )
  const policies = createPolicyStore(now, (deleted) =>
    keep(({ policyUuid }) => policyUuid !== deleted),
  )
  const unassign = (policyUuid: string, identifierIds: readonly number[]): void =>
    keep((one) => one.policyUuid !== policyUuid || !identifierIds.includes(one.identifierId))
  // remade after a change alone: each event would otherwise go through thousands of assets
  const watchers = memoizeBy(
    () => revision,
    () => assets.all().map((asset) => toWatcher(asset, assignments, policies)),
  )
  const watchedGroups = memoizeBy(
    () => `${revision} ${groups.length}`,
    () => withSubjects(groups, assets.all()),
  )

  return {
    assets,
    policies,
    assignments: () => assignments,
    unassign,
    assign(policyUuid, identifierIds, cleanPastEvents) {
      unassign(policyUuid, identifierIds)
      for (const identifierId of new Set(identifierIds)) {
        assignments.push({ policyUuid, identifierId, cleanPastEvents, assignedAtMs: now() })
      }
    },
    groups: watchedGroups,
    findPlaces: (event) => findPlaces(event, watchers()),
  }
}

/** Remakes the value when the key changes. */
function memoizeBy<T>(key: () => unknown, make: () => T): () => T {
  let cached: { key: unknown; made: T } | null = null
  return () => {
    const now = key()
    if (cached === null || cached.key !== now) cached = { key: now, made: make() }
    return cached.made
  }
}

/** One id in three exceeds 32 bits, as the API's own may (docs/api-notes.md, Events). */
const largeIdBase = 406_285_300_000

/** `onChange` gets the id of an asset that was deleted. */
function createAssetStore(
  { groups, now }: Pick<SandboxSettings, 'groups' | 'now'>,
  onChange: (deleted?: number) => void,
): AssetStore {
  const initial = groups.flatMap((group) => initialAssets(group, now()))
  const assets = new Map(initial.map((asset) => [asset.id, asset]))
  if (assets.size < initial.length) throw new Error('an identifier stands in two groups')
  let createdCount = 0

  function nextId(): number {
    for (let number = createdCount + 1; ; number++) {
      const id = number % 3 === 0 ? largeIdBase + number : 5000 + number
      if (!assets.has(id)) return id
    }
  }

  function keep(asset: SandboxAsset): SandboxAsset {
    assets.set(asset.id, asset)
    onChange()
    return asset
  }

  return {
    all: () => [...assets.values()],
    get: (id) => assets.get(id),
    nextId,
    create(tenantId, writing) {
      const id = nextId()
      createdCount++
      return keep({ id, tenantId, ...writing, source: 'USER', dataUpdatedAtMs: now() })
    },
    change(id, writing) {
      const asset = assets.get(id)
      if (!asset) throw new Error(`the sandbox has no asset ${id}`)
      const dataUpdatedAtMs = 'data' in writing ? now() : asset.dataUpdatedAtMs
      return keep({ ...asset, ...writing, dataUpdatedAtMs })
    },
    delete(id) {
      assets.delete(id)
      onChange(id)
    },
  }
}

/** The assets of a group: a name that looks like a host is a domain, any other a keyword. */
function initialAssets(
  { id: groupId, tenantId, identifiers }: SandboxGroup,
  nowMs: number,
): SandboxAsset[] {
  return identifiers.map(({ id, name }) => {
    const isHost = /^[a-z0-9-]+(\.[a-z0-9-]+)+$/i.test(name)
    const type: AssetType = isHost ? 'domain' : 'keyword'
    return {
      id,
      tenantId,
      groupId,
      name,
      type,
      data: isHost ? { fqdn: name.toLowerCase() } : { keyword: name },
      searchTypes: [],
      experimentalSearchTypes: [],
      risks: [],
      attributes: [],
      isDisabled: false,
      source: 'SELF_ONBOARDING',
      dataUpdatedAtMs: nowMs,
      others: {},
    }
  })
}

/** `onChange` gets the uuid of a policy that was deleted. */
function createPolicyStore(now: () => number, onChange: (deleted?: string) => void): PolicyStore {
  const policies = new Map<string, SandboxPolicy>()

  function keep(policy: SandboxPolicy): SandboxPolicy {
    policies.set(policy.uuid, policy)
    onChange()
    return policy
  }

  return {
    all: () => [...policies.values()],
    get: (uuid) => policies.get(uuid),
    create: (given) =>
      keep({ uuid: randomUUID(), ...given, createdAtMs: now(), updatedAtMs: now() }),
    change: (policy, given) => keep({ ...policy, ...given, updatedAtMs: now() }),
    delete(uuid) {
      policies.delete(uuid)
      onChange(uuid)
    },
  }
}

interface Watcher {
  asset: SandboxAsset
  admits: Test
  mentions: Test
}

function toWatcher(
  asset: SandboxAsset,
  assignments: readonly Assignment[],
  policies: PolicyStore,
): Watcher {
  const deciding = assignments
    .filter(({ identifierId }) => identifierId === asset.id)
    .flatMap(({ policyUuid }) => policies.get(policyUuid) ?? [])
  return { asset, admits: admissionTest(asset, deciding), mentions: termTest(asset) }
}

/**
 * A generated event counts as mentioning the asset that it was generated for. Apart from that it
 * shows for every asset of every tenant that admits and mentions it.
 */
function findPlaces(event: SandboxEvent, watchers: readonly Watcher[]): EventPlaces {
  const document = toDocument(event)
  const isSubject = ({ asset }: Watcher): boolean =>
    event.identifiers.some(({ id }) => id === asset.id)
  const found = watchers
    .filter((one) => one.admits(document) && (isSubject(one) || one.mentions(document)))
    .toSorted((left, right) => Number(isSubject(right)) - Number(isSubject(left)))
    .map(({ asset }) => asset)
  const groupIds = found.map(({ groupId }) => groupId).filter((id) => id !== null)
  return {
    groupIds: [...new Set(groupIds)],
    identifiers: found.map(({ id, name }) => ({ id, name })),
  }
}

/** The groups with what each watches for: the term of each of its assets. */
function withSubjects(
  groups: readonly SandboxGroup[],
  assets: readonly SandboxAsset[],
): SandboxGroup[] {
  const result = groups.map((group): SandboxGroup => ({ ...group, identifiers: [] }))
  const byId = new Map(result.map((group) => [group.id, group]))
  for (const { id, name, type, data, groupId } of assets) {
    const isTerm = type !== 'search_query' && type !== 'identity'
    const term = isTerm ? termOf(type, data) : name
    byId.get(groupId ?? -1)?.identifiers.push({ id, name, term })
  }
  return result
}
