/**
 * Which organization an account belongs to, and so where its requests are counted: limits hold per
 * organization, over all accounts and replicas. Until its id is known, an account counts per base URL.
 */
import { createHash } from 'node:crypto'
import type { AccountConfig, Tier } from '../config.ts'

/** One tier of one organization, as the limiter counts it. */
export interface Lane {
  tier: Tier
  /** Stable name of the organization; the one of its base URL while the id is unknown. */
  organization: string
  baseUrl: string
}

export interface Organizations {
  laneOf(account: string, tier: Tier): Lane
  /** Requests per second: the lowest limit that an account of the lane states. */
  limitOf(lane: Lane): number
  /** The configured id, else the one learned. */
  idOf(account: string): number | undefined
  learn(account: string, organizationId: number | undefined): void
}

export function createOrganizations(accounts: readonly AccountConfig[]): Organizations {
  const ids = new Map(accounts.map(({ name, organizationId }) => [name, organizationId]))
  const baseUrls = new Map(accounts.map(({ name, baseUrl }) => [name, nameOfBaseUrl(baseUrl)]))

  function organizationOf(account: string): string {
    const id = ids.get(account)
    const baseUrl = baseUrls.get(account) ?? ''
    return id === undefined ? baseUrl : `${baseUrl}-${id}`
  }

  return {
    laneOf: (account, tier) => ({
      tier,
      organization: organizationOf(account),
      baseUrl: baseUrls.get(account) ?? '',
    }),
    limitOf({ tier, organization }) {
      const members = accounts.filter(({ name }) => organizationOf(name) === organization)
      return Math.min(...members.map(({ limits }) => limits[tier]))
    },
    idOf: (account) => ids.get(account),
    learn(account, organizationId) {
      const configured = accounts.find(({ name }) => name === account)?.organizationId
      ids.set(account, configured ?? organizationId)
    },
  }
}

/** Equal for two spellings of one URL; no URL in a key name. */
function nameOfBaseUrl(baseUrl: string): string {
  const normal = new URL(baseUrl).href.replace(/\/+$/, '')
  return createHash('sha256').update(normal).digest('hex').slice(0, 16)
}
