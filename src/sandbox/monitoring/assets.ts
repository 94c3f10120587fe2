/** Assets by v2, identifiers by v4, their lists, groups and alerts over HTTP. */
import { assetOperations } from '../../upstream/resources/assets.ts'
import {
  assetFields,
  type AssetType,
  eventSeverities,
  identifierTypes,
} from '../../upstream/resources/enumerations.ts'
import {
  identifierOperations,
  type WrittenIdentifier,
} from '../../upstream/resources/identifiers.ts'
import { inOrder, type Pages, toWirePage } from '../api/pages.ts'
import { type Caller, invalid, on, Refusal, requireOwn, type Route } from '../api/routes.ts'
import type { History } from '../history/history.ts'
import {
  createRandom,
  hashText,
  makeUuid,
  type SandboxGroup,
  type SandboxSettings,
} from '../options.ts'
import type { AssetWriting, Monitoring, SandboxAsset } from './monitoring.ts'

export interface MonitoringParts {
  settings: SandboxSettings
  history: History
  monitoring: Monitoring
  pages: Pages
}

type Data = Readonly<Record<string, unknown>>

export function assetRoutes(parts: MonitoringParts): Route[] {
  return [
    ...olderRoutes(parts),
    ...identifierRoutes(parts),
    ...listRoutes(parts),
    ...groupRoutes(parts),
    ...alertRoutes(parts),
  ]
}

function olderRoutes(parts: MonitoringParts): Route[] {
  const { settings } = parts
  const { assets } = parts.monitoring
  const show = (asset: SandboxAsset): unknown => ({ asset: toAssetItem(asset) })
  const own = (id: number | string, caller: Caller): SandboxAsset =>
    requireOwn(assets.get(Number(id)), 'asset', caller)

  return [
    on(assetOperations.create, ({ assets_group_id: wanted, ...given }, caller) => {
      const groupId = chooseGroup(wanted, caller, settings)
      const writing = { ...toWriting(given), groupId, isDisabled: false, others: {} }
      return show(assets.create(caller.tenantId, writing))
    }),
    on(assetOperations.get, ({ asset_id: id }, caller) => show(own(id, caller))),
    on(assetOperations.replace, ({ asset_id, is_disabled, ...given }, caller) => {
      const asset = own(asset_id, caller)
      const known = Object.keys(toAssetItem({ ...asset, others: {} }))
      const others = Object.entries(given).filter(([name]) => !known.includes(name))
      return show(
        assets.change(asset.id, {
          ...toWriting(given, asset),
          isDisabled: is_disabled === true,
          others: Object.fromEntries(others),
        }),
      )
    }),
    on(assetOperations.toggle, ({ asset_id: id, is_disabled: isDisabled }, caller) =>
      show(assets.change(own(id, caller).id, { isDisabled })),
    ),
    on(assetOperations.delete, ({ asset_id: id }, caller) => {
      assets.delete(own(id, caller).id)
      return null
    }),
  ]
}

interface WrittenAsset extends Pick<AssetWriting, 'name' | 'type' | 'data' | 'search_types'> {
  experimental_search_types?: readonly string[] | null | undefined
  risks?: readonly number[] | null | undefined
}

/** Checks what is written over `known`, if anything; fields left out are reset. Throws a Refusal. */
function toWriting(
  given: WrittenAsset,
  known?: SandboxAsset,
): Omit<AssetWriting, 'groupId' | 'isDisabled' | 'others'> {
  const { name, type, search_types, experimental_search_types, risks } = given
  return {
    name,
    type,
    data: checkedData(type, given.data, known),
    search_types,
    experimental_search_types: experimental_search_types ?? [],
    risks: risks ?? [],
  }
}

/** Returns the requested group, which must be the tenant's; by default the tenant's first, if any. */
function chooseGroup(
  wanted: number | undefined,
  caller: Caller,
  { groups }: SandboxSettings,
): number | null {
  if (wanted === undefined) {
    return groups.find(({ tenantId }) => tenantId === caller.tenantId)?.id ?? null
  }
  const found = groups.find(({ id }) => id === wanted)
  return requireOwn(found, 'assets group', caller).id
}

/** An identity is written with its attributes and read with a uuid, which may be written back. */
function checkedData(type: AssetType, data: Data, known: SandboxAsset | undefined): Data {
  if (type === 'identity') {
    if (known?.type === type && data['uuid'] === shownData(known)['uuid']) return known.data
    const { attributes } = data
    if (!Array.isArray(attributes) || attributes.length === 0) throw wrongData(type, 'attributes')
    return { attributes }
  }
  const fields = assetFields[type]
  const missing = fields.find((field) => (data[field] ?? '') === '')
  const optional = ['type', ...(type === 'name' ? ['is_strict'] : [])]
  const unknown = Object.keys(data).find((key) => ![...fields, ...optional].includes(key))
  const wrong = missing ?? unknown
  if (wrong !== undefined) throw wrongData(type, wrong)
  return data
}

