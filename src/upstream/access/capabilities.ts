/**
 * What the service documents, and a server or a key has refused: operations, spellings and filters.
 * It is used unless it was refused within a day, by this key, tenant and base URL. A new key starts
 * with an empty memory, so a permission that it brings is found at once.
 */
import { formatDuration } from '../../lib/time-zone.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/logger.ts'
import type { Redis } from '../../redis/client.ts'
import type { Keys } from '../../redis/keys.ts'
import type { AccountConfig } from '../config.ts'
import { waitOrAbort, UpstreamError } from '../error.ts'
import type { Organizations } from './organizations.ts'
import { createAccountKey, type AccountKey } from './tokens.ts'

export interface Capabilities {
  isRefused(name: string): Promise<boolean>
  /** Remembers a refusal, and logs it once where `why` is given: it completes "…, because". */
  refuse(name: string, about?: { why?: string; forMs?: number }): Promise<void>
  /** Ends a refusal: the server has answered. */
  allow(name: string): Promise<void>
}

interface CapabilitiesOptions {
  redis: Redis
  keys: Keys
  logger: Logger
  /** Identifies the key that the memory belongs to; not a secret. */
  keyFingerprint: () => string
  /** For log lines. */
  account: string
}

const refusalMs = 86_400_000

export function createCapabilities(options: CapabilitiesOptions): Capabilities {
  const { redis, keys, logger, keyFingerprint, account } = options

  function capabilityKey(name: string): string {
    return keys.shared('capability', keyFingerprint(), name)
  }

  return {
    isRefused: async (name) => (await redis.get(capabilityKey(name))) === 'refused',
    async refuse(name, { why, forMs = refusalMs } = {}) {
      const known = await redis.set(capabilityKey(name), 'refused', 'PX', forMs, 'GET')
      if (known === 'refused' || why === undefined) return
      const message = `"${name}" is not used for ${formatDuration(forMs)}, because ${why}`
      logger.warn({ account, capability: name }, message)
    },
    async allow(name) {
      await redis.del(capabilityKey(name))
    },
  }
}

/**
 * Whether the server does not know the operation, or denies it to the key. Not so where no token
 * was given at all: that pauses the account for `retryAfterMs`, whatever was to be asked.
 */
export function isOperationMissing({ status, reason, retryAfterMs }: UpstreamError): boolean {
  if (reason === 'auth' && retryAfterMs !== undefined) return false
  return status === 403 || status === 404 || status === 405
}

/** Whether the server does not know the operation, whatever the request names. */
export function isUnknownOperation(error: UpstreamError): boolean {
  return error.status === 405 || isUnknownPath(error)
}

/** Whether the error is a 404 for the path itself, not for something that the path names. */
export function isUnknownPath(error: unknown): boolean {
  if (!(error instanceof UpstreamError) || error.status !== 404) return false
  if (error.fault === 'html') return true
  return error.serviceCode === undefined && /: not found\.?$/i.test(error.message)
}

/**
 * Learns which organization an account's key belongs to, before the account's first paced request:
 * from Redis if an earlier run stored it, or else by a token test. Requests go out even if it stays
 * unknown.
 */
export interface OrganizationLookup {
  /**
   * Reads what an earlier run stored, without a request. Throws UpstreamError if the key cannot be
   * read.
   */
  recall(): Promise<void>
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
  ask(signal: AbortSignal): Promise<number | undefined>
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
  const { account, redis, keys, clock, accountKey, organizations } = options
  let learnedFor: string | undefined
  let nextTryMs = 0

  function learn(fingerprint: string, organizationId: number): void {
    organizations.learn(account, organizationId)
    learnedFor = fingerprint
  }

  /** Learns the id from Redis; returns whether an earlier run stored it. */
  async function recallStored(): Promise<boolean> {
    const { fingerprint } = accountKey()
    // A new key may belong to another organization.
    if (learnedFor !== fingerprint) organizations.learn(account, undefined)
    const stored = await redis.get(organizationKey(keys, fingerprint))
    if (stored !== null) learn(fingerprint, Number(stored))
    return stored !== null
  }

  async function lookUp(signal: AbortSignal): Promise<void> {
    if ((await recallStored()) || clock.monotonic() < nextTryMs) return undefined
    nextTryMs = clock.monotonic() + retryMs
    const organizationId = await askUnlessFailing(signal)
    return organizationId === undefined ? undefined : remember(organizationId)
  }

  /** A refused key fails the request; any other UpstreamError leaves the id unknown. */
  async function askUnlessFailing(signal: AbortSignal): Promise<number | undefined> {
    try {
      return await options.ask(signal)
    } catch (error) {
      const isRefused = error instanceof UpstreamError && error.reason === 'auth'
      if (isRefused || signal.aborted) nextTryMs = 0
      if (isRefused || signal.aborted || !(error instanceof UpstreamError)) throw error
      return undefined
    }
  }

  async function remember(organizationId: number): Promise<void> {
    const { fingerprint } = accountKey()
    learn(fingerprint, organizationId)
    const key = organizationKey(keys, fingerprint)
    await redis.set(key, organizationId, 'EX', organizationTtlSeconds)
  }

  const lookUpOnce = singleFlight(lookUp)
  return {
    remember,
    async recall() {
      if (organizations.idFor(account) === undefined) await recallStored()
    },
    async ensure(signal) {
      const isKnown = organizations.idFor(account) !== undefined
      if (isKnown && learnedFor === undefined) return // the configuration sets it
      if (isKnown && learnedFor === accountKey().fingerprint) return
      await lookUpOnce(signal)
    },
  }
}

/**
 * Shares one run of `run` among all callers. A caller that gives up leaves the run to the others;
 * when the last one gives up, the run is aborted.
 */
function singleFlight(
  run: (signal: AbortSignal) => Promise<void>,
): (signal: AbortSignal | undefined) => Promise<void> {
  let underWay: { end: Promise<void>; waiting: number; stopping: AbortController } | undefined

  function begin(): NonNullable<typeof underWay> {
    const stopping = new AbortController()
    return { end: run(stopping.signal), waiting: 0, stopping }
  }

  return async (signal) => {
    underWay ??= begin()
    const shared = underWay
    shared.waiting += 1
    try {
      await waitOrAbort(shared.end, signal)
    } finally {
      shared.waiting -= 1
      if (shared.waiting === 0) {
        shared.stopping.abort()
        if (underWay === shared) underWay = undefined
      }
    }
  }
}
