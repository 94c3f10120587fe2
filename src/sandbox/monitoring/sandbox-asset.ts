import { z } from 'zod'
import { assetTypes, type AssetType } from '../../service/wire/enumerations.ts'
import type { WireAsset } from '../../service/wire/assets.ts'
import type { SandboxGroup } from '../options.ts'
import { createRandom, hashOf } from '../random.ts'

const text = z.string()
const anything = z.record(text, z.unknown())

/** An asset (identifier) as the sandbox holds it, in JSON; what the wire shows is made at each reading. */
export const sandboxAsset = z.object({
  id: z.int(),
  tenantId: z.int(),
  /** The identifier group that shows its events; null: its tenant has none. */
  groupId: z.int().nullable(),
  name: text,
  type: z.enum(assetTypes),
  /** Empty: all of them; so for `risks`. */
  searchTypes: z.array(text),
  experimentalSearchTypes: z.array(text),
  risks: z.array(z.int()),
  data: anything,
  /** What an identity consists of, which its `data` does not show. */
  attributes: z.array(anything),
  isDisabled: z.boolean(),
  source: text,
  dataUpdatedAtMs: z.number(),
  /** Fields that nobody knows, as they were sent. */
  others: anything,
})
export type SandboxAsset = z.infer<typeof sandboxAsset>

/** The asset as the service gives it; `count`: how many events matched so far. */
export function assetItemOf(asset: SandboxAsset, count: number, nowMs: number): WireAsset {
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
    feed_id: 3_000_000 + (hashOf(`feed/${asset.id}`) % 1_000_000),
    v3_refs: { asset_uuid: uuidOf(`asset/${asset.id}`) },
    // Says nothing that is published: here it grows for ten seconds after each write.
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

/** The assets that stand in a group from the start: a name like a host's is a domain, others are keywords. */
export function standingAssets(group: SandboxGroup, nowMs: number): SandboxAsset[] {
  return group.identifiers.map(({ id, name }) => ({
    id,
    tenantId: group.tenantId,
    groupId: group.id,
    name,
    ...kindOf(name),
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

function kindOf(name: string): { type: AssetType; data: Record<string, unknown> } {
  const isHost = /^[a-z0-9-]+(\.[a-z0-9-]+)+$/i.test(name)
  return isHost
    ? { type: 'domain', data: { fqdn: name.toLowerCase() } }
    : { type: 'keyword', data: { keyword: name } }
}

/** The same for the same text. */
export function uuidOf(text: string): string {
  const digits = createRandom(hashOf(text)).hex(30)
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(12, 15)}-a${digits.slice(15, 18)}-${digits.slice(18)}`
}
