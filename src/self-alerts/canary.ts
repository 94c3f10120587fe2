/** A marked test event that goes the whole way at every full `every`: intake, ledger, queue, sinks. */
import { ownUidPrefixes } from '../event.ts'
import type { Clock } from '../lib/clock.ts'
import { errorMessage } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import { formatDuration } from '../lib/time-zone.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { readRecord } from '../store/records.ts'
import type { CanaryConfig } from './config.ts'
import type { Publish } from './publisher.ts'
import { ownEvent } from './self-alerts.ts'

interface CanaryOptions {
  config: Pick<CanaryConfig, 'everyMs' | 'sinks'>
  publish: Publish
  /** Whether this configuration is the active one. */
  isActive: () => boolean
  clock: Clock
}

export interface Canary {
  /** Sends the test event of the time that it is, unless that was done. */
  canaryOnce(): Promise<void>
}

/** The last full `every`, ms. */
function slotStartMs(nowMs: number, everyMs: number): number {
  return Math.floor(nowMs / everyMs) * everyMs
}

function canaryUid(slotMs: number): string {
  return `${ownUidPrefixes.canary}${slotMs}`
}

export function createCanary({ config, publish: tell, isActive, clock }: CanaryOptions): Canary {
  let lastSlotMs: number | undefined // spares a commit at every look; the ledger knows it for all
  return {
    async canaryOnce() {
      const slotMs = slotStartMs(clock.now(), config.everyMs)
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
      const why = `every ${formatDuration(config.everyMs)}`
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

/**
 * Pings a dead-man switch once for each canary that all its sinks took: what stops Tocsin or a sink stops
 * the pings, and the switch rings outside. One replica pings, once; what fails is counted, never repeated.
 */

interface CanaryPingOptions {
  everyMs: number
  ledger: AccountLedger
  keys: Keys
  /** Throws what names no address. */
  ping: () => Promise<void>
  onPing: (outcome: 'delivered' | 'failed') => void
  /** Whether this configuration is the active one. */
  isActive: () => boolean
  clock: Clock
  logger: Logger
}

export interface CanaryPing {
  /** Pings for the last two canaries, where that is to be done. */
  pingOnce(): Promise<void>
}

export function createCanaryPing(options: CanaryPingOptions): CanaryPing {
  const { everyMs, ledger, isActive, clock } = options
  let settledSlots: number[] = [] // spares a look into Redis; which knows it for all
  return {
    async pingOnce() {
      if (!isActive()) return
      const slotMs = slotStartMs(clock.now(), everyMs)
      const slots = [slotMs - everyMs, slotMs] // the one before may have arrived late
      for (const slot of slots.filter((one) => !settledSlots.includes(one))) {
        if (!(await hasArrived(ledger, slot))) continue
        if (await claimPing(options, slot)) await pingForSlot(options, slot)
        settledSlots = [slot, ...settledSlots].slice(0, slots.length)
      }
    },
  }
}

/** What went to another sink instead did not arrive. */
async function hasArrived(ledger: AccountLedger, slotMs: number): Promise<boolean> {
  const record = await readRecord(ledger, ledger.fingerprints.recordId(canaryUid(slotMs)))
  const items = record?.items ?? []
  return items.length > 0 && items.every(({ state }) => state === 'delivered')
}

/** Before the ping, so that no other replica and no later start pings for the same canary. */
async function claimPing(
  { everyMs, ledger, keys }: CanaryPingOptions,
  slotMs: number,
): Promise<boolean> {
  const name = keys.shared('canary-ping', String(slotMs))
  return (await ledger.redis.set(name, '1', 'PX', 2 * everyMs, 'NX')) === 'OK'
}

async function pingForSlot(
  { ping, onPing, logger }: CanaryPingOptions,
  slotMs: number,
): Promise<void> {
  const slot = new Date(slotMs).toISOString()
  try {
    await ping()
    onPing('delivered')
    logger.debug({ slot }, 'pinged for the canary')
  } catch (error) {
    onPing('failed')
    logger.warn({ slot, cause: errorMessage(error) }, 'the ping for the canary failed')
  }
}
