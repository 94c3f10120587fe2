/**
 * Which organization an account belongs to, and so where its requests are counted: limits hold per
 * organization, over all accounts and replicas. Until its id is known, an account counts per base URL.
 */
import { createHash } from 'node:crypto'
import type { AccountConfig, Tier } from './config.ts'

/** One tier of one organization, as the limiter counts it. */
export interface Lane {
  tier: Tier
  /** Stable name of the organization; the one of its base URL while the id is unknown. */
  organization: string
  baseUrl: string
}

export interface Organizations {
  laneFor(account: string, tier: Tier): Lane
  /** Requests per second: the lowest limit that an account of the lane states. */
  limitFor(lane: Lane): number
  /** The part of it that feeds use: the lowest that an account of the lane states. */
  shareFor(lane: Lane): number
  /** The configured id, else the one learned. */
  idFor(account: string): number | undefined
  learn(account: string, organizationId: number | undefined): void
  /** Grows whenever another organization is known of an account. */
  version(): number
}

export function createOrganizations(accounts: readonly AccountConfig[]): Organizations {
  const configured = new Map(accounts.map(({ name, organizationId }) => [name, organizationId]))
  const ids = new Map(configured)
  let limits: Map<string, Limits> | undefined
  let version = 0
  const baseUrls = new Map(accounts.map(({ name, baseUrl }) => [name, hashBaseUrl(baseUrl)]))

  function organizationKey(account: string): string {
    const id = ids.get(account)
    const baseUrl = baseUrls.get(account) ?? ''
    return id === undefined ? baseUrl : `${baseUrl}-${id}`
  }

  function limitsFor(organization: string): Limits {
    limits ??= lowestLimits(accounts, organizationKey)
    return limits.get(organization) ?? unlimited
  }

  return {
    laneFor: (account, tier) => ({
      tier,
      organization: organizationKey(account),
      baseUrl: baseUrls.get(account) ?? '',
    }),
    limitFor: ({ tier, organization }) => limitsFor(organization)[tier],
    shareFor: ({ organization }) => limitsFor(organization).share,
    idFor: (account) => ids.get(account),
    learn(account, organizationId) {
      const known = configured.get(account) ?? organizationId
      if (known === ids.get(account)) return
      ids.set(account, known)
      limits = undefined
      version += 1
    },
    version: () => version,
  }
}

type Limits = Record<Tier | 'share', number>

const unlimited: Limits = { search: Infinity, basic: Infinity, share: 1 }

/** Of all accounts of each organization. */
function lowestLimits(
  accounts: readonly AccountConfig[],
  organizationOf: (account: string) => string,
): Map<string, Limits> {
  const lowest = new Map<string, Limits>()
  for (const { name, limits, feedShare } of accounts) {
    const organization = organizationOf(name)
    const { search, basic, share } = lowest.get(organization) ?? unlimited
    lowest.set(organization, {
      search: Math.min(search, limits.search),
      basic: Math.min(basic, limits.basic),
      share: Math.min(share, feedShare),
    })
  }
  return lowest
}

/** Equal for two spellings of one URL; no URL in a key name. */
function hashBaseUrl(baseUrl: string): string {
  const normal = new URL(baseUrl).href.replace(/\/+$/, '')
  return createHash('sha256').update(normal).digest('hex').slice(0, 16)
}
