import { randomUUID } from 'node:crypto'
import { isIP } from 'node:net'
import { z } from 'zod'
import type { WireAsset } from '../../upstream/resources/assets.ts'
import { type AssetType, assetTypes, policyTypes } from '../../upstream/resources/enumerations.ts'
import type { WirePolicy, WirePolicyAssignment } from '../../upstream/resources/policies.ts'
import { LuceneError, parseLucene } from '../api/lucene.ts'
import { createRandom, hashText, type SandboxGroup, type SandboxSettings } from '../options.ts'

const text = z.string()
const jsonObject = z.record(text, z.unknown())

/** An asset (identifier) as the sandbox stores it in JSON; its wire shape is made on each read. */
const sandboxAsset = z.object({
  id: z.int(),
  tenantId: z.int(),
  /** The identifier group that shows its events; null: none. */
  groupId: z.int().nullable(),
  name: text,
  type: z.enum(assetTypes),
  /** Empty means all; also for `risks`. */
  searchTypes: z.array(text),
  experimentalSearchTypes: z.array(text),
  risks: z.array(z.int()),
  data: jsonObject,
  /** The attributes of an identity, which its `data` does not show. */
  attributes: z.array(jsonObject),
  isDisabled: z.boolean(),
  source: text,
  dataUpdatedAtMs: z.number(),
  /** Unknown fields, as they were sent. */
  others: jsonObject,
})
export type SandboxAsset = z.infer<typeof sandboxAsset>

/** Returns the asset as the API would; `count`: number of events matched so far. */
export function toAssetItem(asset: SandboxAsset, count: number, nowMs: number): WireAsset {
  return {
    ...asset.others,
    id: asset.id,
    name: asset.name,
    type: asset.type,
    search_types: asset.searchTypes,
    data: asset.data,
    experimental_search_types: asset.experimentalSearchTypes,
    risks: asset.risks,
    tenant_id: asset.tenantId,
    feed_id: 3_000_000 + (hashText(`feed/${asset.id}`) % 1_000_000),
    v3_refs: { asset_uuid: makeUuid(`asset/${asset.id}`) },
    // Its meaning is not published; here it grows for ten seconds after each write.
    fetching_progress: Math.min(
      100,
      Math.max(0, Math.floor((nowMs - asset.dataUpdatedAtMs) / 100)),
    ),
    count,
    urn: `urn:sandbox:asset:${asset.id}`,
    is_disabled: asset.isDisabled,
    source: asset.source,
    data_updated_at: new Date(asset.dataUpdatedAtMs).toISOString(),
  }
}

/**
 * The initial assets of a group: a name that looks like a host is a domain, any other a keyword.
 */
function initialAssets(group: SandboxGroup, nowMs: number): SandboxAsset[] {
  return group.identifiers.map(({ id, name }) => ({
    id,
    tenantId: group.tenantId,
    groupId: group.id,
    name,
    ...guessType(name),
    searchTypes: [],
    experimentalSearchTypes: [],
    risks: [],
    attributes: [],
    isDisabled: false,
    source: 'SELF_ONBOARDING',
    dataUpdatedAtMs: nowMs,
    others: {},
  }))
}

function guessType(name: string): { type: AssetType; data: Record<string, unknown> } {
  const isHost = /^[a-z0-9-]+(\.[a-z0-9-]+)+$/i.test(name)
  return isHost
    ? { type: 'domain', data: { fqdn: name.toLowerCase() } }
    : { type: 'keyword', data: { keyword: name } }
}

