/**
 * A private, persistent Redis: a child of this process that listens on loopback, asks for a password,
 * keeps its data in one folder, and never outlives whoever started it, however that one ends.
 */
import { once } from 'node:events'
import { join } from 'node:path'
import { connectRedis, type Redis } from '../../redis/connection.ts'
import { logName, startServerProcess } from '../../redis/embedded/server-process.ts'
import { signalWithin, systemClock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { secretFromText } from '../../runtime/secret.ts'
import { CommandError } from '../command-error.ts'
import { quiet } from '../context.ts'

export interface PrivateRedis {
  /** Holds the password. */
  url: string
  /** A connection of the starter's own. */
  client: Redis
  /** Aborts when the server is gone, wanted or not. */
  gone: AbortSignal
  stop(): Promise<void>
}

export interface PrivateRedisOptions {
  /** Where data, log and configuration of the server lie; made where it is missing. */
  folder: string
  port: number
  /** Letters and digits. */
  password: string
  logger: Logger
}

const startPatienceMs = 15_000
const stopPatienceMs = 5_000
const leftoverPatienceMs = 1_000

/** Throws StoreError where there is no such program, CommandError where it does not come up. */
export async function startPrivateRedis(options: PrivateRedisOptions): Promise<PrivateRedis> {
  const { folder, port, password } = options
  const listening = ['bind 127.0.0.1', `port ${port}`, `requirepass ${password}`]
  const server = startServerProcess(folder, listening)
  const client = connect(options)
  const stop = async (): Promise<void> => {
    client.disconnect()
    await server.stop()
  }
  if (!(await isReady(client, signalWithin(startPatienceMs, server.gone)))) {
    await stop()
    const log = join(folder, logName)
    throw new CommandError('refused', `the private Redis did not start; see ${log}`)
  }
  return { url: urlOf(port, password), client, gone: server.gone, stop }
}

/**
 * Ends a server that an earlier run left on the port, waits until it is gone, and does nothing where
 * there is none. Only a server that takes our password is ours.
 */
export async function endLeftoverRedis(options: PrivateRedisOptions): Promise<void> {
  const client = connect(options)
  const refused = new AbortController()
  client.once('error', () => refused.abort())
  try {
    if (!(await isReady(client, signalWithin(leftoverPatienceMs, refused.signal)))) return
    const closed = once(client, 'close', { signal: signalWithin(stopPatienceMs) })
    client.call('SHUTDOWN').catch(() => {})
    await closed
    options.logger.warn('ended a redis-server that an earlier run had left')
  } finally {
    client.disconnect()
  }
}

function connect({ port, password }: PrivateRedisOptions): Redis {
  const config = { url: secretFromText(urlOf(port, password)), prefix: '', allowUnsafe: false }
  return connectRedis(config, quiet)
}

/** Whether a connection came to be before `signal` aborted; refusals on the way do not count. */
async function isReady(client: Redis, signal: AbortSignal): Promise<boolean> {
  const ready = new AbortController()
  client.once('ready', () => ready.abort())
  await systemClock.sleep(Infinity, AbortSignal.any([ready.signal, signal]))
  return client.status === 'ready'
}

function urlOf(port: number, password: string): string {
  return `redis://:${password}@127.0.0.1:${port}`
}
