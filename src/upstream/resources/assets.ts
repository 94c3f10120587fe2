/** Assets (identifiers): create, read, replace, toggle, delete; and the alerts of their groups. */
import { z } from 'zod'
import { assetTypes, createSearchTypes, replaceSearchTypes } from './enumerations.ts'
import {
  type CallOptions,
  checkRequest,
  type OperationParts,
  pathPart,
  read,
  readWritten,
  type Request,
  write,
} from './operation.ts'

/** All operations use the basic tier. */
export interface AssetOperations {
  /** `POST /firework/v2/assets/`. */
  createAsset(request: { asset: AssetCreation } & CallOptions): Promise<WireAsset>
  /** `GET /firework/v2/assets/{id}`. Not every server has it. */
  getAsset(request: { id: number } & CallOptions): Promise<WireAsset>
  /** Replaces the whole asset by `asset`. `PUT /firework/v2/assets/{id}`. */
  replaceAsset(request: { id: number; asset: AssetReplacement } & CallOptions): Promise<WireAsset>
  /** `POST /firework/v2/assets/{id}/toggle`. */
  toggleAsset(request: { id: number; isDisabled: boolean } & CallOptions): Promise<WireAsset>
  /** `DELETE /firework/v2/assets/{id}`. Not every server has it. */
  deleteAsset(request: { id: number } & CallOptions): Promise<void>
  /** Returns how a group of assets is alerted on. `GET /firework/v2/assets/groups/{id}/alerts`. */
  groupAlerts(request: { groupId: number } & CallOptions): Promise<WireAlert[]>
}

export function createAssetOperations(parts: OperationParts): AssetOperations {
  const pathOf = (id: number): string => `/firework/v2/assets/${pathPart(id)}`

  async function change(request: Request, asked: CallOptions): Promise<WireAsset> {
    return readWritten(await write(parts, request, asked), wireAssetAnswer).asset
  }

  return {
    async createAsset({ asset, ...asked }) {
      const body = checkRequest(assetCreation, asset)
      const secrets = secretTexts(body.data)
      return change({ method: 'POST', path: '/firework/v2/assets/', body, secrets }, asked)
    },
    async getAsset({ id, ...asked }) {
      return (await read(parts, wireAssetAnswer, { method: 'GET', path: pathOf(id) }, asked)).asset
    },
    async replaceAsset({ id, asset, ...asked }) {
      const body = checkRequest(assetReplacement, asset)
      return change(
        { method: 'PUT', path: pathOf(id), body, secrets: secretTexts(body.data) },
        asked,
      )
    },
    toggleAsset({ id, isDisabled, ...asked }) {
      const path = `${pathOf(id)}/toggle`
      return change({ method: 'POST', path, body: { is_disabled: isDisabled } }, asked)
    },
    async deleteAsset({ id, ...asked }) {
      await write(parts, { method: 'DELETE', path: pathOf(id) }, asked)
    },
    async groupAlerts({ groupId, ...asked }) {
      const path = `/firework/v2/assets/groups/${pathPart(groupId)}/alerts`
      return (await read(parts, wireAlertsAnswer, { method: 'GET', path }, asked)).alerts ?? []
    },
  }
}

/** Matches field names whose value is a secret. */
const secretNames =
  /passw(?:or)?d|passphrase|passcode|pwd|secret|token|apikey|accesskey|privatekey|cookie|hash/i

/** Returns the values of a body that no message may show, recognized by their field names. */
function secretTexts(value: unknown, isSecret = false): string[] {
  if (typeof value === 'string' || typeof value === 'number') return isSecret ? [String(value)] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    secretTexts(inner, isSecret || secretNames.test(name.replaceAll(/[^a-z]/gi, ''))),
  )
}

const text = z.string()

/** An asset as the API returns it. Unknown fields and words of later versions pass. */
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

/** Severities as numbers, from 1 (info) to 5 (critical) (docs/api-notes.md, Severities). */
const risks = z.array(z.int().min(1).max(5))

/** The body that creates an asset. Four fields are required (docs/api-notes.md, Assets). */
export const assetCreation = z.strictObject({
  name: text.min(1),
  type: z.enum(assetTypes),
  search_types: z.array(z.enum(createSearchTypes)),
  data: z.record(text, z.unknown()),
  experimental_search_types: z.array(text).optional(),
  risks: risks.optional(),
  /** Puts the asset into a group. Missing from the API description (docs/api-notes.md, Assets). */
  assets_group_id: z.int().min(1).optional(),
})
export type AssetCreation = z.input<typeof assetCreation>

/** The body that replaces an asset as last read, with its changes. Unknown fields are sent back. */
export const assetReplacement = z.looseObject({
  name: text.min(1),
  type: z.enum(assetTypes),
  search_types: z.array(z.enum(replaceSearchTypes)),
  data: z.record(text, z.unknown()),
  experimental_search_types: z.array(text).nullish(),
  risks: risks.nullish(),
})
export type AssetReplacement = z.input<typeof assetReplacement>

const nullableText = text.nullish()

/** An alert of an asset group. The unit of `frequency` is not published. */
export const wireAlert = z.looseObject({
  id: z.int(),
  type: nullableText,
  name: nullableText,
  frequency: z.number().nullish(),
  start_at: nullableText,
  params: z.record(text, z.unknown()).nullish(),
  feed_url: nullableText,
  feed_target_type: nullableText,
  feed_target_id: z.number().nullish(),
  created_at: nullableText,
  tenant_id: z.number().nullish(),
  organization_id: z.number().nullish(),
  search_types: z.array(text).nullish(),
  experimental_search_types: z.array(text).nullish(),
  risks: z.array(z.number()).nullish(),
  tenant_alert_channel_id: z.number().nullish(),
})
export type WireAlert = z.infer<typeof wireAlert>

/** One alert or a list: described as an object, seen as lists (docs/api-notes.md, Alerts). */
export const wireAlertsAnswer = z.looseObject({
  alerts: z.union([z.array(wireAlert), wireAlert.transform((alert) => [alert])]).nullish(),
})
