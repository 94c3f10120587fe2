/**
 * What Tocsin asks of Redis before it trusts it with the ledger: no eviction, durable storage,
 * room, a known schema. Also the watch that tells an unreachable Redis from a hung process, what
 * has to be asked of every node, and StoreError.
 */
import { setImmediate } from 'node:timers/promises'
import type { Cluster, Redis as IORedis } from 'ioredis'
import { type Clock, defaultTimings, type Timings } from '../lib/clock.ts'
import { errorMessage, ReasonedError } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import { createLoop, type Loop } from '../lib/loop.ts'
import type { RedisConfig } from './config.ts'
import { redisConfigKey } from './place.ts'
import type { Redis } from './client.ts'
import type { Keys } from './keys.ts'

interface RedisSafety {
  isDurable: boolean
  isEvictionSafe: boolean
  /** One sentence each: what is wrong, and what to set. */
  problems: string[]
}

export interface RedisHealth extends RedisSafety {
  /**
   * All of Redis' memory, not only Tocsin's share: operators compare it with `maxmemory`. Of
   * several masters that of the fullest, which decides on `isFull`.
   */
  usedMemoryBytes: number
  /** `maxmemory` of the same master; undefined: it has none. */
  memoryLimitBytes: number | undefined
  /** No more events are taken in; see `hasRoom`. */
  isFull: boolean
}

/** Reports the worst of all masters. Reads INFO, because managed Redis services refuse CONFIG. */
export async function inspectRedis(redis: Redis): Promise<RedisHealth> {
  const masters = await readMasterInfo(redis)
  const memories = masters.map(readMemory)
  const fullest = memories.reduce((one, other) => (isFuller(other, one) ? other : one))
  return {
    ...mergeSafety(masters),
    usedMemoryBytes: fullest.used,
    memoryLimitBytes: fullest.limit === Infinity ? undefined : fullest.limit,
    isFull: !masters.every(nodeHasRoom),
  }
}

interface NodeMemory {
  used: number
  /** `maxmemory`; Infinity: it has none. */
  limit: number
}

function readMemory({ field }: NodeInfo): NodeMemory {
  const limit = Number(field('maxmemory') ?? 0)
  return { used: Number(field('used_memory') ?? 0), limit: limit === 0 ? Infinity : limit }
}

function isFuller(one: NodeMemory, other: NodeMemory): boolean {
  const [share, otherShare] = [one.used / one.limit, other.used / other.limit]
  return share === otherShare ? one.used > other.used : share > otherShare
}

/** The oldest version of Redis whose scripts Tocsin can use. */
const oldestRelease = 7

/** The server of each master, by name and version. */
export async function readServers(redis: Redis): Promise<{ name: string; isTooOld: boolean }[]> {
  const masters = await readMasterInfo(redis)
  return masters.map(({ field }) => {
    const valkey = field('valkey_version')
    const version = field('redis_version') ?? 'of an unknown version'
    if (valkey !== undefined) return { name: `Valkey ${valkey}`, isTooOld: false }
    return { name: `Redis ${version}`, isTooOld: Number.parseInt(version, 10) < oldestRelease }
  })
}

function mergeSafety(infos: readonly NodeInfo[]): RedisSafety {
  const nodes = infos.map(inspectNode)
  return {
    isDurable: nodes.every(({ isDurable }) => isDurable),
    isEvictionSafe: nodes.every(({ isEvictionSafe }) => isEvictionSafe),
    problems: nodes.flatMap(({ problems }) => problems),
  }
}

function inspectNode({ node, field }: NodeInfo): RedisSafety {
  const policy = field('maxmemory_policy') ?? 'noeviction'
  const isEvictionSafe = policy === 'noeviction'
  const isDurable = field('aof_enabled') === '1'
  const nodeName = node ?? 'it'
  const problems: string[] = []
  if (!isDurable) {
    problems.push(
      `${nodeName} keeps no append-only file and forgets on a restart; set "appendonly yes"`,
    )
  }
  if (!isEvictionSafe) {
    problems.push(`${nodeName} may evict keys ("${policy}"); set "maxmemory-policy noeviction"`)
  }
  return { isDurable, isEvictionSafe, problems }
}

/**
 * Throws StoreError `unsafe` if Redis may evict or forget; logs a warning instead if the
 * configuration accepts that. After a failover the gauges tell of the new master.
 */
