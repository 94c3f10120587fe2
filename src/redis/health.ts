/** What Redis must be before Tocsin trusts it with the ledger: it may neither evict nor forget. */
import { setImmediate } from 'node:timers/promises'
import type { Cluster, Redis as IORedis } from 'ioredis'
import { type Clock, defaultTimings, type Timings } from '../lib/clock.ts'
import { errorMessage, TocsinError } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import { createLoop, type Loop } from '../lib/loop.ts'
import type { Endpoint, RedisConfig } from './config.ts'
import type { Redis } from './connection.ts'
import type { Keys } from './keys.ts'

interface RedisSafety {
  isDurable: boolean
  isEvictionSafe: boolean
  /** What is wrong and what to set, one sentence each. */
  problems: string[]
}

export interface RedisHealth extends RedisSafety {
  /**
   * All of it, not Tocsin's share: what an operator compares with `maxmemory`. Of several masters the
   * one that uses most.
   */
  usedMemoryBytes: number
  /** Nothing more is taken in: see `hasRoom`. */
  isFull: boolean
}

/** Of all masters the worst. Reads INFO, not CONFIG: managed services refuse the latter. */
export async function inspectRedis(redis: Redis): Promise<RedisHealth> {
  const masters = await readMasterInfo(redis)
  return {
    ...mergeSafety(masters),
    usedMemoryBytes: Math.max(...masters.map(({ field }) => Number(field('used_memory') ?? 0))),
    isFull: !masters.every(nodeHasRoom),
  }
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
 * Throws StoreError `unsafe` unless the configuration accepts it; then says so, loudly. Replicas count:
 * one of them is master after a failover.
 */
export async function refuseUnsafe(
  redis: Redis,
  config: RedisConfig,
  logger: Logger,
): Promise<void> {
  const infos = [...(await readMasterInfo(redis)), ...(await readReplicaInfo(redis))]
  const { problems } = mergeSafety(infos)
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

/** Beyond this share of its memory nothing more is taken in: the rest is for what has yet to leave. */
const maxMemoryShare = 0.7

/** Whether Redis has room for more events, on each master; always where it has no limit of its own. */
export async function hasRoom(redis: Redis): Promise<boolean> {
  return (await readMasterInfo(redis)).every(nodeHasRoom)
}

function nodeHasRoom({ field }: NodeInfo): boolean {
  const limit = Number(field('maxmemory') ?? 0)
  return limit === 0 || Number(field('used_memory') ?? 0) < limit * maxMemoryShare
}

/** How long an answer about room holds, ms: INFO takes Redis longer than a page that shows nothing new. */
const roomAnswerMs = 1_000

/** The same for who asks before each page: Redis is asked once a second at most. */
export function createRoomCheck(redis: Redis, clock: Clock): () => Promise<boolean> {
  let known: { has: Promise<boolean>; atMs: number } | undefined
  return () => {
    const nowMs = clock.monotonic()
    if (known && nowMs - known.atMs < roomAnswerMs) return known.has
    const answer = { has: hasRoom(redis), atMs: nowMs }
    known = answer
    answer.has.catch(() => {
      if (known === answer) known = undefined // nobody knows
    })
    return answer.has
  }
}

/** Of what is stored: 1 up to version 0.4, with a BullMQ job for each delivery; 2 with claims. */
export const schemaVersion = 2

/** undefined: nothing is stored yet. */
export async function readSchema(redis: Redis, keys: Keys): Promise<number | undefined> {
  const stored = await redis.get(keys.shared('schema'))
  return stored === null ? undefined : Number(stored)
}

/**
 * Claims the key space for this version's layout; throws StoreError `too_new` on a newer one. An older one stays what
 * it is for a command; a daemon that has upgraded it says so.
 */
export async function claimSchema(
  redis: Redis,
  keys: Keys,
  { isUpgrade = false } = {},
): Promise<void> {
  const name = keys.shared('schema')
  // a full Redis refuses even a write that would change nothing
  if ((await readSchema(redis, keys)) === undefined) await redis.set(name, schemaVersion, 'NX')
  const stored = (await readSchema(redis, keys)) ?? schemaVersion
  if (stored > schemaVersion) {
    throw new StoreError(
      'too_new',
      `Redis holds a ledger of layout ${stored}, this version writes ${schemaVersion}: run the newer version, or give this one a prefix of its own (redis.prefix)`,
    )
  }
  if (stored < schemaVersion && isUpgrade) await redis.set(name, schemaVersion)
}

/**
 * Tells waiting for Redis from a process that hangs: /healthz must not end a replica because Redis is
 * away, answers nothing, or a Cluster has no master for one of our slots.
 */

export interface RedisWatch extends Pick<Loop, 'start' | 'stop'> {
  /** When Redis last owed an answer, wall clock ms; 0: never. */
  lastUnreachableMs(): number
  /** Whether it owed one when it was last asked. */
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

  /** What is owed already is not asked for again: it would pile up. */
  function ask(): Promise<void> {
    // of a slot that moves a Cluster answers for two keys only when it has moved, as scripts need it
    pendingAnswer ??= Promise.all(keys().map((key) => redis.exists(key, `${key}:moved`)))
      .then(() => undefined)
      .finally(() => (pendingAnswer = undefined))
    return pendingAnswer
  }

  async function isThere(signal: AbortSignal): Promise<boolean> {
    if (redis.status !== 'ready') return false
    // an answer that came while this process was busy is heard first
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

/** What has to be asked of every node, since a Cluster sends a command without a key to any of them. */

interface NodeInfo {
  /** host:port of one of several; undefined for one that is the only one. */
  node: string | undefined
  field: (name: string) => string | undefined
}

export async function readMasterInfo(redis: Redis): Promise<NodeInfo[]> {
  if (isCluster(redis)) {
    return Promise.all(
      (await listMasters(redis)).map((node) => readNodeInfo(node, formatNode(node))),
    )
  }
  const info = await readNodeInfo(redis, undefined)
  const { remoteAddress, remotePort } = redis.stream
  return [redis.options.sentinels ? { ...info, node: `${remoteAddress}:${remotePort}` } : info]
}

/** Of those that answer soon, behind sentinels and in a Cluster: any of them may be master next. */
async function readReplicaInfo(redis: Redis): Promise<NodeInfo[]> {
  const replicas = isCluster(redis) ? clusterReplicas(redis) : await sentinelReplicas(redis)
  const infos = replicas.map(async (node) => {
    node.on('error', () => {}) // it is left out
    try {
      return [await readNodeInfo(node, formatNode(node))]
    } catch {
      return []
    } finally {
      node.disconnect()
    }
  })
  return (await Promise.all(infos)).flat()
}

/** Of connections that are for one question. */
const singleUseOptions = {
  retryStrategy: () => null,
  connectTimeout: 1_000,
  commandTimeout: 1_000,
  enableReadyCheck: false,
}

function clusterReplicas(cluster: Cluster): IORedis[] {
  return cluster.nodes('slave').map((node) => node.duplicate(singleUseOptions))
}

/** Of the master whom sentinels name, as it knows them itself. */
async function sentinelReplicas(master: IORedis): Promise<IORedis[]> {
  const { sentinels, username, password, tls } = master.options
  if (!sentinels) return []
  const { Redis: One } = await import('ioredis')
  const { field } = await readNodeInfo(master, undefined)
  const login = { username: username ?? '', password: password ?? '' }
  const found: IORedis[] = []
  for (let i = 0; ; i += 1) {
    const [, host, port] = /ip=([^,]+),port=(\d+)/.exec(field(`slave${i}`) ?? '') ?? []
    if (host === undefined) return found
    const address = { host, port: Number(port), ...(tls === undefined ? {} : { tls }) }
    found.push(new One({ ...singleUseOptions, ...login, ...address }))
  }
}

/** Names of keys by a pattern, in portions, after which the caller may pause; some are empty, some names come twice. */
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

/** A server as it runs now: started again, it is another one to whoever keeps a cursor. */
export interface MasterId {
  name: string
  run: string
  node: IORedis
}

export async function readMasterIds(redis: Redis): Promise<MasterId[]> {
  return Promise.all(
    (await listMasters(redis)).map(async (node) => {
      const { field } = await readNodeInfo(node, undefined)
      const name = isCluster(redis) ? formatNode(node) : 'master'
      return { name, run: field('run_id') ?? '', node }
    }),
  )
}

/** One step of a scan that its caller paces and resumes; the cursor 0 begins and ends it. */
export async function scanNode(
  node: IORedis,
  pattern: string,
  { cursor, count }: { cursor: string; count: number },
): Promise<{ cursor: string; names: string[] }> {
  const [next, names] = await node.scan(cursor, 'MATCH', pattern, 'COUNT', count)
  return { cursor: next, names }
}

function isCluster(redis: Redis): redis is Cluster {
  return redis.isCluster
}

async function listMasters(redis: Redis): Promise<IORedis[]> {
  if (!isCluster(redis)) return [redis]
  await redis.ping() // the nodes are known once one has answered
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

export class StoreError extends TocsinError {
  override readonly name = 'StoreError'
  readonly code = 'TOCSIN_STORE'
  readonly reason: StoreReason

  constructor(reason: StoreReason, message: string, options: { cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.reason = reason
  }
}

/** What Redis says no to for reasons of its own, at its `placeOf`; undefined for anything else. */
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

/** The key of the file that says where Redis is. */
export function redisConfigKey({ sentinels, cluster, embedded }: RedisConfig): string {
  if (sentinels) return 'redis.sentinels'
  if (cluster) return 'redis.cluster'
  return embedded === undefined ? 'redis.url' : 'redis.embedded'
}

/** As a sentence begins: the key of the file, and where Redis is; never a password. */
export function describeRedis(config: RedisConfig): string {
  const { sentinels, cluster, embedded, url } = config
  const key = redisConfigKey(config)
  if (sentinels) return `${key}: Redis "${sentinels.name}" of ${formatEndpoints(sentinels.nodes)}`
  if (cluster) return `${key}: the Cluster of ${formatEndpoints(cluster)}`
  if (embedded !== undefined) return `${key}: the Redis in ${embedded}`
  return `${key}: Redis at ${formatAddress(url?.reveal() ?? '')}`
}

function formatEndpoints(nodes: readonly Endpoint[]): string {
  return nodes.map(({ host, port }) => `${host}:${port}`).join(', ')
}

function formatAddress(text: string): string {
  const url = URL.parse(text)
  if (url === null) return 'an unreadable address'
  return url.protocol === 'unix:' ? url.pathname : `${url.hostname}:${url.port || '6379'}`
}