function wrongData(type: AssetType, field: string): Refusal {
  const message = `data does not fit an asset of type ${type}: data.${field} is missing or unknown`
  return new Refusal(400, message, { code: 'INVALID_IDENTIFIER_DATA' })
}

function shownData({ id, type, data }: SandboxAsset): Data {
  return type === 'identity' ? { uuid: makeUuid(`identity/${id}`) } : data
}

function toAssetItem(asset: SandboxAsset): Record<string, unknown> {
  const { tenantId, groupId: _groupId, isDisabled, dataUpdatedAtMs, others, ...written } = asset
  return {
    ...others,
    ...written,
    data: shownData(asset),
    tenant_id: tenantId,
    is_disabled: isDisabled,
    data_updated_at: new Date(dataUpdatedAtMs).toISOString(),
  }
}

function countEvents({ id }: SandboxAsset, { history }: MonitoringParts): number {
  return history.all().filter(({ identifiers }) => identifiers.some((one) => one.id === id)).length
}

/** What servers have since 2026-06 (docs/api-notes.md, Versions). */
function identifierRoutes(parts: MonitoringParts): Route[] {
  const { settings } = parts
  const { assets } = parts.monitoring
  const show = (asset: SandboxAsset): unknown => toIdentifierItem(asset, parts)

  /** Of the types that v4 has no shape for it shows none. */
  function own(id: number | string, caller: Caller): SandboxAsset {
    const asset = assets.get(Number(id))
    const shown = asset && identifierTypes.includes(asset.type) ? asset : undefined
    return requireOwn(shown, 'identifier', caller)
  }

  return [
    on(identifierOperations.create, (given, caller) => {
      const groupId = chooseGroup(given.group_id ?? undefined, caller, settings)
      const isDisabled = given.is_disabled === true
      const writing = {
        ...readWritten(given as WrittenIdentifier),
        groupId,
        isDisabled,
        others: {},
      }
      return show(assets.create(caller.tenantId, writing))
    }),
    on(identifierOperations.get, ({ identifier_id: id }, caller) => show(own(id, caller))),
    on(identifierOperations.replace, ({ identifier_id: id, ...given }, caller) => {
      const asset = own(id, caller)
      const groupId = given.group_id ? chooseGroup(given.group_id, caller, settings) : null
      const isDisabled = given.is_disabled ?? asset.isDisabled
      const writing = { ...readWritten(given as WrittenIdentifier), groupId, isDisabled }
      return show(assets.change(asset.id, writing))
    }),
    on(identifierOperations.delete, ({ identifier_id: id }, caller) => {
      assets.delete(own(id, caller).id)
      return null
    }),
  ]
}

/** An identity is written by its attributes alone. */
function readWritten(given: WrittenIdentifier): ReturnType<typeof toWriting> {
  const { type: word, ...data } = given.data
  const type = identifierTypes.find((one) => one === word)
  if (type === undefined) throw invalid(['body', 'data', 'type'], 'not a type', word)
  return toWriting({
    name: given.name ?? type,
    type,
    data,
    search_types: given.categories,
    experimental_search_types: given.emerging_categories,
    risks: given.severities.map((one) => (eventSeverities as readonly string[]).indexOf(one) + 1),
  })
}

function toIdentifierItem(asset: SandboxAsset, parts: MonitoringParts): unknown {
  return {
    id: asset.id,
    name: asset.name,
    tenant_id: asset.tenantId,
    data: { type: asset.type, ...shownData(asset) },
    categories: asset.search_types,
    emerging_categories: asset.experimental_search_types,
    severities: asset.risks.map((risk) => eventSeverities[risk - 1]),
    group_id: asset.groupId,
    enrichments: { event_count: countEvents(asset, parts) },
    is_disabled: asset.isDisabled,
    updated_at: new Date(asset.dataUpdatedAtMs).toISOString(),
  }
}

interface ListFilters {
  order_by?: 'id' | 'name' | 'type' | undefined
  is_disabled?: boolean | undefined
  types?: readonly string[] | undefined
  group?: number | undefined
}