export async function refuseUnsafe(
  redis: Redis,
  config: RedisConfig,
  logger: Logger,
): Promise<void> {
  const problems = await findRisks(redis)
  if (problems.length === 0) return
  if (!config.allowUnsafe) {
    const remedy = 'change its configuration, or accept the risk with redis.allow_unsafe: true'
    throw new StoreError(
      'unsafe',
      `${redisConfigKey(config)}: this Redis may lose events: ${problems.join('; ')} (${remedy})`,
    )
  }
  logger.warn({ problems }, 'unsafe redis accepted by redis.allow_unsafe: events may be lost')
}

/** Why a master may evict or forget, each with what to set. */
export async function findRisks(redis: Redis): Promise<string[]> {
  return mergeSafety(await readMasterInfo(redis)).problems
}

/** Above this share of Redis' memory nothing is taken in: the rest is for what is pending. */
const maxMemoryShare = 0.7

/** Whether every master has room for more events; one without `maxmemory` always has. */
export async function hasRoom(redis: Redis): Promise<boolean> {
  return (await readMasterInfo(redis)).every(nodeHasRoom)
}

function nodeHasRoom(info: NodeInfo): boolean {
  const { used, limit } = readMemory(info)
  return used < limit * maxMemoryShare
}

/** How long an answer is used: INFO takes Redis longer than a page without new events. */
const roomAnswerMs = 1_000

/** `hasRoom` for callers that ask before each page: asks Redis at most once per `roomAnswerMs`. */
export function createRoomCheck(redis: Redis, clock: Clock): () => Promise<boolean> {
  let known: { has: Promise<boolean>; atMs: number } | undefined
  return () => {
    const nowMs = clock.monotonic()
    if (known && nowMs - known.atMs < roomAnswerMs) return known.has
    const answer = { has: hasRoom(redis), atMs: nowMs }
    known = answer
    answer.has.catch(() => {
      if (known === answer) known = undefined
    })
    return answer.has
  }
}

/** Of the stored layout. */
export const schemaVersion = 1

/** Returns the stored schema version; undefined if nothing is stored yet. */
export async function readSchema(redis: Redis, keys: Keys): Promise<number | undefined> {
  const stored = await redis.get(keys.shared('schema'))
  return stored === null ? undefined : Number(stored)
}

/**
 * Marks the key space with this version's schema if it has none. Throws StoreError `too_new` if its
 * schema is newer.
 */
export async function claimSchema(redis: Redis, keys: Keys): Promise<void> {
  const name = keys.shared('schema')
  // read first: a full Redis refuses even a write that would change nothing
  if ((await readSchema(redis, keys)) === undefined) await redis.set(name, schemaVersion, 'NX')
  const stored = (await readSchema(redis, keys)) ?? schemaVersion
  if (stored > schemaVersion) {
    throw new StoreError(
      'too_new',
      `Redis holds a ledger of layout ${stored}, this version writes ${schemaVersion}: run the newer version, or set another redis.prefix`,
    )
  }
}

/**
 * Tells a process that waits for Redis from one that hangs. /healthz must not end a replica because
 * Redis is away, does not answer, or a Cluster has no master for a slot in use.
 */
export interface RedisWatch extends Pick<Loop, 'start' | 'stop'> {
  /** When Redis last failed to answer in time, wall clock ms; 0: never. */
  lastUnreachableMs(): number
  /** Whether it failed to answer in time when it was last asked; true before the first question. */
  isUnreachable(): boolean
}

interface RedisWatchOptions {
  redis: Redis
  /** One key for each slot that the process needs. */
  keys: () => readonly string[]
  clock: Clock
  logger: Logger
  timings?: Timings
}

