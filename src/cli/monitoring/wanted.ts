/** What the monitoring file asks for, in the service's own terms. */
import { canonicalJson } from '../../feeds/canonical-json.ts'
import { maskSecrets } from '../../feeds/masking.ts'
import type { AssetCreation } from '../../service/wire/assets.ts'
import type { PolicyCreation } from '../../service/wire/policies.ts'
import type { MonitoringContent, WrittenPolicy } from './monitoring-file.ts'

export interface Wanted {
  assets: WantedAsset[]
  policies: WantedPolicy[]
  cleanPastEvents: boolean
}

export interface WantedAsset {
  /** What it stands under in the file. */
  key: string
  body: AssetCreation
  /** As the state remembers `body`: lists in order, a secret in `data` as its digest. */
  written: Record<string, unknown>
  /** undefined: the file does not say. */
  enabled: boolean | undefined
  /** Keys of policies. */
  policies: string[]
}

export interface WantedPolicy {
  key: string
  body: PolicyCreation
}

/** `digest`: what stands for a secret; nobody without its key can test a guess. */
export function wantedOf(
  content: MonitoringContent,
  digest: (parts: readonly string[]) => string,
): Wanted {
  return {
    assets: Object.entries(content.assets ?? {}).map(([key, asset]) => {
      const body = bodyOf(key, asset)
      const { enabled, policies } = asset
      const written = { ...body, search_types: body.search_types.toSorted() }
      const data = holdsSecret(body.data) ? digest([canonicalJson(body.data)]) : body.data
      return { key, body, written: { ...written, data }, enabled, policies: [...new Set(policies)] }
    }),
    policies: Object.entries(content.policies ?? {}).map(([key, policy]) => ({
      key,
      body: policyBody(policy.name ?? key, policy),
    })),
    cleanPastEvents: content.clean_past_events,
  }
}

type WrittenAsset = NonNullable<MonitoringContent['assets']>[string]

/** What the file leaves out is left to the service. */
function bodyOf(key: string, asset: WrittenAsset): AssetCreation {
  const { type, data, search_types, risks, experimental_search_types, group } = asset
  return {
    name: asset.name ?? key,
    type,
    data,
    search_types,
    ...(risks === undefined ? {} : { risks }),
    ...(experimental_search_types === undefined ? {} : { experimental_search_types }),
    ...(group === undefined ? {} : { assets_group_id: group }),
  }
}

function holdsSecret(data: Record<string, unknown>): boolean {
  return canonicalJson(maskSecrets(data)) !== canonicalJson(data)
}

function policyBody(name: string, policy: WrittenPolicy): PolicyCreation {
  const { included_keywords: included, excluded_keywords: excluded, query, cookies } = policy
  if (included) return { name, type: 'INCLUDED_KEYWORDS', value: { keywords: included } }
  if (excluded) return { name, type: 'EXCLUDED_KEYWORDS', value: { keywords: excluded } }
  if (query !== undefined) return { name, type: 'LUCENE_QUERY', value: { query } }
  const value = { cookie_names: cookies ?? [], match_subdomains: policy.match_subdomains ?? false }
  return { name, type: 'ASTP_COOKIES', value }
}
