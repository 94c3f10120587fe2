/** An asset is created, replaced as a whole, enabled or disabled (service.md, Asset endpoints). */
import { z } from 'zod'
import { assetCreation, assetReplacement, wireAsset } from '../../service/wire/assets.ts'
import { parseAssetData, type AssetContent } from './asset-data.ts'
import type { AssetWriting } from './asset-store.ts'
import type { Asked, MonitoringParts, MonitoringRoute } from './monitoring-requests.ts'
import { integerOf, ownOf, parsedBy, refusal } from './refusal.ts'
import { assetItemOf, uuidOf, type SandboxAsset } from './sandbox-asset.ts'

export function assetRoutes(parts: MonitoringParts): MonitoringRoute[] {
  const { monitoring, settings, history } = parts
  const { assets } = monitoring
  const base = '/firework/v2/assets/'

  function shown(asset: SandboxAsset): unknown {
    const isHere = (event: { identifiers: { id: number }[] }): boolean =>
      event.identifiers.some(({ id }) => id === asset.id)
    const count = history.all().filter(isHere).length
    return { asset: assetItemOf(asset, count, settings.now()) }
  }

  function own({ params, tenantId }: Asked): SandboxAsset {
    const id = integerOf(params['id'] ?? '', 'asset_id')
    return ownOf(assets.get(id), { version: 'v2', what: 'asset', tenantId })
  }

  function create(asked: Asked): unknown {
    const { tenantId } = asked
    const given = parsedBy(creation, asked.body, { version: 'v2', part: 'body' })
    const groupId = groupFor(given.assets_group_id, tenantId, parts)
    const content = contentOf(given, { id: assets.nextId(), attributes: [] })
    const writing = { ...writingOf(given, content), isDisabled: false, others: {} }
    return shown(assets.create({ tenantId, groupId }, writing))
  }

  function replace(asked: Asked): unknown {
    const { id, attributes } = own(asked)
    const given = parsedBy(replacement, asked.body, { version: 'v2', part: 'body' })
    const content = contentOf(given, { id, attributes })
    const isDisabled = given.is_disabled ?? false
    const others = Object.fromEntries(Object.entries(given).filter(([key]) => !known.has(key)))
    return shown(assets.change(id, { ...writingOf(given, content), isDisabled, others }))
  }

  function toggle(asked: Asked): unknown {
    const { id } = own(asked)
    const given = parsedBy(toggling, asked.body, { version: 'v2', part: 'body' })
    return shown(assets.change(id, { isDisabled: given.is_disabled }))
  }

  return [
    { method: 'POST', path: base, answer: create },
    { method: 'PUT', path: `${base}:id`, answer: replace },
    { method: 'POST', path: `${base}:id/toggle`, answer: toggle },
  ]
}

/** What the service does not know it ignores. */
const creation = assetCreation.strip()
const replacement = assetReplacement.extend({ is_disabled: z.boolean().nullish() })
const toggling = z.object({ is_disabled: z.boolean() })

/** Those that are written, and those that the service alone sets; what is beside them is kept. */
const known = new Set(Object.keys(wireAsset.shape))

interface Given extends Pick<AssetWriting, 'name' | 'type' | 'data'> {
  search_types: string[]
  experimental_search_types?: string[] | null | undefined
  risks?: number[] | null | undefined
}

/** What is left out is gone. */
function writingOf(
  given: Given,
  content: AssetContent,
): Omit<AssetWriting, 'isDisabled' | 'others'> {
  return {
    name: given.name,
    type: given.type,
    searchTypes: given.search_types,
    experimentalSearchTypes: given.experimental_search_types ?? [],
    risks: given.risks ?? [],
    ...content,
  }
}

function contentOf(
  { type, data }: Pick<Given, 'type' | 'data'>,
  { id, attributes }: Pick<SandboxAsset, 'id' | 'attributes'>,
): AssetContent {
  const content = parseAssetData(type, data, { uuid: uuidOf(`identity/${id}`), attributes })
  if (!('problem' in content)) return content
  const message = content.problem
  throw refusal('v4', { status: 400, code: 'INVALID_IDENTIFIER_DATA', message })
}

/** The group asked for, which is the tenant's; otherwise its first; null: it has none. */
function groupFor(
  asked: number | undefined,
  tenantId: number,
  { settings }: MonitoringParts,
): number | null {
  const { groups } = settings
  if (asked === undefined) return groups.find((group) => group.tenantId === tenantId)?.id ?? null
  const found = groups.find(({ id }) => id === asked)
  return ownOf(found, { version: 'v2', what: 'assets group', tenantId }).id
}
