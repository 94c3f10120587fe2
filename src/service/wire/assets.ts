/** Assets (identifiers): as read, and as written. */
import { z } from 'zod'
import { assetTypes, createSearchTypes, replaceSearchTypes } from './enumerations.ts'

const text = z.string()

/** An asset as the service gives it; fields and words of later versions pass. */
export const wireAsset = z.looseObject({
  id: z.int(),
  name: text,
  type: text,
  search_types: z.array(text).nullish(),
  data: z.record(text, z.unknown()).nullish(),
  experimental_search_types: z.array(text).nullish(),
  risks: z.array(z.number()).nullish(),
  tenant_id: z.number().nullish(),
  feed_id: z.number().nullish(),
  v3_refs: z.looseObject({ asset_uuid: text.nullish() }).nullish(),
  fetching_progress: z.number().nullish(),
  count: z.number().nullish(),
  urn: text.nullish(),
  is_disabled: z.boolean().nullish(),
  source: text.nullish(),
  data_updated_at: text.nullish(),
})
export type WireAsset = z.infer<typeof wireAsset>

export const wireAssetAnswer = z.looseObject({ asset: wireAsset })

/** The numeric severities 1 to 5 (facts.md 1, row 5). */
const risks = z.array(z.int().min(1).max(5))

/** Required on creation: name, type, search_types, data (facts.md 1, row 18). */
export const assetCreation = z.strictObject({
  name: text.min(1),
  type: z.enum(assetTypes),
  search_types: z.array(z.enum(createSearchTypes)),
  data: z.record(text, z.unknown()),
  experimental_search_types: z.array(text).optional(),
  risks: risks.optional(),
  /** Not in the description; callers send it to place the asset in a group (facts.md 5). */
  assets_group_id: z.int().min(1).optional(),
})
export type AssetCreation = z.input<typeof assetCreation>

/** An asset as it shall be: what the service gave last, with its changes; unknown fields go along. */
export const assetReplacement = z.looseObject({
  name: text.min(1),
  type: z.enum(assetTypes),
  search_types: z.array(z.enum(replaceSearchTypes)),
  data: z.record(text, z.unknown()),
  experimental_search_types: z.array(text).nullish(),
  risks: risks.nullish(),
})
export type AssetReplacement = z.input<typeof assetReplacement>