function listRoutes(parts: MonitoringParts): Route[] {
  const { pages } = parts

  /** The tenant's identifiers that the filters let through, in the order asked for. */
  function select(
    { tenantId }: Caller,
    { order_by: key = 'id', is_disabled: isDisabled, group, types }: ListFilters,
  ): ReturnType<typeof inOrder<{ asset: SandboxAsset }>> {
    const found = parts.monitoring.assets
      .all()
      .filter((asset) => asset.tenantId === tenantId)
      .filter((asset) => isDisabled === undefined || asset.isDisabled === isDisabled)
      .filter(({ groupId }) => group === undefined || groupId === group)
      .filter(({ type }) => types === undefined || types.includes(type))
      .toSorted((a, b) => a.id - b.id)
      .toSorted((a, b) => (key === 'id' ? 0 : a[key].localeCompare(b[key], 'en')))
    return inOrder(found.map((asset) => ({ asset })))
  }

  return [
    on(identifierOperations.list, ({ size = 20, from, ...asked }, caller) => {
      const wrong = asked.types?.find((type) => !identifierTypes.includes(type))
      if (wrong !== undefined) throw invalid(['query', 'types'], 'not a type', wrong)
      const entries = select(caller, { ...asked, group: asked.group_id })
      const page = pages.read({ scan: ['identifiers', asked], entries, size, from })
      return toWirePage(page, ({ asset }) => toIdentifierItem(asset, parts))
    }),
    on(identifierOperations.listOlder, ({ size = 20, from, ...asked }, caller) => {
      const { is_disabled = false, parent_group_id: group } = asked
      const entries = select(caller, { ...asked, is_disabled, group })
      const page = pages.read({ scan: ['identifiers v3', asked], entries, size, from })
      return toWirePage(page, ({ asset }) => ({
        ...toAssetItem(asset),
        event_count: countEvents(asset, parts),
      }))
    }),
  ]
}

function groupRoutes({ settings, history, monitoring, pages }: MonitoringParts): Route[] {
  const own = ({ tenantId }: Caller): SandboxGroup[] =>
    settings.groups.filter((group) => group.tenantId === tenantId)
  return [
    on(identifierOperations.groups, ({ size = 20, from }, caller) => {
      const entries = inOrder(own(caller))
      const page = pages.read({ scan: 'groups', entries, size, from })
      return toWirePage(page, (group) => {
        const members = monitoring.assets.all().filter(({ groupId }) => groupId === group.id)
        return {
          group: toGroupItem(group),
          identifier_count: members.filter(({ isDisabled }) => !isDisabled).length,
          total_identifier_count: members.length,
          event_count: history.ofGroup(group.id).length,
        }
      })
    }),
    on(assetOperations.groups, (_, caller) => ({ assets_groups: own(caller).map(toGroupItem) })),
  ]
}

function toGroupItem({ id, name, tenantId }: SandboxGroup): unknown {
  return { id, name, tenant_id: tenantId }
}

/** Alerts of an asset group, which are generated and the same on each read. */
function alertRoutes({ settings, pages }: MonitoringParts): Route[] {
  return [
    on(assetOperations.groupAlerts, ({ assets_group_id: id }, caller) => {
      const found = settings.groups.find((known) => known.id === Number(id))
      return { alerts: makeAlerts(requireOwn(found, 'assets group', caller)) }
    }),
    on(assetOperations.alerts, ({ size = 10, from }, caller) => {
      const alerts = settings.groups
        .filter(({ tenantId }) => tenantId === caller.tenantId)
        .flatMap(makeAlerts)
      const page = pages.read({
        scan: 'alerts',
        entries: inOrder(alerts.map((alert) => ({ alert }))),
        size,
        from,
      })
      return toWirePage(page, ({ alert }) => toTenantAlert(alert))
    }),
  ]
}

/** An alert as v4 shows it: without what configures its channel. */
function toTenantAlert({ params: _params, feed_url: _url, group, ...alert }: GroupAlert): unknown {
  return {
    ...alert,
    feed_definition: { type: 'group', id: group },
    alert_channel_id: 90_000 + alert.id,
  }
}

type GroupAlert = ReturnType<typeof makeAlerts>[number]

/** Two for groups with an even id, one for the others, with a secret (docs/api-notes.md, Alerts). */
function makeAlerts(group: SandboxGroup) {
  return Array.from({ length: group.id % 2 === 0 ? 2 : 1 }, (_, index) => {
    const id = group.id * 10 + index
    const secret = createRandom(hashText(`alert/${id}`)).hex(32)
    return {
      id,
      type: 'webhook',
      name: `${group.name} (webhook)`,
      frequency: 3600,
      params: { webhook_url: 'https://hooks.example/threats', secret },
      feed_url: `https://app.example.com/#/groups/${group.id}`,
      group: group.id,
      created_at: '2026-01-01T00:00:00',
      search_types: ['illicit_networks', 'leaks'],
      risks: [3, 4, 5],
    }
  })
}
