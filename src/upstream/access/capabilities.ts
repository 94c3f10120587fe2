/**
 * What the service documents, and a server or a key has refused. It is used unless it was refused
 * within a day, by this key, tenant and base URL: a new key may bring a permission.
 */
import type { Logger } from '../../lib/logger.ts'
import type { Redis } from '../../redis/client.ts'
import type { Keys } from '../../redis/keys.ts'

export interface Capabilities {
  isRefused(name: string): Promise<boolean>
  /** Remembers a refusal for a day. Logs it once; `why` completes "…, because". */
  refuse(name: string, why: string): Promise<void>
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
  const keyOf = (name: string): string => keys.shared('capability', keyFingerprint(), name)

  return {
    isRefused: async (name) => (await redis.exists(keyOf(name))) === 1,
    async refuse(name, why) {
      const known = await redis.set(keyOf(name), 'refused', 'PX', refusalMs, 'GET')
      if (known !== null) return
      const message = `"${name}" is not used for a day, because ${why}`
      logger.warn({ account, capability: name }, message)
    },
  }
}
