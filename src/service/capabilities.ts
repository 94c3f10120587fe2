/**
 * What a server of today may have, and an older one or a key without the permission has not: found out
 * by asking once, by reads alone, and remembered for 30 days for this key, tenant and base URL. Another
 * key is another memory, so a permission that comes with one is found at once.
 */
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { ServiceError } from './service-error.ts'

export interface Capability {
  has: boolean
  /** When that was found out; wall clock ms. */
  atMs: number
}

export interface Capabilities {
  /** undefined: not found out yet, or too long ago. */
  read(name: string): Promise<Capability | undefined>
  /** `briefly`: what is not certain is remembered for an hour. */
  note(name: string, has: boolean, options?: { briefly?: boolean }): Promise<void>
  /** Takes back what was noted as there, and says so in the log: `why` completes "…, because". */
  demote(name: string, why: string, options?: { briefly?: boolean }): Promise<void>
  /**
   * Whether it is there: from memory, else by `ask`, a read. A refusal by 403, 404 or 405 means no, and
   * is remembered. An answer that makes no sense is not believed: no for an hour, with a warning. Any
   * other failure says nothing about it and is thrown.
   */
  find(name: string, ask: () => Promise<unknown>): Promise<boolean>
}

export interface CapabilitiesOptions {
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  /** Whose memory it is; no secret. */
  scope: () => string
  /** For log lines. */
  account: string
}

const rememberedMs = 30 * 24 * 3_600_000
const doubtedMs = 3_600_000

export function createCapabilities(options: CapabilitiesOptions): Capabilities {
  const { redis, keys, clock, logger, scope, account } = options

  function keyOf(name: string): string {
    return keys.shared('capability', scope(), name)
  }

  async function write(name: string, has: boolean, forMs: number): Promise<void> {
    await redis.set(keyOf(name), `${has ? 1 : 0} ${clock.now()}`, 'PX', forMs)
  }

  async function read(name: string): Promise<Capability | undefined> {
    const [, has, atMs] = /^([01]) (\d+)$/.exec((await redis.get(keyOf(name))) ?? '') ?? []
    return has === undefined ? undefined : { has: has === '1', atMs: Number(atMs) }
  }

  return {
    read,
    note: (name, has, { briefly = false } = {}) =>
      write(name, has, briefly ? doubtedMs : rememberedMs),
    async demote(name, why, { briefly = false } = {}) {
      await write(name, false, briefly ? doubtedMs : rememberedMs)
      logger.warn({ account, capability: name }, `"${name}" is no longer used, because ${why}`)
    },
    async find(name, ask) {
      const known = await read(name)
      if (known !== undefined) return known.has
      try {
        await ask()
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        if (isNonsense(error)) {
          await write(name, false, doubtedMs)
          const message = `whether the service has "${name}" is unclear: ${error.message}; it is taken as not there for an hour`
          logger.warn({ account, capability: name }, message)
          return false
        }
        if (!isNotThere(error)) throw error
        await write(name, false, rememberedMs)
        return false
      }
      await write(name, true, rememberedMs)
      return true
    },
  }
}

/** The operation is unknown to the server, or closed to the key. */
export function isNotThere({ status }: ServiceError): boolean {
  return status === 403 || status === 404 || status === 405
}

/** Not JSON, or JSON of another shape; a redirect, an oversized answer, and the page of a gateway that forbids. */
function isNonsense({ reason, status, fault }: ServiceError): boolean {
  return reason === 'contract' || (status === 403 && fault === 'html')
}

/** A 404 about the path itself, not about something that the path names. */
export function isUnknownPath(error: unknown): boolean {
  if (!(error instanceof ServiceError) || error.status !== 404) return false
  if (error.fault === 'html') return true
  return error.serviceCode === undefined && /: not found\.?$/i.test(error.message)
}
