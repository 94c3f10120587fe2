/**
 * The private Redis of one machine, behind a socket in its folder. Every process that needs it joins
 * the one that runs, or starts it; whoever starts it ends it, and those that stay start it again.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { systemClock } from '../lib/clock.ts'
import { errorMessage } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import {
  dropLockFile,
  isOwnSocket,
  findLockFile,
  openPrivateFile,
  replacePrivateFile,
  takeLockFile,
  checkPrivateFolder,
} from '../lib/private-files.ts'
import type { RedisConfig } from './config.ts'
import { socketName } from './connection-options.ts'
import { StoreError } from './health.ts'

export interface RedisHandle {
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
const checkEveryMs = 500

/** Nothing to do for a Redis that others run. Throws StoreError. */
export async function ensureRedis(
  { embedded: folder }: RedisConfig,
  logger: Logger,
): Promise<RedisHandle> {
  if (folder === undefined) return { release: () => Promise.resolve() }
  const stop = new AbortController()
  const home: Home = { folder, logger, stopping: stop.signal, own: undefined }
  await bringUp(home)
  const watching = keepRunning(home)
  return {
    async release() {
      stop.abort()
      await watching
      await stopOwn(home)
    },
  }
}

async function bringUp(home: Home): Promise<void> {
  try {
    await joinOrStart(home)
  } catch (error) {
    const isFileError = error instanceof Error && 'syscall' in error
    throw isFileError ? folderError(home.folder, `it cannot be used (${error.message})`) : error
  }
}

/** While another process starts it, waits for that. */
async function joinOrStart(home: Home): Promise<void> {
  const { folder, stopping } = home
  const isOpen = checkPrivateFolder(folder)
  if (isOpen !== undefined) throw folderError(folder, isOpen)
  for (let waitedMs = 0; waitedMs < startPatienceMs; waitedMs += checkEveryMs) {
    if (stopping.aborted || (await isListening(folder))) return
    if (takeLockFile(lockPath(folder))) return start(home)
    await systemClock.sleep(checkEveryMs, stopping)
  }
  throw folderError(
    folder,
    `another process has begun to start it and it does not answer; end that one, or delete ${findLockFile(lockPath(folder))} if there is none`,
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
    await stopOwn(home)
    dropLockFile(lockPath(folder)) // also where there was nothing to leave
    throw error
  }
  if (stopping.aborted) await stopOwn(home)
}

async function untilListening(server: ServerProcess, { folder, stopping }: Home): Promise<void> {
  const either = AbortSignal.any([server.gone, stopping])
  for (let waitedMs = 0; waitedMs < startPatienceMs; waitedMs += 50) {
    if (await isListening(folder)) return
    if (either.aborted) break
    await systemClock.sleep(50, either)
  }
  if (!stopping.aborted) throw folderError(folder, `it did not start; see ${join(folder, logName)}`)
}

/** Starts it again when it has died, or when the process that had started it has ended. */
async function keepRunning(home: Home): Promise<void> {
  const { folder, logger, stopping } = home
  let lastLogged = ''
  while (!stopping.aborted) {
    await systemClock.sleep(checkEveryMs, stopping)
    if (stopping.aborted || (await isListening(folder))) continue
    try {
      await stopOwn(home)
      await bringUp(home)
      lastLogged = ''
    } catch (error) {
      const words = errorMessage(error)
      if (words !== lastLogged)
        logger.error({ err: error }, 'the embedded redis is gone; trying again')
      lastLogged = words
    }
  }
}

async function stopOwn(home: Home): Promise<void> {
  const { own, folder } = home
  home.own = undefined
  if (own === undefined) return
  await own.stop()
  dropLockFile(lockPath(folder))
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

function lockPath(folder: string): string {
  return join(folder, 'lock')
}

function folderError(folder: string, problem: string): StoreError {
  return new StoreError('unreachable', `redis.embedded: the Redis in ${folder}: ${problem}`)
}

/**
 * A redis-server as a child of this process. It keeps its data in one folder and never outlives
 * whoever started it, however that one ends.
 */

interface ServerProcess {
  /** Aborts when the server is gone, wanted or not. */
  gone: AbortSignal
  stop(): Promise<void>
}

export const logName = 'redis.log'

const stopPatienceMs = 5_000

/**
 * The server takes the place of the shell, so that it is our child. Beside it waits a line of shell
 * for our end of the pipe: when that closes, also because we were killed, it ends the server; a line
 * that comes through instead says that the server is gone already.
 */
const shellWrapper = `umask 077; exec 3<&0; (read -r _ <&3 || kill $$) & exec 3<&- "$0" redis.conf </dev/null`

/** What Tocsin asks of a Redis: it neither evicts nor forgets. */
const safeSettings = [
  'appendonly yes',
  'appendfsync everysec',
  'maxmemory-policy noeviction',
  'save ""',
]

/**
 * `listening`: the lines of its configuration that say where it listens. Throws StoreError where there
 * is no such program.
 */
export function startServerProcess(folder: string, listening: readonly string[]): ServerProcess {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  linkServer(folder)
  replacePrivateFile(join(folder, 'redis.conf'), [...listening, ...safeSettings, ''].join('\n'))
  const child = launch(folder)
  const gone = new AbortController()
  child.once('error', () => gone.abort())
  child.once('exit', () => {
    gone.abort()
    if (!child.stdin?.writableEnded) child.stdin?.end('\n')
  })
  return { gone: gone.signal, stop: () => end(child, gone.signal) }
}

/** Of a session of its own: a Ctrl-C at the terminal is not for the server. */
function launch(folder: string): ChildProcess {
  const log = openPrivateFile(join(folder, logName))
  try {
    const child = spawn('/bin/sh', ['-c', shellWrapper, `./${linkName}`], {
      cwd: folder,
      detached: true,
      stdio: ['pipe', log, log],
    })
    child.stdin?.on('error', () => {}) // the reader went first
    return child
  } finally {
    closeSync(log)
  }
}

async function end(child: ChildProcess, gone: AbortSignal): Promise<void> {
  child.stdin?.end()
  await systemClock.sleep(stopPatienceMs, gone)
  if (gone.aborted) return
  child.kill('SIGKILL')
  await systemClock.sleep(stopPatienceMs, gone)
}

/** Debian's redis-tools carries the server as redis-check-rdb: it goes by the name it is called by. */
const binaries = ['redis-server', 'valkey-server', 'redis-check-rdb']

const linkName = 'redis-server'

/** Puts the server into the folder under its own name; throws StoreError where there is none. */
function linkServer(folder: string): void {
  const program = findFirst(binaries)
  if (program === undefined)
    throw new StoreError('unreachable', `no redis-server: ${installLine()}`)
  const link = join(folder, linkName)
  rmSync(link, { force: true })
  symlinkSync(program, link)
}

const installers = [
  ['apt-get', 'sudo apt-get install -y redis-tools'],
  ['dnf', 'sudo dnf install -y redis'],
  ['apk', 'sudo apk add redis'],
  ['brew', 'brew install redis'],
] as const

function installLine(): string {
  const known = installers.find(([name]) => findFirst([name]) !== undefined)
  const line = known?.[1] ?? 'install Redis 7 or Valkey with your package manager'
  return `run this once, then try again: ${line}`
}

/** The path of the first of the programs that there is. */
function findFirst(names: readonly string[]): string | undefined {
  const search = names.map((name) => `command -v ${name}`).join(' || ')
  const found = spawnSync('/bin/sh', ['-c', search], { encoding: 'utf8' }).stdout?.trim()
  return found === '' ? undefined : found
}
