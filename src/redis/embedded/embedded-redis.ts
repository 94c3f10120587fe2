/**
 * The private Redis of one machine, behind a socket in its folder. Every process that needs it joins
 * the one that runs, or starts it; whoever starts it ends it, and those that stay start it again.
 */
import { connect } from 'node:net'
import { join } from 'node:path'
import { systemClock } from '../../runtime/clock.ts'
import { messageOf } from '../../runtime/errors.ts'
import { dropLockFile, lockFileOf, takeLockFile } from '../../runtime/lock-file.ts'
import type { Logger } from '../../runtime/logger.ts'
import { isOwnSocket, troubleOfPrivateFolder } from '../../runtime/private-folder.ts'
import type { RedisConfig } from '../config.ts'
import { socketName } from '../connection-options.ts'
import { StoreError } from '../store-error.ts'
import { logName, startServerProcess, type ServerProcess } from './server-process.ts'

export interface HeldRedis {
  /** Ends it if it is ours. */
  release(): Promise<void>
}

interface Home {
  folder: string
  logger: Logger
  stopping: AbortSignal
  /** Where it was us who started it. */
  own: ServerProcess | undefined
}

const startPatienceMs = 15_000
const lookEveryMs = 500

/** Nothing to do for a Redis that others run. Throws StoreError. */
export async function holdRedis(
  { embedded: folder }: RedisConfig,
  logger: Logger,
): Promise<HeldRedis> {
  if (folder === undefined) return { release: () => Promise.resolve() }
  const stop = new AbortController()
  const home: Home = { folder, logger, stopping: stop.signal, own: undefined }
  await bringUp(home)
  const watching = keepUp(home)
  return {
    async release() {
      stop.abort()
      await watching
      await leave(home)
    },
  }
}

async function bringUp(home: Home): Promise<void> {
  try {
    await joinOrStart(home)
  } catch (error) {
    const isOfFolder = error instanceof Error && 'syscall' in error
    throw isOfFolder ? trouble(home.folder, `it cannot be used (${error.message})`) : error
  }
}

/** While another process starts it, waits for that. */
async function joinOrStart(home: Home): Promise<void> {
  const { folder, stopping } = home
  const isOpen = troubleOfPrivateFolder(folder)
  if (isOpen !== undefined) throw trouble(folder, isOpen)
  for (let waitedMs = 0; waitedMs < startPatienceMs; waitedMs += lookEveryMs) {
    if (stopping.aborted || (await isListening(folder))) return
    if (takeLockFile(lockOf(folder))) return start(home)
    await systemClock.sleep(lookEveryMs, stopping)
  }
  throw trouble(
    folder,
    `another process has begun to start it and it does not answer; end that one, or delete ${lockFileOf(lockOf(folder))} if there is none`,
  )
}

async function start(home: Home): Promise<void> {
  const { folder, logger, stopping } = home
  try {
    home.own = startServerProcess(folder, [
      'port 0',
      `unixsocket ${socketName}`,
      'unixsocketperm 700',
    ])
    await untilListening(home.own, home)
    logger.info({ folder }, 'embedded redis started')
  } catch (error) {
    await leave(home)
    dropLockFile(lockOf(folder)) // also where there was nothing to leave
    throw error
  }
  if (stopping.aborted) await leave(home)
}

async function untilListening(server: ServerProcess, { folder, stopping }: Home): Promise<void> {
  const either = AbortSignal.any([server.gone, stopping])
  for (let waitedMs = 0; waitedMs < startPatienceMs; waitedMs += 50) {
    if (await isListening(folder)) return
    if (either.aborted) break
    await systemClock.sleep(50, either)
  }
  if (!stopping.aborted) throw trouble(folder, `it did not start; see ${join(folder, logName)}`)
}

/** Starts it again when it has died, or when the process that had started it has ended. */
async function keepUp(home: Home): Promise<void> {
  const { folder, logger, stopping } = home
  let said = ''
  while (!stopping.aborted) {
    await systemClock.sleep(lookEveryMs, stopping)
    if (stopping.aborted || (await isListening(folder))) continue
    try {
      await leave(home)
      await bringUp(home)
      said = ''
    } catch (error) {
      const words = messageOf(error)
      if (words !== said) logger.error({ err: error }, 'the embedded redis is gone; trying again')
      said = words
    }
  }
}

async function leave(home: Home): Promise<void> {
  const { own, folder } = home
  home.own = undefined
  if (own === undefined) return
  await own.stop()
  dropLockFile(lockOf(folder))
}

async function isListening(folder: string): Promise<boolean> {
  const path = join(folder, socketName)
  if (!isOwnSocket(path)) return false
  return new Promise((resolve) => {
    const socket = connect(path)
    const answer = (isThere: boolean): void => {
      socket.destroy()
      resolve(isThere)
    }
    socket.once('connect', () => answer(true)).once('error', () => answer(false))
  })
}

function lockOf(folder: string): string {
  return join(folder, 'lock')
}

function trouble(folder: string, problem: string): StoreError {
  return new StoreError('unreachable', `redis.embedded: the Redis in ${folder}: ${problem}`)
}
