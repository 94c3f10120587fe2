import { Cluster, Redis as IORedis, type RedisOptions } from 'ioredis'
import { replicaId, type Timings } from '../lib/clock.ts'
import { errorMessage } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { Endpoint, RedisConfig } from './config.ts'
import { addressOptions, nodeOptions } from './connection-options.ts'

/** One Redis wherever it is, or a Cluster: what is done differently there stands in `nodes.ts`. */
export type Redis = IORedis | Cluster

/**
 * One connection for commands and BullMQ. Waits for a Redis that is away (at most 1 s between tries)
 * instead of failing; `maxRetriesPerRequest: null` is what BullMQ's workers demand. A connection that
 * owes an answer for longer than any command or blocking read may take is dead, and made anew.
 */
export function connectRedis(config: RedisConfig, logger: Logger): Redis {
  const redis = config.cluster ? openCluster(config, config.cluster) : openSingle(config)
  logTrouble(redis, logger)
  return redis
}

const commonOptions = { maxRetriesPerRequest: null, enableReadyCheck: true, socketTimeout: 30_000 }

function retryDelayMs(times: number): number {
  return Math.min(50 * 2 ** Math.min(times, 5), 1000)
}

/** One that hangs must not keep us from asking the next. */
const sentinelPatienceMs = 2_000

/** Between tries at a Cluster that is choosing a master, or moving a slot. */
const clusterRetryMs = 200

function openSingle(config: RedisConfig): Redis {
  // ioredis calls it on the options, also on those of BullMQ's duplicates
  function refreshAndDelay(this: RedisOptions, times: number): number {
    refreshOptions(this, config)
    return retryDelayMs(times)
  }
  const redis = new IORedis({
    ...addressOptions(config),
    ...commonOptions,
    retryStrategy: refreshAndDelay,
    sentinelRetryStrategy: refreshAndDelay,
    sentinelCommandTimeout: sentinelPatienceMs,
    // a master that was demoted: sentinels know the new one, a name may lead to it
    reconnectOnError: (error: Error) => isDemoted(error) && (config.sentinels ? 2 : true),
  })
  return handleAllErrors(redis)
}

/**
 * ioredis hears the first error of a socket. TLS has a second one where the server answers a refused
 * certificate by an alert, and an error that nobody hears ends the process. BullMQ's duplicates too.
 */
function handleAllErrors(redis: IORedis): IORedis {
  const duplicate = redis.duplicate.bind(redis)
  const handleErrors = () => {
    // undefined where the connection was given up at once
    const stream = redis.stream as IORedis['stream'] | undefined
    stream?.on('error', () => undefined)
  }
  // by the first error too: a master that sentinels name has its socket later
  redis.on('connecting', () => setImmediate(handleErrors)).on('error', handleErrors)
  redis.duplicate = (...given) => handleAllErrors(duplicate(...given))
  return redis
}

function isDemoted(error: Error): boolean {
  return error.message.startsWith('READONLY')
}

function openCluster(config: RedisConfig, nodes: readonly Endpoint[]): Cluster {
  const cluster = new Cluster(
    nodes.map(({ host, port }) => ({ host, port })),
    {
      redisOptions: { ...nodeOptions(config), ...commonOptions },
      clusterRetryStrategy: retryDelayMs,
      maxRedirections: Infinity,
      retryDelayOnFailover: clusterRetryMs,
      retryDelayOnClusterDown: clusterRetryMs,
      retryDelayOnTryAgain: clusterRetryMs,
      slotsRefreshTimeout: 5_000,
      // certificates are for names
      dnsLookup: (host, found) => found(null, host),
    },
  )
  return prepareCluster(cluster, config)
}

/** BullMQ's duplicates too: they have nodes of their own. */
function prepareCluster(cluster: Cluster, config: RedisConfig): Cluster {
  cluster.on('+node', (node: IORedis) => {
    handleAllErrors(node)
    refreshOptions(node.options, config)
  })
  const [connect, duplicate] = [cluster.connect.bind(cluster), cluster.duplicate.bind(cluster)]
  cluster.connect = () => untilReady(cluster, connect())
  cluster.duplicate = (...given) => prepareCluster(duplicate(...given), config)
  return cluster
}

