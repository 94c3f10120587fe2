/**
 * The canary: a marked test event that takes the whole way (intake, ledger, sinks) once per full
 * `every`, and the ping of a dead-man switch once it has arrived.
 */
import { isCanary, ownUidPrefixes } from '../../event.ts'
import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { formatDuration } from '../../lib/time-zone.ts'
import type { Redis } from '../../redis/client.ts'
import type { Keys } from '../../redis/keys.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { readRecord } from '../../store/records.ts'
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
  /** Publishes the test event of the current slot, unless that was done. */
  canaryOnce(): Promise<void>
}

/** Start of the current slot of `everyMs`, ms. */
function slotStartMs(nowMs: number, everyMs: number): number {
  return Math.floor(nowMs / everyMs) * everyMs
}

function canaryUid(slotMs: number): string {
  return `${ownUidPrefixes.canary}${slotMs}`
}

export function createCanary({ config, publish, isActive, clock }: CanaryOptions): Canary {
  // spares a commit at every check; the ledger dedupes the event for all replicas
  let lastSlotMs: number | undefined
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
      await publish({ ...event, tags: ['TEST'] }, { route: 'canary', why, sinks: config.sinks })
      lastSlotMs = slotMs
    },
  }
}

/**
 * When each of the sinks last accepted a test event, ms; sinks that never did are left out. Redis
 * also knows sinks that had a canary once.
 */
export async function readCanary(
  { redis, keys }: { redis: Redis; keys: Keys },
  sinks: readonly string[],
): Promise<Record<string, number>> {
  const fields = await redis.hgetall(keys.shared('canary'))
  const known = Object.entries(fields).filter(([sink]) => sinks.includes(sink))
  return Object.fromEntries(known.map(([sink, ms]) => [sink, Number(ms)]))
}

/** A delivery that a sink accepted. */
interface Accepted {
  /** All that it tells of are test events. */
  isTest?: boolean
  members: readonly Parameters<typeof isCanary>[0][]
  /** Of a summary `members` are examples, and a digest is no test, whatever it lists. */
  summary?: object
  atMs: number
}

/** Notes that the sink accepted the test event that a delivery holds; a batch has others beside it. */
export async function noteCanary(
  { redis, keys }: { redis: Redis; keys: Keys },
  sink: string,
  { isTest = false, members, summary, atMs }: Accepted,
): Promise<void> {
  const isInBatch = summary === undefined && members.some(isCanary)
  if (!isTest && !isInBatch) return
  await redis.hset(keys.shared('canary'), sink, Math.floor(atMs))
}

/**
 * Pings a dead-man switch once for each canary that all its sinks accepted: whatever stops Tocsin
 * or a sink also stops the pings. One replica pings, once; a failed ping is logged and not repeated.
 */
interface CanaryPingOptions {
  everyMs: number
  ledger: AccountLedger
  keys: Keys
  /** Errors name no address. */
  ping: () => Promise<void>
  /** Whether this configuration is the active one. */
  isActive: () => boolean
  clock: Clock
  logger: Logger
}

export interface CanaryPing {
  /** Pings for the last two canaries that arrived and were not pinged for. */
  pingOnce(): Promise<void>
}

export function createCanaryPing(options: CanaryPingOptions): CanaryPing {
  const { everyMs, ledger, isActive, clock } = options
  let settledSlots: number[] = [] // spares a query; Redis holds the claims for all replicas
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

/**
 * Whether every sink accepted the canary. A canary that was rerouted to another sink did not
 * arrive.
 */
async function hasArrived(ledger: AccountLedger, slotMs: number): Promise<boolean> {
  const record = await readRecord(ledger, ledger.fingerprints.recordId(canaryUid(slotMs)))
  const items = record?.items ?? []
  return items.length > 0 && items.every(({ state }) => state === 'delivered')
}

/**
 * Claims the ping before it is sent, so that no other replica and no later start repeats it. A
 * missed ping is tolerable, and a second one carries no information.
 */
async function claimPing(
  { everyMs, ledger, keys }: CanaryPingOptions,
  slotMs: number,
): Promise<boolean> {
  const name = keys.shared('canary-ping', String(slotMs))
  return (await ledger.redis.set(name, '1', 'PX', 2 * everyMs, 'NX')) === 'OK'
}

async function pingForSlot({ ping, logger }: CanaryPingOptions, slotMs: number): Promise<void> {
  const slot = new Date(slotMs).toISOString()
  try {
    await ping()
    logger.debug({ slot }, 'pinged for the canary')
  } catch (error) {
    logger.warn({ slot, cause: errorMessage(error) }, 'the ping for the canary failed')
  }
}
