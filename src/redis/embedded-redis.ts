/**
 * The private Redis of one machine, behind a socket in its folder. A process that needs it joins
 * the running server or starts one. The process that started the server ends it when it exits; a
 * process that remains starts it again.
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
  openPrivateLog,
  replacePrivateFile,
  takeLockFile,
  checkPrivateFolder,
} from '../lib/config/private-files.ts'
import type { RedisConfig } from './config.ts'
import { socketName } from './connection-options.ts'
import { StoreError } from './health.ts'

export interface RedisHandle {
  /** Ends the server if this process started it. */
  release(): Promise<void>
}

interface Home {
  folder: string
  logger: Logger
  stopping: AbortSignal
  /** The server, if this process started it. */
  own: ServerProcess | undefined
}

const startPatienceMs = 15_000
const checkEveryMs = 500

/** Starts or joins the embedded Redis; does nothing if none is configured. Throws StoreError. */
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

/** Joins the server or starts it; waits while another process is starting it. */
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
    dropLockFile(lockPath(folder)) // stopOwn drops it only if a server process was started
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

/** Starts the server again when it has died, or when the process that started it has ended. */
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
 * this process, however that ends.
 */
interface ServerProcess {
  /** Aborts when the server has ended, by `stop` or by itself. */
  gone: AbortSignal
  stop(): Promise<void>
}

const logName = 'redis.log'

const stopPatienceMs = 5_000

/**
 * The shell replaces itself by the server, so that the server is our child. A background subshell
 * reads from a pipe: when our end closes, also because this process was killed, it ends the server.
 * A line through the pipe tells it that the server has ended already.
 */
const shellWrapper = `umask 077; exec 3<&0; (read -r _ <&3 || kill $$) & exec 3<&- "$0" redis.conf </dev/null`

/** The settings that `health.ts` demands: no eviction, durable storage. */
const safeSettings = [
  'appendonly yes',
  'appendfsync everysec',
  'maxmemory-policy noeviction',
  'save ""',
]

/**
 * Starts a server in `folder`; `listening` are the lines of its configuration that say where it
 * listens. Throws StoreError if no redis-server is installed.
 */
function startServerProcess(folder: string, listening: readonly string[]): ServerProcess {
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

/** `detached`: a session of its own, so that Ctrl-C at the terminal does not reach the server. */
function launch(folder: string): ChildProcess {
  const log = openPrivateLog(join(folder, logName))
  try {
    const child = spawn('/bin/sh', ['-c', shellWrapper, `./${linkName}`], {
      cwd: folder,
      detached: true,
      env: neededEnvironment(),
      stdio: ['pipe', log, log],
    })
    child.stdin?.on('error', () => {}) // the reading end may close first
    return child
  } finally {
    closeSync(log)
  }
}

/**
 * What a program needs to be found, to load its libraries and to write times and text. Nothing
 * else is passed on: the rest may hold secrets, which the system shows of each process.
 */
const neededVariables = /^(PATH|HOME|TZ|TZDIR|LANG|LC_\w+|(LD|DYLD)_LIBRARY_PATH)$/

function neededEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => neededVariables.test(name)),
  )
}

async function end(child: ChildProcess, gone: AbortSignal): Promise<void> {
  child.stdin?.end()
  await systemClock.sleep(stopPatienceMs, gone)
  if (gone.aborted) return
  child.kill('SIGKILL')
  await systemClock.sleep(stopPatienceMs, gone)
}

/** Debian's redis-tools has it as redis-check-rdb: the binary acts by the name it is called. */
const binaries = ['redis-server', 'valkey-server', 'redis-check-rdb']

const linkName = 'redis-server'

/** Links the program into the folder as `redis-server`. Throws StoreError if none is installed. */
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

/** The path of the first program that is installed. */
function findFirst(names: readonly string[]): string | undefined {
  const search = names.map((name) => `command -v ${name}`).join(' || ')
  const options = { encoding: 'utf8', env: neededEnvironment() } as const
  const found = spawnSync('/bin/sh', ['-c', search], options).stdout?.trim()
  return found === '' ? undefined : found
}
