/**
 * Assets by v2, whose writes are deprecated in favour of the identifiers of v4 (docs/api-notes.md,
 * Assets), and the alerts of their groups and of the tenant.
 */
import { z } from 'zod'
import { assetTypes, orders } from './enumerations.ts'
import { cursor, nothing, operation, pagedOperation } from './operation.ts'
import { lenient, wireItems } from './page.ts'

const text = z.string()

/** An asset as the API returns it. Unknown fields and words of later versions pass. */
const wireAsset = z.looseObject({
  id: z.int(),
  name: text,
  type: text,
  search_types: z.array(text).nullish(),
  data: z.record(text, z.unknown()).nullish(),
  risks: z.array(z.number()).nullish(),
  is_disabled: z.boolean().nullish(),
})

export const wireAssetAnswer = z.looseObject({ asset: wireAsset })

/** Severities as numbers, from 1 (info) to 5 (critical) (docs/api-notes.md, Severities). */
const risks = z.array(z.int().min(1).max(5))

const assetData = z.record(text, z.unknown())

/** The body that creates an asset. Four fields are required (docs/api-notes.md, Assets). */
export const assetCreation = z.strictObject({
  name: text.min(1),
  type: z.enum(assetTypes),
  search_types: z.array(text.min(1)),
  data: assetData,
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
  search_types: z.array(text.min(1)),
  data: assetData,
  experimental_search_types: z.array(text).nullish(),
  risks: risks.nullish(),
})
export type AssetReplacement = z.input<typeof assetReplacement>

/** An alert of an asset group. The unit of `frequency` is not published. */
export const wireAlert = z.looseObject({
  id: z.int(),
  type: lenient.text,
  name: lenient.text,
  frequency: lenient.number,
  created_at: lenient.text,
  feed_url: lenient.text,
  params: lenient.fields,
  search_types: lenient.texts,
  risks: lenient.numbers,
})
export type WireAlert = z.infer<typeof wireAlert>

/** One alert or a list: described as an object, seen as lists (docs/api-notes.md, Alerts). */
const wireAlertsAnswer = z.looseObject({
  alerts: z.union([z.array(wireAlert), wireAlert.transform((alert) => [alert])]).nullish(),
})

/** An alert of the tenant; how its channel is configured is not shown. */
const wireTenantAlert = z.looseObject({
  id: z.int(),
  type: lenient.text,
  name: lenient.text,
  /** What it watches: `tenant`, or a `group` or `identifier` by its id. */
  feed_definition: z.looseObject({ type: lenient.text, id: lenient.number }).nullish().catch(null),
  frequency: lenient.number,
  alert_channel_id: lenient.number,
  search_types: lenient.texts,
  risks: lenient.numbers,
})

const root = '/firework/v2/assets/'
const oneAsset = wireAssetAnswer.transform(({ asset }) => asset)

export const assetOperations = {
  create: operation({
    name: 'assets.create',
    summary: 'create an asset (v2; identifiers.create is its successor)',
    request: `POST ${root}`,
    body: assetCreation,
    answer: oneAsset,
    changes: true,
  }),
  get: operation({
    name: 'assets.get',
    summary: 'read an asset (v2)',
    request: `GET ${root}{asset_id}`,
    answer: oneAsset,
    permission: 'to read assets',
  }),
  replace: operation({
    name: 'assets.replace',
    summary: 'replace a whole asset (v2); what is left out is gone',
    request: `PUT ${root}{asset_id}`,
    body: assetReplacement,
    answer: oneAsset,
    changes: true,
  }),
  toggle: operation({
    name: 'assets.toggle',
    summary: 'enable or disable an asset (v2)',
    request: `POST ${root}{asset_id}/toggle`,
    body: z.strictObject({ is_disabled: z.boolean() }),
    answer: oneAsset,
    changes: true,
  }),
  delete: operation({
    name: 'assets.delete',
    summary: 'delete an asset, perhaps with what was found for it (v2)',
    request: `DELETE ${root}{asset_id}`,
    answer: nothing,
    changes: true,
    permission: 'to delete assets',
  }),
  groups: operation({
    name: 'groups.list-v2',
    summary: 'list the groups of identifiers, without counts',
    request: `GET ${root}groups/`,
    // The description has an object where servers may send a list, as with alerts.
    answer: z
      .looseObject({ assets_groups: wireItems.nullish() })
      .transform(({ assets_groups: groups }) => groups ?? []),
    item: z.looseObject({ id: z.int(), name: lenient.text }),
    permission: 'to read groups of identifiers',
  }),
  groupAlerts: operation({
    name: 'alerts.of-group',
    summary: "list the service's own alerts of a group",
    request: `GET ${root}groups/{assets_group_id}/alerts`,
    answer: wireAlertsAnswer.transform(({ alerts }) => alerts ?? []),
    item: wireAlert,
  }),
  alerts: pagedOperation({
    name: 'alerts.list',
    summary: "list the service's own alerts of the tenant",
    request: 'GET /firework/v4/alerts/',
    query: z.strictObject({
      order_type: z.enum(orders).optional(),
      q: text.optional(),
      feed_owner_id: text.optional(),
      size: z.int().min(1).max(10).optional(),
      from: cursor,
    }),
    item: wireTenantAlert,
    permission: 'alert_channels',
  }),
} as const
