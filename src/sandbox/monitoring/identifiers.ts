/**
 * The lists of identifiers and of their groups, in the shapes of v2, v3 and v4, and identifiers of v4
 * created, read, changed and deleted.
 */
import { z } from 'zod'
import {
  assetTypes,
  eventFilterTypes,
  eventSeverities,
  identifierTypes,
} from '../../upstream/resources/enumerations.ts'
import type { SandboxGroup } from '../options.ts'
import {
  listPage,
  type MonitoringParts,
  type MonitoringRoute,
  parseInteger,
  parseWith,
  refusal,
  requireOwn,
  type TenantRequest,
} from './route.ts'
import {
  type AssetContent,
  type AssetWriting,
  makeUuid,
  parseAssetData,
  type SandboxAsset,
  toAssetItem,
} from './store.ts'

/** A parameter that may come several times. */
function several<Schema extends z.ZodType>(schema: Schema) {
  return z.preprocess((value) => (typeof value === 'string' ? [value] : value), z.array(schema))
}

const flag = z.enum(['true', 'false']).transform((text) => text === 'true')
const orderBy = z.enum(['id', 'name', 'type']).default('id')

const publicQuery = z.object({
  order_by: orderBy,
  is_disabled: flag.optional(),
  group_id: z.coerce.number().int().optional(),
  types: several(z.enum(identifierTypes)).optional(),
})

/** Without `is_disabled`, v3 lists only those that are enabled. */
const olderQuery = z.object({
  order_by: orderBy,
  is_disabled: flag.default(false),
  parent_group_id: z.string().optional(),
  types: several(z.enum(assetTypes)).optional(),
})

/** v3 states no maximum. */
const unlimited = Number.MAX_SAFE_INTEGER

interface Filters {
  order_by: 'id' | 'name' | 'type'
  is_disabled?: boolean | undefined
  group?: number | string | undefined
  types?: readonly string[] | undefined
}

const root = '/firework/v4/identifiers/'

export function identifierRoutes(parts: MonitoringParts): MonitoringRoute[] {
  const { groups } = parts.settings
  return [
    { method: 'GET', path: root, answer: (asked) => list(asked, parts) },
    ...singleRoutes(parts),
    {
      method: 'GET',
      path: '/firework/v3/identifiers/',
      answer: (asked) => listOlder(asked, parts),
    },
    {
      method: 'GET',
      path: '/firework/v3/identifiers/groups',
      answer: (asked) => listGroups(asked, parts),
    },
    {
      method: 'GET',
      path: '/firework/v2/assets/groups/',
      answer: ({ tenantId }) => ({
        assets_groups: groups.filter((group) => group.tenantId === tenantId).map(toGroupItem),
      }),
    },
  ]
}

function list({ query, tenantId }: TenantRequest, parts: MonitoringParts): unknown {
  const parsed = parseWith(publicQuery, query, { version: 'v4', part: 'query' })
  return listPage(select(parts, tenantId, { ...parsed, group: parsed.group_id }), query, {
    endMode: parts.settings.endMode,
    most: 100,
    usual: 20,
    order: 'asc',
    itemOf: ({ asset }) => toIdentifierItem(asset, countEvents(asset, parts)),
  })
}

/** What is left out is reset, the group too. */
const writtenIdentifier = z.object({
  name: z.string().nullish(),
  data: z.looseObject({ type: z.enum(identifierTypes) }),
  categories: z.array(z.enum(eventFilterTypes)),
  emerging_categories: z.array(z.string()),
  severities: z.array(z.enum(eventSeverities)),
  group_id: z.int().nullish(),
  is_disabled: z.boolean().nullish(),
})

/** Routes that servers have since 2026-06 (docs/api-notes.md, Versions). */
function singleRoutes(parts: MonitoringParts): MonitoringRoute[] {
  const { assets, assignments } = parts.monitoring
  const show = (asset: SandboxAsset): unknown => toIdentifierItem(asset, countEvents(asset, parts))

  /** Of the types that v4 has no shape for it shows none. */
  function requireIdentifier({ params, tenantId }: TenantRequest): SandboxAsset {
    const asset = assets.get(parseInteger(params['id'] ?? '', 'identifier_id'))
    const shown = asset && identifierTypes.includes(asset.type) ? asset : undefined
    return requireOwn(shown, { version: 'v4', what: 'identifier', tenantId })
  }

  function create(request: TenantRequest): unknown {
    const { groupId, writing } = readWriting(request, assets.nextId(), parts)
    const place = {
      tenantId: request.tenantId,
      groupId: groupId ?? chooseGroup(undefined, request.tenantId, parts),
    }
    return show(assets.create(place, { ...writing, isDisabled: false }))
  }

  function update(request: TenantRequest): unknown {
    const now = requireIdentifier(request)
    const { groupId, writing } = readWriting(request, now.id, parts)
    const { is_disabled: isDisabled } = request.body as { is_disabled?: boolean | null }
    const change = { ...writing, groupId, isDisabled: isDisabled ?? now.isDisabled }
    return show(assets.change(now.id, change))
  }

  function remove(request: TenantRequest): unknown {
    const { id } = requireIdentifier(request)
    assets.delete(id)
    assignments.forgetIdentifier(id)
    return null
  }

  const one = `${root}:id`
  return [
    { method: 'POST', path: root, answer: create, isUndescribed: true },
    {
      method: 'GET',
      path: one,
      answer: (request) => show(requireIdentifier(request)),
      isUndescribed: true,
    },
    { method: 'PUT', path: one, answer: update, isUndescribed: true },
    { method: 'DELETE', path: one, answer: remove, isUndescribed: true },
  ]
}

