/**
 * Optional operations, which older servers or keys without the permission do not have. Each is
 * found out by reads alone and remembered per key, tenant and base URL: what is there for 30 days, a
 * refusal for as long as `refusalMemorySpan` says. A new key starts with an empty memory, so a permission
 * that it brings is found at once.
 */
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import type { AccountConfig } from './config.ts'
import { waitOrAbort, UpstreamError } from './error.ts'
import type { Organizations } from './organizations.ts'
import { createAccountKey, type AccountKey } from './tokens.ts'

interface Capability {
  has: boolean
  /** When it was found out; wall clock ms. */
  atMs: number
}

/** How long something is remembered. */
type MemorySpan = 'hour' | 'day' | 'month'

export interface Capabilities {
  /** Returns undefined if it is not known yet, or was found out too long ago. */
  read(name: string): Promise<Capability | undefined>
  /** Remembers it, for a month unless said otherwise. */
  note(name: string, has: boolean, span?: MemorySpan): Promise<void>
  /** Marks as missing what was noted as available, and logs it. `why` completes "…, because". */
  demote(name: string, why: string, span?: MemorySpan): Promise<void>
  /**
   * Returns whether it is available: from memory, or else by `ask`, which must only read. A 403,
   * 404 or 405 means no and is remembered. An unintelligible answer counts as no for an hour and
   * logs a warning. Any other UpstreamError decides nothing and is thrown.
   */
  find(name: string, ask: () => Promise<unknown>): Promise<boolean>
}

interface CapabilitiesOptions {
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  /** Identifies the key that the memory belongs to; not a secret. */
  keyFingerprint: () => string
  /** For log lines. */
  account: string
}

const hourMs = 3_600_000
export const memoryMs: Readonly<Record<MemorySpan, number>> = {
  hour: hourMs,
  day: 24 * hourMs,
  month: 30 * 24 * hourMs,
}

/** A permission may be granted at any time; a server learns an operation only by an upgrade. */
export function refusalMemorySpan({ status }: UpstreamError): MemorySpan {
  return status === 403 ? 'hour' : 'day'
}

export function createCapabilities(options: CapabilitiesOptions): Capabilities {
  const { redis, keys, clock, logger, keyFingerprint, account } = options

  function capabilityKey(name: string): string {
    return keys.shared('capability', keyFingerprint(), name)
  }

  async function write(name: string, has: boolean, span: MemorySpan): Promise<void> {
    await redis.set(capabilityKey(name), `${has ? 1 : 0} ${clock.now()}`, 'PX', memoryMs[span])
  }

  async function read(name: string): Promise<Capability | undefined> {
    const [, has, atMs] = /^([01]) (\d+)$/.exec((await redis.get(capabilityKey(name))) ?? '') ?? []
    return has === undefined ? undefined : { has: has === '1', atMs: Number(atMs) }
  }

  return {
    read,
    note: (name, has, span = 'month') => write(name, has, span),
    async demote(name, why, span = 'month') {
      await write(name, false, span)
      logger.warn({ account, capability: name }, `"${name}" is no longer used, because ${why}`)
    },
    async find(name, ask) {
      const known = await read(name)
      if (known !== undefined) return known.has
      try {
        await ask()
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error
        if (isUnintelligible(error)) {
          await write(name, false, 'hour')
          const message = `whether the service has "${name}" is unclear: ${error.message}; it is taken as not there for an hour`
          logger.warn({ account, capability: name }, message)
          return false
        }
        if (!isOperationMissing(error)) throw error
        await write(name, false, refusalMemorySpan(error))
        return false
      }
      await write(name, true, 'month')
      return true
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

/** Not JSON or of another shape, a redirect, an oversized answer, or a gateway's 403 page. */
function isUnintelligible({ reason, status, fault }: UpstreamError): boolean {
  return reason === 'contract' || (status === 403 && fault === 'html')
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