/** Returns the same UUID for the same text. */
export function makeUuid(text: string): string {
  const digits = createRandom(hashText(text)).hex(30)
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(12, 15)}-a${digits.slice(15, 18)}-${digits.slice(18)}`
}

/** The fields of an asset that a client may write. */
export type AssetWriting = Pick<
  SandboxAsset,
  | 'name'
  | 'type'
  | 'searchTypes'
  | 'experimentalSearchTypes'
  | 'risks'
  | 'data'
  | 'attributes'
  | 'isDisabled'
  | 'others'
>

/** Every asset of the sandbox, of all tenants. */
export interface AssetStore {
  /** All assets in order of creation, initial ones first. */
  all(): readonly SandboxAsset[]
  get(id: number): SandboxAsset | undefined
  /** The id that the next created asset gets. */
  nextId(): number
  create(place: Pick<SandboxAsset, 'tenantId' | 'groupId'>, writing: AssetWriting): SandboxAsset
  /** Throws if there is no such asset. */
  change(id: number, writing: Partial<AssetWriting> & { groupId?: number | null }): SandboxAsset
  delete(id: number): void
  snapshot(): unknown
  /** Replaces the state. Throws ZodError if it is not a snapshot. */
  restore(snapshot: unknown): void
}

/** One id in three exceeds 32 bits, as the API's own may (docs/api-notes.md, Events). */
const largeIdBase = 406_285_300_000

export function createAssetStore(
  { groups, now }: Pick<SandboxSettings, 'groups' | 'now'>,
  onChange: () => void,
): AssetStore {
  const initial = groups.flatMap((group) => initialAssets(group, now()))
  let assets = new Map(initial.map((asset) => [asset.id, asset]))
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
    create(place, writing) {
      const id = nextId()
      createdCount++
      return keep({ id, ...place, ...writing, source: 'USER', dataUpdatedAtMs: now() })
    },
    change(id, writing) {
      const asset = assets.get(id)
      if (!asset) throw new Error(`the sandbox has no asset ${id}`)
      const dataUpdatedAtMs = 'data' in writing ? now() : asset.dataUpdatedAtMs
      return keep({ ...asset, ...writing, dataUpdatedAtMs })
    },
    delete(id) {
      assets.delete(id)
      onChange()
    },
    snapshot: () => ({ made: createdCount, assets: [...assets.values()] }),
    restore(snapshot) {
      const restored = assetSnapshot.parse(snapshot)
      createdCount = restored.made
      assets = new Map(restored.assets.map((asset) => [asset.id, asset]))
      onChange()
    },
  }
}

const assetSnapshot = z.object({ made: z.int(), assets: z.array(sandboxAsset) })

const word = z.string().trim().min(1)
const host = /^(?=.{1,253}$)([a-z0-9_]([a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*$/i

type Data = Record<string, unknown>

/** The schema of an asset's `data` (docs/api-notes.md, Assets). `data` may repeat the `type`. */
function dataSchema<Shape extends z.ZodRawShape>(type: AssetType, shape: Shape): z.ZodType<Data> {
  return z.strictObject({ type: z.literal(type).optional(), ...shape })
}

const dataSchemas = {
  domain: dataSchema('domain', { fqdn: z.string().regex(host, 'not a domain name') }),
  keyword: dataSchema('keyword', { keyword: word }),
  email: dataSchema('email', { email: z.email() }),
  username: dataSchema('username', { username: word }),
  name: dataSchema('name', {
    first_name: word,
    last_name: word,
    is_strict: z.boolean().optional(),
  }),
  github_repository: dataSchema('github_repository', { repo_owner: word, repo_name: word }),
  search_query: dataSchema('search_query', {
    search_query: word.superRefine((query, context) => {
      const problem = luceneProblem(query)
      if (problem) context.addIssue({ code: 'custom', message: problem })
    }),
  }),
  bin: dataSchema('bin', { bin: z.string().regex(/^\d{6,8}$/, 'not six to eight digits') }),
  ip: dataSchema('ip', { ip: z.string().refine((text) => isIP(text) > 0, 'not an IP address') }),
  secret: dataSchema('secret', { secret: word }),
  azure_tenant: dataSchema('azure_tenant', { tenant_id: word }),
  ransomleak: dataSchema('ransomleak', { source: word, id: word }),
  external_id: dataSchema('external_id', { source: word, id: word }),
  address_data: dataSchema('address_data', {
    street: word,
    city: word,
    country: z.string().length(2),
    state: word,
  }),
  birth_year: dataSchema('birth_year', { year: z.int().min(1900).max(2100) }),
  role: dataSchema('role', { role: word }),
  phone_number: dataSchema('phone_number', { phone_number: z.string().min(7) }),
} satisfies Partial<Record<AssetType, z.ZodType<Data>>>

/** Returns the problem with a Lucene query; null if it is valid. */
export function luceneProblem(query: string): string | null {
  try {
    parseLucene(query)
    return null
  } catch (error) {
    if (error instanceof LuceneError) return error.message
    throw error
  }
}

export interface AssetContent {
  data: Data
  attributes: Data[]
}

/** Parses a written `data`; returns the problem if it is invalid. */
export function parseAssetData(
  type: AssetType,
  data: Data,
  known: { uuid: string; attributes: Data[] },
): AssetContent | { problem: string } {
  if (type === 'identity') return parseIdentity(data, known)
  const parsed = dataSchemas[type].safeParse(data)
  if (parsed.success) return { data: parsed.data, attributes: [] }
  return { problem: formatProblem(type, parsed.error) }
}

/**
 * An identity is written with its attributes but read with a uuid alone; what was read may be
 * written back.
 */
function parseIdentity(
  data: Data,
  { uuid, attributes }: { uuid: string; attributes: Data[] },
): AssetContent | { problem: string } {
  if (data['uuid'] === uuid && attributes.length > 0) return { data: { uuid }, attributes }
  const parsed = identity.safeParse(data)
  if (parsed.success) return { data: { uuid }, attributes: parsed.data.attributes }
  return { problem: formatProblem('identity', parsed.error) }
}

const attribute = z
  .looseObject({ type: z.enum(['email', 'username', 'name', 'keyword', 'domain', 'ip', 'secret']) })
  .superRefine((given, context) => {
    const parsed = dataSchemas[given.type].safeParse(given)
    for (const { path, message } of parsed.error?.issues ?? []) {
      context.addIssue({ code: 'custom', path, message })
    }
  })

const identity = z.strictObject({
  type: z.literal('identity').optional(),
  attributes: z.array(attribute).min(1).max(15),
})

function formatProblem(type: AssetType, error: z.ZodError): string {
  const messages = error.issues.map(
    ({ path, message }) => `${['data', ...path].join('.')}: ${message}`,
  )
  return `data does not fit an asset of type ${type}: ${messages.join('; ')}`
}

/** A matching policy as the sandbox stores it in JSON. */
const sandboxPolicy = z.object({
  uuid: text,
  tenantId: z.int(),
  name: text,
  type: z.enum(policyTypes),
  value: z.record(text, z.unknown()),
  createdAtMs: z.number(),
  updatedAtMs: z.number(),
})
export type SandboxPolicy = z.infer<typeof sandboxPolicy>

/** The assignment of a policy to an identifier. */
const sandboxAssignment = z.object({
  policyUuid: text,
  identifierId: z.int(),
  cleanPastEvents: z.boolean(),
  assignedAtMs: z.number(),
})
export type SandboxAssignment = z.infer<typeof sandboxAssignment>

export function toPolicyItem(policy: SandboxPolicy): WirePolicy {
  return {
    uuid: policy.uuid,
    name: policy.name,
    policy_type: policy.type,
    value: policy.value,
    created_at: new Date(policy.createdAtMs).toISOString(),
    last_updated_at: new Date(policy.updatedAtMs).toISOString(),
  }
}

/** Returns an assignment as the list of an identifier shows it. */
export function toAssignmentItem(
  assignment: SandboxAssignment,
  policy: SandboxPolicy,
): WirePolicyAssignment {
  return {
    matching_policy: toPolicyItem(policy),
    assigned_at: new Date(assignment.assignedAtMs).toISOString(),
    clean_past_events: assignment.cleanPastEvents,
  }
}

/** Every matching policy of the sandbox, of all tenants. */
export interface PolicyStore {
  /** All policies in order of creation. */
  all(): readonly SandboxPolicy[]
  get(uuid: string): SandboxPolicy | undefined
  create(given: Pick<SandboxPolicy, 'tenantId' | 'name' | 'type' | 'value'>): SandboxPolicy
  /** Throws if there is no such policy. */
  change(uuid: string, given: Pick<SandboxPolicy, 'name' | 'value'>): SandboxPolicy
  delete(uuid: string): void
  snapshot(): unknown
  /** Replaces the state. Throws ZodError if it is not a snapshot. */
  restore(snapshot: unknown): void
}

export function createPolicyStore(now: () => number, onChange: () => void): PolicyStore {
  let policies = new Map<string, SandboxPolicy>()

  function keep(policy: SandboxPolicy): SandboxPolicy {
    policies.set(policy.uuid, policy)
    onChange()
    return policy
  }

  return {
    all: () => [...policies.values()],
    get: (uuid) => policies.get(uuid),
    create(given) {
      const nowMs = now()
      return keep({ uuid: randomUUID(), ...given, createdAtMs: nowMs, updatedAtMs: nowMs })
    },
    change(uuid, given) {
      const policy = policies.get(uuid)
      if (!policy) throw new Error(`the sandbox has no matching policy ${uuid}`)
      return keep({ ...policy, ...given, updatedAtMs: now() })
    },
    delete(uuid) {
      policies.delete(uuid)
      onChange()
    },
    snapshot: () => [...policies.values()],
    restore(snapshot) {
      const restored = z.array(sandboxPolicy).parse(snapshot)
      policies = new Map(restored.map((policy) => [policy.uuid, policy]))
      onChange()
    },
  }
}

/** Assignments of policies to identifiers, in order of assignment. */
export interface AssignmentStore {
  all(): readonly SandboxAssignment[]
  ofIdentifier(id: number): SandboxAssignment[]
  /** Renews existing assignments. */
  assign(policyUuid: string, identifierIds: readonly number[], cleanPastEvents: boolean): void
  unassign(policyUuid: string, identifierIds: readonly number[]): void
  /** Removes all assignments of a deleted policy. */
  forget(policyUuid: string): void
  /** Removes all assignments to a deleted asset. */
  forgetIdentifier(id: number): void
  snapshot(): unknown
  /** Replaces the state. Throws ZodError if it is not a snapshot. */
  restore(snapshot: unknown): void
}

export function createAssignmentStore(now: () => number, onChange: () => void): AssignmentStore {
  let assignments: SandboxAssignment[] = []

  function keep(list: SandboxAssignment[]): void {
    assignments = list
    onChange()
  }

  function without(policyUuid: string, identifierIds: readonly number[]): SandboxAssignment[] {
    return assignments.filter(
      (one) => one.policyUuid !== policyUuid || !identifierIds.includes(one.identifierId),
    )
  }

  return {
    all: () => assignments,
    ofIdentifier: (id) => assignments.filter(({ identifierId }) => identifierId === id),
    assign(policyUuid, identifierIds, cleanPastEvents) {
      const assignedAtMs = now()
      const assigned = [...new Set(identifierIds)].map((identifierId) => ({
        policyUuid,
        identifierId,
        cleanPastEvents,
        assignedAtMs,
      }))
      keep([...without(policyUuid, identifierIds), ...assigned])
    },
    unassign: (policyUuid, identifierIds) => keep(without(policyUuid, identifierIds)),
    forget: (uuid) => keep(assignments.filter(({ policyUuid }) => policyUuid !== uuid)),
    forgetIdentifier: (id) => keep(assignments.filter(({ identifierId }) => identifierId !== id)),
    snapshot: () => assignments,
    restore: (snapshot) => keep(z.array(sandboxAssignment).parse(snapshot)),
  }
}
