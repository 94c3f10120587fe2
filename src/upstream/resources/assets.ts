/**
 * Assets (identifiers): create, read, replace, toggle, delete; and the alerts of their groups. All but
 * the alerts go by v4, where a server has it for the type of the asset, else by v2, whose writes are
 * deprecated (docs/api-notes.md, Assets). v2 is asked only after v4 has answered 404 or 405, so
 * nothing is done twice.
 */
import { z } from 'zod'
import { type Capabilities, isUnknownPath } from '../capabilities.ts'
import { UpstreamError } from '../error.ts'
import {
  assetTypes,
  createSearchTypes,
  eventSeverities,
  identifierTypes,
  replaceSearchTypes,
} from './enumerations.ts'
import {
  createSingleIdentifiers,
  secretTexts,
  type WholeIdentifier,
  type WrittenIdentifier,
} from './identifiers.ts'
import {
  type CallOptions,
  checkRequest,
  type OptionalOperationParts,
  pathPart,
  read,
  readWritten,
  type Request,
  write,
} from './operation.ts'

/** All operations use the basic tier. `…` stands for `/firework/v4/identifiers/`. */
export interface AssetOperations {
  /** `POST …`, or `POST /firework/v2/assets/`. */
  createAsset(request: { asset: AssetCreation } & CallOptions): Promise<WireAsset>
  /** `GET …{id}`, or `GET /firework/v2/assets/{id}`. Not every server has either. */
  getAsset(request: { id: number } & CallOptions): Promise<WireAsset>
  /**
   * Replaces the whole asset by `asset`; its group stays, and whether it is disabled, at v4 all that
   * is left out. `GET …{id}` and `PUT …{id}`, or both of `/firework/v2/assets/{id}`, which alone
   * takes unknown fields.
   */
  replaceAsset(request: { id: number; asset: AssetReplacement } & CallOptions): Promise<WireAsset>
  /** `GET …{id}` and `PUT …{id}`, or `POST /firework/v2/assets/{id}/toggle`. */
  toggleAsset(request: { id: number; isDisabled: boolean } & CallOptions): Promise<WireAsset>
  /** `DELETE …{id}`, or `DELETE /firework/v2/assets/{id}`. Not every server has either. */
  deleteAsset(request: { id: number } & CallOptions): Promise<void>
  /** Returns how a group of assets is alerted on. `GET /firework/v2/assets/groups/{id}/alerts`. */
  groupAlerts(request: { groupId: number } & CallOptions): Promise<WireAlert[]>
}

export function createAssetOperations(parts: OptionalOperationParts): AssetOperations {
  const identifiers = createSingleIdentifiers(parts)
  const callNewest = createChoice(parts.capabilities)
  const change = (request: Request, asked: CallOptions) => changeOlder(parts, request, asked)

  const changeIdentifier = async (...how: Parameters<typeof identifiers.change>) => {
    const changed = await identifiers.change(...how)
    return changed && toAsset(changed)
  }

  return {
    async createAsset({ asset, ...asked }) {
      const body = checkRequest(assetCreation, asset)
      const secrets = secretTexts(body.data)
      const older = () => change({ method: 'POST', path: root, body, secrets }, asked)
      if (!identifierTypes.includes(body.type)) return older()
      const given = toIdentifier(body, { ...newIdentifier, group_id: body.assets_group_id })
      return callNewest(async () => toAsset(await identifiers.create(given, asked)), older, true)
    },
    getAsset: ({ id, ...asked }) =>
      callNewest(
        async () => toAsset(await identifiers.get(id, asked)),
        () => getOlder(parts, id, asked),
      ),
    async replaceAsset({ id, asset, ...asked }) {
      const body = checkRequest(assetReplacement, asset)
      const secrets = secretTexts(body.data)
      const older = () => change({ method: 'PUT', path: pathOf(id), body, secrets }, asked)
      if (!identifierTypes.includes(body.type)) return older()
      const replace = (now: WrittenIdentifier) => {
        const { is_disabled } = body
        return toIdentifier(body, typeof is_disabled === 'boolean' ? { ...now, is_disabled } : now)
      }
      return callNewest(() => changeIdentifier(id, replace, asked), older)
    },
    toggleAsset({ id, isDisabled: is_disabled, ...asked }) {
      const toggle = (now: WrittenIdentifier) => ({ ...now, is_disabled })
      const request = { path: `${pathOf(id)}/toggle`, body: { is_disabled } }
      return callNewest(
        () => changeIdentifier(id, toggle, asked),
        () => change({ method: 'POST', ...request }, asked),
      )
    },
    async deleteAsset({ id, ...asked }) {
      const older = () => write(parts, { method: 'DELETE', path: pathOf(id) }, asked)
      await callNewest<unknown>(() => identifiers.remove(id, asked), older)
    },
    async groupAlerts({ groupId, ...asked }) {
      const path = `/firework/v2/assets/groups/${pathPart(groupId)}/alerts`
      return (await read(parts, wireAlertsAnswer, { method: 'GET', path }, asked)).alerts ?? []
    },
  }
}

