/** An asset as the commands show it; what it watches for may be a secret. */
import { fullMask } from '../../../events/mask-secret.ts'
import { maskSecrets } from '../../../feeds/masking.ts'
import type { WireAsset } from '../../../service/wire/assets.ts'
import { jsonText } from '../../json-text.ts'
import { harmless } from '../../words.ts'
import type { Listing } from '../listing.ts'

/** Every field as the service gives it; secrets in `data` masked unless `reveal`. */
export function assetListing(reveal: boolean): Listing<WireAsset> {
  const dataOf = (asset: WireAsset): unknown => (reveal ? asset.data : maskSecrets(asset.data))
  return {
    columns: [
      { title: 'ID', width: 14, text: ({ id }) => String(id) },
      { title: 'TYPE', width: 17, text: ({ type }) => type },
      {
        title: 'STATE',
        width: 8,
        text: ({ is_disabled: isDisabled }) => (isDisabled === true ? 'disabled' : 'enabled'),
        style: ({ is_disabled: isDisabled }) => (isDisabled === true ? 'yellow' : 'green'),
      },
      { title: 'NAME', width: 40, text: ({ name }) => name },
    ],
    below: (asset) => [
      `data: ${reveal ? jsonText(asset.data ?? {}) : harmless(jsonText(dataOf(asset) ?? {}), 1_000)}`,
      `search types: ${harmless(listInWords(asset.search_types), 1_000)}`,
      ...(asset.experimental_search_types?.length
        ? [`experimental: ${harmless(listInWords(asset.experimental_search_types), 1_000)}`]
        : []),
      `risks: ${listInWords(asset.risks)}`,
    ],
    json: (asset) => ({ ...asset, ...('data' in asset && { data: dataOf(asset) }) }),
    csv: assetKeys,
  }
}

/** As the description lists them. */
const assetKeys = [
  'id',
  'name',
  'type',
  'search_types',
  'data',
  'experimental_search_types',
  'risks',
  'tenant_id',
  'feed_id',
  'v3_refs',
  'fetching_progress',
  'count',
  'urn',
  'is_disabled',
  'source',
  'data_updated_at',
]

/** An empty list as such: what the service makes of it is not published. */
export function listInWords(list: readonly (string | number)[] | null | undefined): string {
  return list === undefined || list === null || list.length === 0 ? 'none given' : list.join(', ')
}

/** Whether an asset was printed with a mask, which must never be written back as if it were the secret. */
export function holdsMask(value: unknown): boolean {
  return JSON.stringify(value).includes(fullMask)
}
