/**
 * Which organization an account belongs to. Limits hold per organization, over all accounts and
 * replicas. Until its organization's id is known, an account counts under its base URL.
 */
import { createHash } from 'node:crypto'
import type { AccountConfig, Tier } from '../config.ts'

/** One tier of one organization, the unit that the rate limiter counts. */
export interface Lane {
  tier: Tier
  /** Stable name of the organization; the hash of its base URL while the id is unknown. */
  organization: string
  baseUrl: string
}

export interface Organizations {
  laneFor(account: string, tier: Tier): Lane
  /** Requests per second: the lowest limit configured by an account of the lane. */
  limitFor(lane: Lane): number
  /** The share of the limit that feeds use: the lowest configured by an account of the lane. */
  shareFor(lane: Lane): number
  /** The configured id, or else the learned one. */
  idFor(account: string): number | undefined
  learn(account: string, organizationId: number | undefined): void
  /** Increases whenever the organization of an account changes. */
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

/** The lowest limits among the accounts of each organization. */
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

/** Equal for two spellings of one URL. Hashed, so that no key name in Redis holds a URL. */
function hashBaseUrl(baseUrl: string): string {
  const normal = new URL(baseUrl).href.replace(/\/+$/, '')
  return createHash('sha256').update(normal).digest('hex').slice(0, 16)
}