export function createRedisWatch(options: RedisWatchOptions): RedisWatch {
  const { redis, keys, clock, logger, timings = defaultTimings } = options
  let unreachableMs = 0
  let isUnreachable = true
  let pendingAnswer: Promise<void> | undefined

  /** Never sends a second question before the first is answered: they would pile up. */
  function ask(): Promise<void> {
    // two keys: while their slot moves, a Cluster answers TRYAGAIN, as it does to scripts
    pendingAnswer ??= Promise.all(keys().map((key) => redis.exists(key, `${key}:moved`)))
      .then(() => undefined)
      .finally(() => (pendingAnswer = undefined))
    return pendingAnswer
  }

  async function isThere(signal: AbortSignal): Promise<boolean> {
    if (redis.status !== 'ready') return false
    // an answer that arrived while this process was busy counts as in time
    const late = clock
      .sleep(timings.redisWatchMs, signal)
      .then(() => setImmediate())
      .then(() => false)
    const answered = ask().then(
      () => true,
      () => false,
    )
    return Promise.race([answered, late])
  }

  const loop = createLoop({
    name: 'redis watch',
    everyMs: timings.redisWatchMs,
    clock,
    logger,
    async tick(signal) {
      isUnreachable = !(await isThere(signal))
      if (isUnreachable) unreachableMs = clock.now()
    },
  })
  return {
    start: () => loop.start(),
    stop: () => loop.stop(),
    lastUnreachableMs: () => unreachableMs,
    isUnreachable: () => isUnreachable,
  }
}

/** INFO of one node: a Cluster sends a command without a key to any, so each is asked directly. */
interface NodeInfo {
  /** host:port; undefined for a single server. */
  node: string | undefined
  field: (name: string) => string | undefined
}

async function readMasterInfo(redis: Redis): Promise<NodeInfo[]> {
  if (isCluster(redis)) {
    return Promise.all(
      (await listMasters(redis)).map((node) => readNodeInfo(node, formatNode(node))),
    )
  }
  const info = await readNodeInfo(redis, undefined)
  const { remoteAddress, remotePort } = redis.stream
  return [redis.options.sentinels ? { ...info, node: `${remoteAddress}:${remotePort}` } : info]
}

/**
 * Scans for key names that match `pattern`, in portions, so that the caller can pause in between.
 * Portions may be empty, and a name may come twice.
 */
export async function* scanKeys(redis: Redis, pattern: string): AsyncGenerator<string[]> {
  for (const node of await listMasters(redis)) {
    let cursor = '0'
    do {
      const [next, names] = await node.scan(cursor, 'MATCH', pattern, 'COUNT', 500)
      cursor = next
      yield names
    } while (cursor !== '0')
  }
}

function isCluster(redis: Redis): redis is Cluster {
  return redis.isCluster
}

async function listMasters(redis: Redis): Promise<IORedis[]> {
  if (!isCluster(redis)) return [redis]
  await redis.ping() // the client knows the nodes once one has answered
  return redis.nodes('master')
}

async function readNodeInfo(node: IORedis, name: string | undefined): Promise<NodeInfo> {
  const info = await node.info()
  return { node: name, field: (key) => new RegExp(`^${key}:(.*?)\r?$`, 'm').exec(info)?.[1] }
}

function formatNode({ options: { host, port } }: IORedis): string {
  return `${host}:${port}`
}

export type StoreReason =
  | 'unreachable' // no connection to Redis
  | 'refused' // it refuses the sign-in or a command
  | 'unsafe' // it can evict or forget
  | 'too_new' // written by a newer version
  | 'out_of_memory'

export class StoreError extends ReasonedError<StoreReason> {
  override readonly name = 'StoreError'
  readonly code = 'TOCSIN_STORE'
}

/** The StoreError for what Redis answered, else undefined. `place`: see `describeRedis`. */
export function toStoreError(error: unknown, place: string): StoreError | undefined {
  const message = errorMessage(error)
  const [, word = ''] = /(?:^|because )([A-Z]+) /.exec(message) ?? []
  const refused = (problem: string): StoreError =>
    new StoreError('refused', `${place} ${problem}`, { cause: error })
  switch (word) {
    case 'OOM':
      return new StoreError(
        'out_of_memory',
        'Redis has no memory left; raise maxmemory, or make room',
        { cause: error },
      )
    case 'NOAUTH':
      return refused(`asks for a password (NOAUTH); write ${loginRemedy(place)}`)
    case 'WRONGPASS':
      return refused('refuses this user or password (WRONGPASS); correct them')
    case 'MOVED':
    case 'CROSSSLOT':
      return refused('is a node of a Redis Cluster; write redis.cluster: [host:port] instead')
    case 'NOPERM':
    case 'READONLY':
    case 'MISCONF':
    case 'NOREPLICAS':
      return refused(`refuses the command: ${message}`)
    default:
      return undefined
  }
}

function loginRemedy(place: string): string {
  return place.startsWith('redis.url')
    ? 'redis://user:password@host, or :password@'
    : 'redis.password or redis.password_file'
}
