/**
 * The state of a lane that replicas hand over to each other through Redis: what is known of its
 * feeds, and when it may send again. The ledger does not depend on it: when it is lost, feeds count
 * as average ones.
 */
import type { Keys } from '../../redis/keys.ts'
import type { Redis } from '../../redis/client.ts'
import { newFleetPlace, newFeedPlace, type FeedPlace, type FleetPlace } from './next-feed.ts'

export interface LaneState {
  fleet: FleetPlace
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
  const state = { fleet: newFleetPlace(nowMs), freeAtMs: 0, rescansFreeAtMs: 0 }
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
  given: { generation: number; nowMs: number },
): Promise<StoredLane> {
  const { '': own, ...feeds } = await redis.hgetall(laneKey(keys, lane))
  const places = new Map<string, FeedPlace>()
  for (const [id, text] of Object.entries(feeds)) {
    const { generation, ...known } = parseOrEmpty<Partial<StoredPlace>>(text)
    const place = { ...newFeedPlace(), ...known }
    if (generation !== given.generation)
      Object.assign(place, { wait: undefined, failures: 0, rescan: undefined })
    places.set(id, place)
  }
  const state = { ...newLane(given.nowMs).state, ...parseOrEmpty<Partial<LaneState>>(own) }
  return { state, places }
}

type StoredPlace = FeedPlace & { generation: number }

/** Saves the places of the feeds that changed and, of a lane that is held, its state. */
export async function saveLane(
  redis: Redis,
  keys: Keys,
  lane: LaneName,
  changed: {
    state: LaneState | undefined
    places: ReadonlyMap<string, FeedPlace>
    generation: number
  },
): Promise<void> {
  const { state, places, generation } = changed
  const fields: Record<string, string> = state ? { '': JSON.stringify(state) } : {}
  for (const [id, place] of places) fields[id] = JSON.stringify({ ...place, generation })
  const name = laneKey(keys, lane)
  await Promise.all([redis.hset(name, fields), redis.pexpire(name, laneTtlMs)])
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
