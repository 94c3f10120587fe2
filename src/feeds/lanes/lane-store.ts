/**
 * The state of a lane that replicas hand over to each other through Redis: what is known of its
 * feeds, its share after 429s, and when it may send again. The ledger does not depend on it: when
 * it is lost, feeds count as average ones.
 */
import type { Keys } from '../../redis/keys.ts'
import type { Redis } from '../../redis/client.ts'
import {
  newFleetPlace,
  newFeedPlace,
  type FeedPlace,
  type FleetPlace,
  type Share,
} from './next-feed.ts'

export interface LaneState {
  fleet: FleetPlace
  share: Share | undefined
  /** Pauses after a 429 that `share` already accounts for. */
  pauses: number
  /** When feeds may send again, and when rescans may while tails are due; wall clock, ms. */
  freeAtMs: number
  rescansFreeAtMs: number
}

export interface StoredLane {
  state: LaneState
  /** By feed id. */
  places: Map<string, FeedPlace>
}

/** Identifies a lane by organization and rate-limit tier. */
export interface LaneName {
  organization: string
  tier: string
}

export function newLane(nowMs: number): StoredLane {
  const state = {
    fleet: newFleetPlace(nowMs),
    share: undefined,
    pauses: 0,
    freeAtMs: 0,
    rescansFreeAtMs: 0,
  }
  return { state, places: new Map() }
}

/** Identifies a feed within its lane. */
export function feedId({ account, name }: { account: string; name: string }): string {
  return `${account}/${name}`
}

const laneTtlMs = 7 * 86_400_000

function laneKey(keys: Keys, { organization, tier }: LaneName): string {
  return keys.shared('lane', organization, tier)
}

/**
 * Loads a lane. Waits and failures noted by a replica of another generation are dropped, because
 * its configuration may have caused them.
 */
export async function loadLane(
  redis: Redis,
  keys: Keys,
  lane: LaneName,
  given: { generation: number | undefined; nowMs: number },
): Promise<StoredLane> {
  const [fields, pauses] = await Promise.all([
    redis.hgetall(laneKey(keys, lane)),
    readPauses(redis, keys, lane),
  ])
  const { '': own, ...feeds } = fields
  const state = parseOrEmpty<Partial<LaneState>>(own)
  const places = new Map<string, FeedPlace>()
  for (const [id, text] of Object.entries(feeds)) {
    const { generation, ...known } = parseOrEmpty<Partial<StoredPlace>>(text)
    const place = { ...newFeedPlace(), ...known }
    if (given.generation !== undefined && generation !== given.generation) {
      place.wait = undefined
      place.failures = 0
      place.rescan = undefined
    }
    places.set(id, place)
  }
  return { state: { ...newLane(given.nowMs).state, pauses, ...state }, places }
}

type StoredPlace = FeedPlace & { generation: number }

/** Saves the state of a lane and the places of the feeds that changed. */
export async function saveLane(
  redis: Redis,
  keys: Keys,
  lane: LaneName,
  changed: { state: LaneState; places: ReadonlyMap<string, FeedPlace>; generation: number },
): Promise<void> {
  const { state, places, generation } = changed
  const fields: Record<string, string> = { '': JSON.stringify(state) }
  for (const [id, place] of places) fields[id] = JSON.stringify({ ...place, generation })
  const name = laneKey(keys, lane)
  await Promise.all([redis.hset(name, fields), redis.pexpire(name, laneTtlMs)])
}

/** The share after 429s, as a holder of the lane noted it last; undefined: as configured. */
export async function readShare(
  redis: Redis,
  keys: Keys,
  lane: LaneName,
): Promise<Share | undefined> {
  const own = await redis.hget(laneKey(keys, lane), '')
  return parseOrEmpty<Partial<LaneState>>(own ?? undefined).share
}

/** Counts the times a 429 has paused the tier. */
export async function readPauses(redis: Redis, keys: Keys, lane: LaneName): Promise<number> {
  const name = keys.shared('limit', lane.organization, lane.tier)
  return Number((await redis.hget(name, 'pauses')) ?? 0)
}

/** Returns an empty object for text that is missing or cannot be parsed. */
function parseOrEmpty<T extends object>(text: string | undefined): T | Record<string, never> {
  if (text === undefined) return {}
  try {
    return JSON.parse(text) as T
  } catch {
    return {}
  }
}