const root = '/firework/v2/assets/'
const pathOf = (id: number): string => `${root}${pathPart(id)}`

async function changeOlder(
  parts: OptionalOperationParts,
  request: Request,
  asked: CallOptions,
): Promise<WireAsset> {
  return readWritten(await write(parts, request, asked), wireAssetAnswer).asset
}

async function getOlder(
  parts: OptionalOperationParts,
  id: number,
  asked: CallOptions,
): Promise<WireAsset> {
  return (await read(parts, wireAssetAnswer, { method: 'GET', path: pathOf(id) }, asked)).asset
}

const capability = 'assets/v4'

/**
 * Returns a function that calls the operation of v4, and that of v2 where v4 has answered 404 or 405, or
 * has done nothing (undefined).
 * Only where the request names nothing is a 404 about the path, and remembered as a 405 is.
 */
function createChoice(capabilities: Capabilities) {
  return async function callNewest<Result>(
    newer: () => Promise<Result | undefined>,
    older: () => Promise<Result>,
    isCreation = false,
  ): Promise<Result> {
    if ((await capabilities.read(capability))?.has === false) return older()
    try {
      const done = await newer()
      if (done !== undefined) return done
    } catch (error) {
      const { status } = error instanceof UpstreamError ? error : {}
      const isUnknown = status === 405 || (isCreation && isUnknownPath(error))
      if (!isUnknown && (isCreation || status !== 404)) throw error
      if (isUnknown) await capabilities.note(capability, false, 'day')
    }
    return older()
  }
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

const newIdentifier = { emerging_categories: [], severities: [] }

/** The body of v4 that means the same. What it leaves out stays, and severities without a number. */
function toIdentifier(
  {
    name,
    type,
    data,
    search_types: categories,
    experimental_search_types: emerging,
    risks: given,
  }: z.infer<typeof assetCreation> | z.infer<typeof assetReplacement>,
  now: Omit<WrittenIdentifier, 'name' | 'data' | 'categories'>,
): WrittenIdentifier {
  const known = given?.flatMap((risk) => eventSeverities[risk - 1] ?? [])
  return {
    ...now,
    name,
    data: { ...data, type },
    categories,
    emerging_categories: emerging ?? now.emerging_categories,
    severities: known
      ? [...known, ...now.severities.filter((word) => rankOf(word) === 0)]
      : now.severities,
  }
}

function rankOf(severity: string): number {
  return eventSeverities.findIndex((known) => known === severity) + 1
}

/** An identifier of v4 as the asset that it is; what only v4 has stays under its name. */
function toAsset(identifier: WholeIdentifier): WireAsset {
  const { data, categories, emerging_categories, severities, ...same } = identifier
  const { type, ...content } = data
  return {
    ...same,
    name: same.name ?? '',
    type,
    data: content,
    search_types: categories,
    experimental_search_types: emerging_categories,
    risks: severities.map(rankOf).filter((rank) => rank > 0),
    count: same.enrichments?.event_count,
    data_updated_at: same.updated_at,
  }
}

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
