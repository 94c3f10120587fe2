/**
 * Learns which organization an account's key belongs to, before its first paced request: from Redis
 * where an earlier run kept it, else by a token test. Not knowing it is no reason to stop.
 */
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import type { Clock } from '../runtime/clock.ts'
import type { AccountConfig } from './config.ts'
import { createCredentials, type Credentials } from './tokens/credentials.ts'
import type { Organizations } from './pacing/organizations.ts'
import { orGiveUp, ServiceError } from './service-error.ts'

export interface OrganizationLookup {
  /** Learns what an earlier run kept; asks the service nothing. Throws ServiceError where the key cannot be read. */
  recall(): Promise<void>
  ensure(signal: AbortSignal | undefined): Promise<void>
  remember(organizationId: number): Promise<void>
}

export interface OrganizationLookupOptions {
  account: string
  redis: Redis
  keys: Keys
  clock: Clock
  credentials: () => Credentials
  organizations: Organizations
  /** Asks the service; undefined where it does not tell. */
  ask(signal: AbortSignal): Promise<number | undefined>
}

const rememberedSeconds = 90 * 24 * 3600
const retryMs = 60_000

function keyOf(keys: Keys, fingerprint: string): string {
  return keys.shared('organization', fingerprint)
}

/** The organization of an account as a replica found it out; undefined: none did. Throws ServiceError. */
export async function readOrganization(
  redis: Redis,
  keys: Keys,
  account: AccountConfig,
): Promise<number | undefined> {
  const kept = await redis.get(keyOf(keys, createCredentials(account)().fingerprint))
  return kept === null ? undefined : Number(kept)
}

export function createOrganizationLookup(options: OrganizationLookupOptions): OrganizationLookup {
  const { account, redis, keys, clock, credentials, organizations } = options
  let learnedFor: string | undefined
  let nextTryMs = 0

  function learn(fingerprint: string, organizationId: number): void {
    organizations.learn(account, organizationId)
    learnedFor = fingerprint
  }

  /** Whether an earlier run kept it. */
  async function recallKept(): Promise<boolean> {
    const { fingerprint } = credentials()
    // Another key may mean another organization.
    if (learnedFor !== fingerprint) organizations.learn(account, undefined)
    const kept = await redis.get(keyOf(keys, fingerprint))
    if (kept !== null) learn(fingerprint, Number(kept))
    return kept !== null
  }

  async function lookUp(signal: AbortSignal): Promise<void> {
    if ((await recallKept()) || clock.monotonic() < nextTryMs) return undefined
    nextTryMs = clock.monotonic() + retryMs
    const organizationId = await askLeniently(signal)
    return organizationId === undefined ? undefined : remember(organizationId)
  }

  /** A refused key ends the request that asked; anything else leaves it to count per base URL. */
  async function askLeniently(signal: AbortSignal): Promise<number | undefined> {
    try {
      return await options.ask(signal)
    } catch (error) {
      const isRefused = error instanceof ServiceError && error.reason === 'auth'
      if (isRefused || signal.aborted) nextTryMs = 0
      if (isRefused || signal.aborted || !(error instanceof ServiceError)) throw error
      return undefined
    }
  }

  async function remember(organizationId: number): Promise<void> {
    const { fingerprint } = credentials()
    learn(fingerprint, organizationId)
    await redis.set(keyOf(keys, fingerprint), organizationId, 'EX', rememberedSeconds)
  }

  const lookUpOnce = shareWork(lookUp)
  return {
    remember,
    async recall() {
      if (organizations.idOf(account) === undefined) await recallKept()
    },
    async ensure(signal) {
      const isKnown = organizations.idOf(account) !== undefined
      if (isKnown && learnedFor === undefined) return // the configuration says it
      if (isKnown && learnedFor === credentials().fingerprint) return
      await lookUpOnce(signal)
    },
  }
}

/** One piece of work for all who wait for it. Whoever gives up leaves it to the others; the last one ends it. */
function shareWork(
  work: (signal: AbortSignal) => Promise<void>,
): (signal: AbortSignal | undefined) => Promise<void> {
  let underWay: { end: Promise<void>; waiting: number; stopping: AbortController } | undefined

  function begin(): NonNullable<typeof underWay> {
    const stopping = new AbortController()
    return { end: work(stopping.signal), waiting: 0, stopping }
  }

  return async (signal) => {
    underWay ??= begin()
    const shared = underWay
    shared.waiting += 1
    try {
      await orGiveUp(shared.end, signal)
    } finally {
      shared.waiting -= 1
      if (shared.waiting === 0) {
        shared.stopping.abort()
        if (underWay === shared) underWay = undefined
      }
    }
  }
}
