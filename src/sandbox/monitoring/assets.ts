/** Assets by v2, identifiers by v4, their lists, groups and alerts over HTTP. */
import { z } from 'zod'
import { assetOperations } from '../../upstream/resources/assets.ts'
import {
  type AssetType,
  eventFilterTypes,
  eventSeverities,
  identifierTypes,
  orders,
} from '../../upstream/resources/enumerations.ts'
import {
  identifierOperations,
  type WrittenIdentifier,
} from '../../upstream/resources/identifiers.ts'
import { parseLucene } from '../api/lucene.ts'
import { fieldsOf } from '../api/matching.ts'
import { inOrder, type Pages, toWirePage } from '../api/pages.ts'
import {
  type Caller,
  invalid,
  on,
  Refusal,
  requireOwn,
  type Route,
  widened,
} from '../api/routes.ts'
import { refusingLucene } from '../api/search.ts'
import type { History } from '../history/history.ts'
import {
  createRandom,
  hashText,
  makeUuid,
  type SandboxGroup,
  type SandboxSettings,
} from '../options.ts'
import { formatZonelessTime } from '../times.ts'
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

interface WrittenAsset {
  name: string
  type: AssetType
  search_types: readonly string[]
  data: Data
  experimental_search_types?: readonly string[] | null | undefined
  risks?: readonly number[] | null | undefined
  [other: string]: unknown
}

/** Fields that clients write or that only the API sets; any others are stored as they are. */
const assetFields: ReadonlySet<string> = new Set(
  'id name type search_types data experimental_search_types risks tenant_id feed_id v3_refs fetching_progress count urn is_disabled source data_updated_at'.split(
    ' ',
  ),
)

