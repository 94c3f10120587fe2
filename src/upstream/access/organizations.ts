/**
 * Which organization an account belongs to. Limits hold per organization, over all accounts and
 * replicas. Until its organization's id is known, an account counts under its base URL.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import type { Redis } from '../../redis/client.ts'
import type { Keys } from '../../redis/keys.ts'
import type { AccountConfig, Tier } from '../config.ts'
import { UpstreamError, waitOrAbort } from '../error.ts'
import { type AccountKey, createAccountKey } from './tokens.ts'

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

/**
 * Learns which organization an account's key belongs to, before the account's first paced request.
 * It comes from Redis if an earlier run stored it, or else by a token test. Requests go out even if
 * it stays unknown.
 */
export interface OrganizationLookup {
  /**
   * Reads what an earlier run stored, without a request, and returns whether one did. Throws
   * UpstreamError if the key cannot be read.
   */
  recall(): Promise<boolean>
  ensure(signal: AbortSignal | undefined): Promise<void>
  remember(organizationId: number): Promise<void>
}

interface OrganizationLookupOptions {
  account: string
  redis: Redis
  keys: Keys
  clock: Clock
  accountKey: () => AccountKey
  organizations: Organizations
  /** Asks the API; undefined if it does not tell. */
  ask: () => Promise<number | undefined>
}

const organizationTtlSeconds = 90 * 24 * 3600
const retryMs = 60_000

function organizationKey(keys: Keys, fingerprint: string): string {
  return keys.shared('organization', fingerprint)
}

/**
 * Returns the organization id that a replica stored for an account; undefined if none did. Throws
 * UpstreamError if the key cannot be read.
 */
export async function readOrganization(
  redis: Redis,
  keys: Keys,
  account: AccountConfig,
): Promise<number | undefined> {
  const stored = await redis.get(organizationKey(keys, createAccountKey(account)().fingerprint))
  return stored === null ? undefined : Number(stored)
}

export function createOrganizationLookup(options: OrganizationLookupOptions): OrganizationLookup {
  const { account, redis, keys, clock, accountKey, organizations, ask } = options
  let learnedFor: string | undefined
  let nextTryMs = 0
  let underWay: Promise<void> | undefined

  function learn(fingerprint: string, organizationId: number): void {
    organizations.learn(account, organizationId)
    learnedFor = fingerprint
  }

  async function recall(): Promise<boolean> {
    const { fingerprint } = accountKey()
    // A new key may belong to another organization.
    if (learnedFor !== fingerprint) organizations.learn(account, undefined)
    const stored = await redis.get(organizationKey(keys, fingerprint))
    if (stored !== null) learn(fingerprint, Number(stored))
    return stored !== null
  }

  async function remember(organizationId: number): Promise<void> {
    const { fingerprint } = accountKey()
    learn(fingerprint, organizationId)
    const key = organizationKey(keys, fingerprint)
    await redis.set(key, organizationId, 'EX', organizationTtlSeconds)
  }

  /** A refused key fails the request; any other UpstreamError leaves the id unknown. */
  async function lookUp(): Promise<void> {
    if ((await recall()) || clock.monotonic() < nextTryMs) return
    try {
      const organizationId = await ask()
      nextTryMs = clock.monotonic() + retryMs
      if (organizationId !== undefined) await remember(organizationId)
    } catch (error) {
      if (!(error instanceof UpstreamError) || error.reason === 'auth') throw error
      nextTryMs = clock.monotonic() + retryMs
    }
  }

  return {
    recall,
    remember,
    async ensure(signal) {
      const isKnown = organizations.idFor(account) !== undefined
      if (isKnown && learnedFor === undefined) return // the configuration sets it
      if (isKnown && learnedFor === accountKey().fingerprint) return
      underWay ??= lookUp().finally(() => (underWay = undefined))
      await waitOrAbort(underWay, signal)
    },
  }
}