function readWriting(
  { body, tenantId }: TenantRequest,
  id: number,
  parts: MonitoringParts,
): { groupId: number | null; writing: Omit<AssetWriting, 'isDisabled'> } {
  const given = parseWith(writtenIdentifier, body, { version: 'v4', part: 'body' })
  const { type, ...data } = given.data
  const writing = {
    name: given.name ?? type,
    type,
    searchTypes: given.categories,
    experimentalSearchTypes: given.emerging_categories,
    risks: given.severities.map((word) => eventSeverities.indexOf(word) + 1),
    others: {},
    ...toContent({ type, data }, { id, attributes: [] }), // an identity is written by its attributes alone
  }
  const groupId = given.group_id ? chooseGroup(given.group_id, tenantId, parts) : null
  return { groupId, writing }
}

function listOlder({ query, tenantId }: TenantRequest, parts: MonitoringParts): unknown {
  const { endMode, now } = parts.settings
  const parsed = parseWith(olderQuery, query, { version: 'v2', part: 'query' })
  return listPage(select(parts, tenantId, { ...parsed, group: parsed.parent_group_id }), query, {
    endMode,
    most: unlimited,
    usual: 20,
    order: 'asc',
    itemOf({ asset }) {
      const { v3_refs, ...item } = toAssetItem(asset, countEvents(asset, parts), now())
      return {
        ...item,
        asset_uuid: v3_refs?.asset_uuid,
        event_count: item.count,
      }
    },
  })
}

function listGroups({ query, tenantId }: TenantRequest, parts: MonitoringParts): unknown {
  const { monitoring, history, settings } = parts
  const placed = settings.groups
    .filter((group) => group.tenantId === tenantId)
    .map((group) => ({ group, createdAtMs: group.id, uid: String(group.id) }))
  return listPage(placed, query, {
    endMode: settings.endMode,
    most: unlimited,
    usual: 20,
    order: 'asc',
    itemOf({ group }) {
      const members = monitoring.assets.all().filter(({ groupId }) => groupId === group.id)
      return {
        group: toGroupItem(group),
        identifier_count: members.filter(({ isDisabled }) => !isDisabled).length,
        total_identifier_count: members.length,
        rate_limited_identifiers_count: 0,
        event_count: history.ofGroup(group.id).length,
      }
    },
  })
}

function countEvents({ id }: SandboxAsset, { history }: MonitoringParts): number {
  return history.all().filter(({ identifiers }) => identifiers.some((one) => one.id === id)).length
}

/** The tenant's identifiers that the filters let through, in the order asked for. */
function select(
  { monitoring }: MonitoringParts,
  tenantId: number,
  { order_by: key, is_disabled: isDisabled, group, types }: Filters,
): Placed[] {
  return monitoring.assets
    .all()
    .filter((asset) => asset.tenantId === tenantId)
    .filter((asset) => isDisabled === undefined || asset.isDisabled === isDisabled)
    .filter((asset) => group === undefined || String(asset.groupId) === String(group))
    .filter((asset) => types === undefined || types.includes(asset.type))
    .toSorted((a, b) => a.id - b.id)
    .toSorted((a, b) => (key === 'id' ? 0 : a[key].localeCompare(b[key], 'en')))
    .map((asset, rank) => ({ asset, createdAtMs: rank, uid: String(asset.id) }))
}

interface Placed {
  asset: SandboxAsset
  createdAtMs: number
  uid: string
}

function toIdentifierItem(asset: SandboxAsset, eventCount: number): unknown {
  return {
    id: asset.id,
    name: asset.name,
    tenant_id: asset.tenantId,
    data: { type: asset.type, ...asset.data },
    categories: asset.searchTypes,
    emerging_categories: asset.experimentalSearchTypes,
    severities: asset.risks.map((risk) => eventSeverities[risk - 1]),
    group_id: asset.groupId,
    enrichments: {
      domain_reachable_at: null,
      domain_resolves_at: null,
      usage_count: 0,
      event_count: eventCount,
      authorization_status: null,
    },
    is_disabled: asset.isDisabled,
    updated_at: new Date(asset.dataUpdatedAtMs).toISOString(),
  }
}

function toGroupItem(group: SandboxGroup): unknown {
  return {
    id: group.id,
    tenant_id: group.tenantId,
    feed_id: 2_000_000 + group.id,
    feed_owner_id: group.tenantId,
    name: group.name,
    urn: `urn:sandbox:group:${group.id}`,
  }
}

export function toContent(
  { type, data }: Pick<AssetWriting, 'type' | 'data'>,
  { id, attributes }: Pick<SandboxAsset, 'id' | 'attributes'>,
): AssetContent {
  const content = parseAssetData(type, data, { uuid: makeUuid(`identity/${id}`), attributes })
  if (!('problem' in content)) return content
  const message = content.problem
  throw refusal('v4', { status: 400, code: 'INVALID_IDENTIFIER_DATA', message })
}

/**
 * Returns the requested group, which must be the tenant's; by default the tenant's first; null if
 * it has none.
 */
export function chooseGroup(
  request: number | undefined,
  tenantId: number,
  { settings }: MonitoringParts,
): number | null {
  const { groups } = settings
  if (request === undefined) return groups.find((group) => group.tenantId === tenantId)?.id ?? null
  const found = groups.find(({ id }) => id === request)
  return requireOwn(found, { version: 'v2', what: 'assets group', tenantId }).id
}
