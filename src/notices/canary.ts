/** A marked test event that goes the whole way at every full `every`: intake, ledger, queue, sinks. */
import { ownUidPrefixes } from '../events/own-feed.ts'
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import type { Clock } from '../runtime/clock.ts'
import { spanInWords } from '../runtime/span-in-words.ts'
import type { CanaryConfig } from './config.ts'
import { ownEvent } from './notice-event.ts'
import type { Tell } from './teller.ts'

export interface CanaryOptions {
  config: Pick<CanaryConfig, 'everyMs' | 'sinks'>
  tell: Tell
  /** Whether this configuration is the active one. */
  isActive: () => boolean
  clock: Clock
}

export interface Canary {
  /** Sends the test event of the time that it is, unless that was done. */
  canaryOnce(): Promise<void>
}

/** The last full `every`, ms. */
export function slotAt(nowMs: number, everyMs: number): number {
  return Math.floor(nowMs / everyMs) * everyMs
}

export function canaryUid(slotMs: number): string {
  return `${ownUidPrefixes.canary}${slotMs}`
}

export function createCanary({ config, tell, isActive, clock }: CanaryOptions): Canary {
  let lastSlotMs: number | undefined // spares a commit at every look; the ledger knows it for all
  return {
    async canaryOnce() {
      const slotMs = slotAt(clock.now(), config.everyMs)
      if (!isActive() || slotMs === lastSlotMs) return
      const slot = new Date(slotMs).toISOString()
      const event = ownEvent(
        {
          uid: canaryUid(slotMs),
          type: 'canary',
          severity: 'info',
          createdAtMs: slotMs,
        },
        { headline: 'test of the whole way', slot },
      )
      const why = `every ${spanInWords(config.everyMs)}`
      await tell({ ...event, tags: ['TEST'] }, { route: 'canary', why, sinks: config.sinks })
      lastSlotMs = slotMs
    },
  }
}

/** When each sink last accepted a test event, ms; sinks that never did are left out. */
export async function readCanary(redis: Redis, keys: Keys): Promise<Record<string, number>> {
  const fields = await redis.hgetall(keys.shared('canary'))
  return Object.fromEntries(Object.entries(fields).map(([sink, ms]) => [sink, Number(ms)]))
}

export async function noteCanary(
  redis: Redis,
  keys: Keys,
  { sink, atMs }: { sink: string; atMs: number },
): Promise<void> {
  await redis.hset(keys.shared('canary'), sink, Math.floor(atMs))
}
