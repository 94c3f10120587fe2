/**
 * Connections to one Redis, to a master that sentinels name, or to a Cluster: how long they wait,
 * how they come back, what they log. Also the settings of BullMQ's queues and workers on them.
 */
import { Cluster, Redis as IORedis, type RedisOptions } from 'ioredis'
import { replicaId, type Timings } from '../lib/clock.ts'
import { errorMessage } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { Redis } from './client.ts'
import type { Endpoint, RedisConfig } from './config.ts'
import { addressOptions, nodeOptions } from './connection-options.ts'
import { describeRedis } from './place.ts'

/**
 * Opens one connection for commands and BullMQ. While Redis is away it waits instead of failing (at
 * most 1 s between tries); BullMQ's workers demand `maxRetriesPerRequest: null`. A connection
 * without an answer for longer than any command or blocking read takes (`socketTimeout`) is opened
 * anew.
 */
export function connectRedis(config: RedisConfig, logger: Logger): Redis {
  const redis = config.cluster ? openCluster(config, config.cluster) : openSingle(config)
  logTrouble(redis, logger, describeRedis(config))
  return redis
}

const commonOptions = { maxRetriesPerRequest: null, enableReadyCheck: true, socketTimeout: 30_000 }

function retryDelayMs(times: number): number {
  return Math.min(50 * 2 ** Math.min(times, 5), 1000)
}

/** How long to wait for one sentinel before the next is asked. */
const sentinelPatienceMs = 2_000

/** Between tries at a Cluster that elects a master or moves a slot. */
const clusterRetryMs = 200

function openSingle(config: RedisConfig): Redis {
  // `this` is the options object that ioredis uses, also for BullMQ's duplicates of the connection
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
    // after a demotion connect again: sentinels know the new master, a host name may lead to it
    reconnectOnError: (error: Error) => isDemoted(error) && (config.sentinels ? 2 : true),
  })
  return handleAllErrors(redis)
}

/**
 * Listens for all errors of a connection and of BullMQ's duplicates. ioredis listens only for the
 * first error of a socket. With TLS a second one follows when the server answers a refused
 * certificate by an alert. An error without a listener ends the process.
 */
function handleAllErrors(redis: IORedis): IORedis {
  const duplicate = redis.duplicate.bind(redis)
  const handleErrors = () => {
    // undefined if the connection was given up at once
    const stream = redis.stream as IORedis['stream'] | undefined
    stream?.on('error', () => undefined)
  }
  // also at the first error: with sentinels the socket does not exist yet at `connecting`
  redis.on('connecting', () => setImmediate(handleErrors)).on('error', handleErrors)
  redis.on('connect', () => writeTogether(redis.stream))
  redis.duplicate = (...given) => handleAllErrors(duplicate(...given))
  return redis
}

/**
 * ioredis hands each command to the kernel by itself, which costs more than the command. Those of
 * one turn of the event loop go together: a fleet's lanes and batches send many at once.
 */
function writeTogether(stream: IORedis['stream']): void {
  const write = stream.write.bind(stream) as (...given: unknown[]) => boolean
  stream.write = (...given: unknown[]) => {
    if (stream.writableCorked === 0) {
      stream.cork()
      setImmediate(() => stream.uncork())
    }
    return write(...given)
  }
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
      // keep host names: certificates are issued for them
      dnsLookup: (host, found) => found(null, host),
    },
  )
  return prepareCluster(cluster, config)
}

/** Applies to BullMQ's duplicates, too: they have nodes of their own. */
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
 * Resolves once the Cluster is ready. ioredis never settles the promise of a `connect()` that found
 * the Cluster down, although it tries again and becomes ready (ioredis #741). A BullMQ worker that
 * awaits it would never take a job.
 */
function untilReady(cluster: Cluster, connecting: Promise<void>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  cluster.once('ready', resolve)
  connecting.then(resolve, reject)
  return promise.finally(() => cluster.off('ready', resolve))
}

/** Reads the files again. One that cannot be read is probably being written. */
function refreshOptions(options: RedisOptions, config: RedisConfig): void {
  try {
    Object.assign(options, addressOptions(config))
  } catch {
    // the values read before may still work
  }
}

/** Logs a trouble once when it begins, with where it is and what to do, and when it is over. */
function logTrouble(redis: Redis, logger: Logger, place: string): void {
  let lastLogged: string | undefined
  const nodes = new Set<string>()
  redis.on('error', (given: unknown) => {
    const error = unwrapNodeError(given)
    const [words, remedy] = describeTrouble(error)
    if (lastLogged !== words) logger.warn({ place, remedy, err: error }, words)
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

/** Calls `listener` with each reason why a connection fails, not with errors that follow it. */
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

/** The reason of the last node: a Cluster's own error says only that no node could be reached. */
function unwrapNodeError(error: unknown): unknown {
  const isOfNodes = error instanceof Error && 'lastNodeError' in error
  return isOfNodes && error.lastNodeError instanceof Error ? error.lastNodeError : error
}

function describeTrouble(error: unknown): [words: string, remedy: string] {
  return isSignInRefused(error)
    ? [
        'redis refuses the sign-in; waiting for a user and password that it takes',
        'set redis.username and redis.password_file to what Redis knows (ACL LIST)',
      ]
    : [
        'redis is not reachable; waiting',
        'start Redis or mend the address; nothing is lost meanwhile. tocsin doctor tries it step by step',
      ]
}

export function isSignInRefused(error: unknown): boolean {
  return /\b(NOAUTH|WRONGPASS|NOPERM)\b/.test(errorMessage(error))
}

/**
 * Jobs carry references only, and BullMQ forgets them however they end: the ledger is the truth,
 * and unfinished work is found there again.
 */
export const jobOptions = { removeOnComplete: true, removeOnFail: true } as const

export const queueSettings = { streams: { events: { maxLen: 1_000 } } } as const

/** `name` is in each job's hash (`pb`): it tells an operator which replica works on the job. */
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