function olderRoutes(parts: MonitoringParts): Route[] {
  const { settings } = parts
  const { assets } = parts.monitoring
  const show = (asset: SandboxAsset): unknown => ({ asset: toAssetItem(asset, parts) })
  const own = (id: number | string, caller: Caller): SandboxAsset =>
    requireOwn(assets.get(Number(id)), 'asset', caller)

  return [
    on(assetOperations.create, ({ assets_group_id: groupId, ...given }, caller) => {
      const content = readContent(given, { id: assets.nextId(), attributes: [] })
      const place = { groupId: chooseGroup(groupId, caller, settings), isDisabled: false }
      return show(
        assets.create(caller.tenantId, { ...toWriting(given), ...content, ...place, others: {} }),
      )
    }),
    on(assetOperations.get, ({ asset_id: id }, caller) => show(own(id, caller))),
    on(assetOperations.replace, ({ asset_id, ...given }, caller) => {
      const asset = own(asset_id, caller)
      const fields = Object.entries(given).filter(([name]) => !assetFields.has(name))
      return show(
        assets.change(asset.id, {
          ...toWriting(given),
          ...readContent(given, asset),
          isDisabled: given['is_disabled'] === true,
          others: Object.fromEntries(fields),
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

/** Fields left out are reset. */
function toWriting(
  given: WrittenAsset,
): Pick<AssetWriting, 'name' | 'type' | 'searchTypes' | 'experimentalSearchTypes' | 'risks'> {
  return {
    name: given.name,
    type: given.type,
    searchTypes: given.search_types,
    experimentalSearchTypes: given.experimental_search_types ?? [],
    risks: given.risks ?? [],
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

type Content = Pick<AssetWriting, 'data' | 'attributes'>

/**
 * Checks a written `data`. An identity is written with its attributes and read with a uuid alone; what
 * was read may be written back. Throws a Refusal.
 */
function readContent(
  { type, data }: { type: AssetType; data: Data },
  known: Pick<SandboxAsset, 'id' | 'attributes'>,
): Content {
  if (type !== 'identity') {
    requireFields(type, data)
    return { data, attributes: [] }
  }
  const uuid = makeUuid(`identity/${known.id}`)
  if (data['uuid'] === uuid && known.attributes.length > 0) {
    return { data: { uuid }, attributes: known.attributes }
  }
  const attributes = Array.isArray(data['attributes']) ? (data['attributes'] as Data[]) : []
  if (attributes.length === 0) throw wrongData(type, 'data.attributes: missing')
  for (const one of attributes) requireFields(one['type'] as AssetType, one)
  return { data: { uuid }, attributes }
}

function requireFields(type: AssetType, data: Data): void {
  const fields = fieldsOf(type)
  const missing = fields.find((field) => (data[field] ?? '') === '')
  if (missing !== undefined) throw wrongData(type, `data.${missing}: missing`)
  const optional = ['type', ...(type === 'name' ? ['is_strict'] : [])]
  const unknown = Object.keys(data).find((key) => ![...fields, ...optional].includes(key))
  if (unknown !== undefined) throw wrongData(type, `data.${unknown}: unknown`)
  if (type === 'search_query') refusingLucene(() => parseLucene(String(data['search_query'])))
}

function wrongData(type: AssetType, problem: string): Refusal {
  const message = `data does not fit an asset of type ${type}: ${problem}`
  return new Refusal(400, message, { code: 'INVALID_IDENTIFIER_DATA' })
}

function toAssetItem(asset: SandboxAsset, parts: MonitoringParts): Record<string, unknown> {
  const ageMs = parts.settings.now() - asset.dataUpdatedAtMs
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
    fetching_progress: Math.min(100, Math.max(0, Math.floor(ageMs / 100))),
    count: countEvents(asset, parts),
    urn: `urn:sandbox:asset:${asset.id}`,
    is_disabled: asset.isDisabled,
    source: asset.source,
    data_updated_at: new Date(asset.dataUpdatedAtMs).toISOString(),
  }
}

function countEvents({ id }: SandboxAsset, { history }: MonitoringParts): number {
  return history.all().filter(({ identifiers }) => identifiers.some((one) => one.id === id)).length
}

/** All that a write names, in the words of the documents. */
const wholeIdentifier = {
  body: {
    categories: z.array(z.enum(eventFilterTypes)),
    emerging_categories: z.array(z.string()),
    severities: z.array(z.enum(eventSeverities)),
  },
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
    on(widened(identifierOperations.create, wholeIdentifier), (given, caller) => {
      const writing = readWritten(given as WrittenIdentifier, {
        id: assets.nextId(),
        attributes: [],
      })
      const groupId = chooseGroup(given.group_id ?? undefined, caller, settings)
      return show(assets.create(caller.tenantId, { ...writing, groupId }))
    }),
    on(identifierOperations.get, ({ identifier_id: id }, caller) => show(own(id, caller))),
    on(
      widened(identifierOperations.replace, wholeIdentifier),
      ({ identifier_id: id, ...given }, caller) => {
        const asset = own(id, caller)
        const { isDisabled, ...writing } = readWritten(given as WrittenIdentifier, asset)
        const groupId = given.group_id ? chooseGroup(given.group_id, caller, settings) : null
        const state = given.is_disabled == null ? asset.isDisabled : isDisabled
        return show(assets.change(asset.id, { ...writing, groupId, isDisabled: state }))
      },
    ),
    on(identifierOperations.delete, ({ identifier_id: id }, caller) => {
      assets.delete(own(id, caller).id)
      return null
    }),
  ]
}

function readWritten(
  given: WrittenIdentifier,
  known: Pick<SandboxAsset, 'id' | 'attributes'>,
): Omit<AssetWriting, 'groupId'> {
  const { type: word, ...data } = given.data
  const type = identifierTypes.find((one) => one === word)
  if (type === undefined) throw invalid(['body', 'data', 'type'], 'not a type', word)
  return {
    name: given.name ?? type,
    type,
    searchTypes: given.categories,
    experimentalSearchTypes: given.emerging_categories,
    risks: given.severities.map((one) => (eventSeverities as readonly string[]).indexOf(one) + 1),
    isDisabled: given.is_disabled === true,
    others: {},
    // an identity is written by its attributes alone
    ...readContent({ type, data }, { id: known.id, attributes: [] }),
  }
}

function toIdentifierItem(asset: SandboxAsset, parts: MonitoringParts): unknown {
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
      event_count: countEvents(asset, parts),
      authorization_status: null,
    },
    is_disabled: asset.isDisabled,
    updated_at: new Date(asset.dataUpdatedAtMs).toISOString(),
  }
}

/** v3 states no maximum, and takes any text for a group. */
const anySize = { query: { size: z.int().min(1).optional() } }
const olderQuery = { query: { ...anySize.query, parent_group_id: z.string().optional() } }
const alertQuery = {
  query: {
    order_type: z.enum(orders).optional(),
    q: z.string().optional(),
    feed_owner_id: z.string().optional(),
  },
}

interface ListFilters {
  order_by?: 'id' | 'name' | 'type' | undefined
  is_disabled?: boolean | undefined
  types?: readonly string[] | undefined
  group?: number | string | undefined
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
      .filter(({ groupId }) => group === undefined || String(groupId) === String(group))
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
    on(
      widened(identifierOperations.listOlder, olderQuery),
      ({ size = 20, from, ...asked }, caller) => {
        const { is_disabled = false, parent_group_id: group } = asked
        const entries = select(caller, { ...asked, is_disabled, group })
        const page = pages.read({ scan: ['identifiers v3', asked], entries, size, from })
        return toWirePage(page, ({ asset }) => {
          const { v3_refs, count, ...item } = toAssetItem(asset, parts)
          return { ...item, ...(v3_refs as object), count, event_count: count }
        })
      },
    ),
  ]
}

function groupRoutes({ settings, history, monitoring, pages }: MonitoringParts): Route[] {
  const own = ({ tenantId }: Caller): SandboxGroup[] =>
    settings.groups.filter((group) => group.tenantId === tenantId)
  return [
    on(widened(identifierOperations.groups, anySize), ({ size = 20, from }, caller) => {
      const entries = inOrder(own(caller))
      const page = pages.read({ scan: 'groups', entries, size, from })
      return toWirePage(page, (group) => {
        const members = monitoring.assets.all().filter(({ groupId }) => groupId === group.id)
        return {
          group: toGroupItem(group),
          identifier_count: members.filter(({ isDisabled }) => !isDisabled).length,
          total_identifier_count: members.length,
          rate_limited_identifiers_count: 0,
          event_count: history.ofGroup(group.id).length,
        }
      })
    }),
    on(assetOperations.groups, (_, caller) => ({ assets_groups: own(caller).map(toGroupItem) })),
  ]
}

function toGroupItem({ id, name, tenantId }: SandboxGroup): unknown {
  return {
    id,
    name,
    tenant_id: tenantId,
    feed_id: 2_000_000 + id,
    feed_owner_id: tenantId,
    urn: `urn:sandbox:group:${id}`,
  }
}

/** Alerts of an asset group, which are generated and the same on each read. */
function alertRoutes({ settings, pages }: MonitoringParts): Route[] {
  return [
    on(assetOperations.groupAlerts, ({ assets_group_id: id }, caller) => {
      const found = settings.groups.find((known) => known.id === Number(id))
      return { alerts: makeAlerts(requireOwn(found, 'assets group', caller), caller) }
    }),
    on(widened(assetOperations.alerts, alertQuery), ({ size = 10, from }, caller) => {
      const alerts = settings.groups
        .filter(({ tenantId }) => tenantId === caller.tenantId)
        .flatMap((group) => makeAlerts(group, caller))
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
function toTenantAlert({
  params: _params,
  feed_url: _url,
  feed_target_type: _type,
  feed_target_id: id,
  tenant_alert_channel_id: channel,
  ...alert
}: ReturnType<typeof makeAlerts>[number]): unknown {
  return {
    ...alert,
    feed_definition: { type: 'group', id },
    alert_channel_id: channel,
    alert_channel: { id: channel, name: alert.name },
    updated_at: alert.created_at,
  }
}

/** Channels and their settings, secrets included (docs/api-notes.md, Alerts). */
const channels: readonly [type: string, params: (secret: string) => Data][] = [
  ['email', () => ({ email: 'soc@example.com', json_attachment: false, csv_attachment: true })],
  ['slack', (secret) => ({ webhook_url: `https://slack.example/services/${secret}` })],
  ['webhook', (secret) => ({ webhook_url: 'https://hooks.example/threats', secret })],
  ['splunk', (secret) => ({ api_token: secret, netloc: 'splunk.example', index: 'threats' })],
]

/** Two for groups with an even id, one for the others. */
function makeAlerts(group: SandboxGroup, { grant }: Caller) {
  return Array.from({ length: group.id % 2 === 0 ? 2 : 1 }, (_, index) => {
    const random = createRandom(hashText(`alert/${group.id}/${index}`))
    const [type, params] = random.pick(channels)
    const startMs = Date.UTC(2026, 0, 1) + random.int(0, 300) * 86_400_000
    const id = group.id * 10 + index
    return {
      id,
      type,
      name: `${group.name} (${type})`,
      frequency: random.pick([0, 3600, 86_400]),
      start_at: formatZonelessTime(startMs),
      params: params(random.hex(32)),
      feed_url: `https://app.example.com/#/groups/${group.id}`,
      feed_target_type: 'assets/groups',
      feed_target_id: group.id,
      created_at: formatZonelessTime(startMs - 3_600_000),
      tenant_id: group.tenantId,
      organization_id: grant?.organizationId,
      search_types: random.pick([[], ['illicit_networks', 'leaks'], ['open_web']]),
      experimental_search_types: [],
      risks: random.pick([[], [3, 4, 5], [5]]),
      tenant_alert_channel_id: 90_000 + id,
    }
  })
}