/**
 * ioredis forgets the promise of a `connect()` that found the Cluster down, although it tries again and
 * becomes ready (ioredis #741). A BullMQ worker that waited for it took no job for ever.
 */
function untilReady(cluster: Cluster, connecting: Promise<void>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  cluster.once('ready', resolve)
  connecting.then(resolve, reject)
  return promise.finally(() => cluster.off('ready', resolve))
}

/** With what the files hold by now; one that cannot be read is just being written. */
function refreshOptions(options: RedisOptions, config: RedisConfig): void {
  try {
    Object.assign(options, addressOptions(config))
  } catch {
    // what was good before may still be
  }
}

/** Once when it begins, and when it is over. */
function logTrouble(redis: Redis, logger: Logger): void {
  let lastLogged: string | undefined
  const nodes = new Set<string>()
  redis.on('error', (given: unknown) => {
    const error = unwrapNodeError(given)
    const words = describeTrouble(error)
    if (lastLogged !== words) logger.warn({ err: error }, words)
    lastLogged = words
  })
  redis.on('ready', () => {
    if (lastLogged !== undefined) logger.info('redis is reachable again')
    lastLogged = undefined
  })
  redis.on('node error', (error: unknown, node: string) => {
    if (nodes.has(node) || lastLogged !== undefined) return
    nodes.add(node)
    logger.warn({ err: error, node }, 'a node of the redis cluster is not reachable; waiting')
  })
  redis.on('+node', (node: IORedis) => {
    const { host, port } = node.options
    node.on('ready', () => nodes.delete(`${host}:${port}`))
  })
}

/** Every reason for which a connection does not come to be, without the echoes that follow it. */
export function onTrouble(redis: Redis, listener: (reason: unknown) => void): void {
  const hear = (error: unknown): void => {
    if (!/^(Connection is closed|All sentinels are unreachable)/.test(errorMessage(error)))
      listener(error)
  }
  redis.on('error', (error: unknown) => hear(unwrapNodeError(error)))
  redis.on('node error', hear)
  redis.on('sentinelError', (error: Error) => {
    const isUnknown = /(invalid reply: null|No such master with that name)$/.test(error.message)
    hear(isUnknown ? new Error('the sentinels know no master of this name') : error)
  })
}

/** A Cluster says only that no node was good. */
function unwrapNodeError(error: unknown): unknown {
  const isOfNodes = error instanceof Error && 'lastNodeError' in error
  return isOfNodes && error.lastNodeError instanceof Error ? error.lastNodeError : error
}

function describeTrouble(error: unknown): string {
  return isSignInRefused(error)
    ? 'redis refuses the sign-in; waiting for a user and password that it takes'
    : 'redis is not reachable; waiting'
}

export function isSignInRefused(error: unknown): boolean {
  return /\b(NOAUTH|WRONGPASS|NOPERM)\b/.test(errorMessage(error))
}

/**
 * BullMQ as a cache of work: the ledger is the truth, so jobs carry references only and are forgotten
 * when they end, however they end; what a job was for is found again in the ledger (the figures: ledger
 * rules, Time-outs that hold together).
 */
export const jobOptions = { removeOnComplete: true, removeOnFail: true } as const

export const queueSettings = { streams: { events: { maxLen: 1_000 } } } as const

/** By the name (`pb` in a job's hash) an operator sees in whose hands a job is. */
export function workerSettings({ jobLockMs, stalledCheckMs }: Timings): WorkerSettings {
  return {
    name: replicaId,
    lockDuration: jobLockMs,
    stalledInterval: stalledCheckMs,
    maxStalledCount: 1_000_000_000,
  }
}

interface WorkerSettings {
  name: string
  lockDuration: number
  stalledInterval: number
  maxStalledCount: number
}
