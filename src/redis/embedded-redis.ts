/**
 * The private Redis of one machine, behind a socket in its folder. A process that needs it joins
 * the running server or starts one. The process that started the server ends it when it exits; a
 * process that remains starts it again.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { systemClock } from '../lib/clock.ts'
import { errorMessage, quoteForShell } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
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
  /** Lets another process start it; undefined: this one may not. */
  unlock: (() => void) | undefined
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
  const home: Home = { folder, logger, stopping: stop.signal, own: undefined, unlock: undefined }
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
  const exposure = openPrivateFolder(folder)
  if (exposure !== undefined) throw folderError(folder, exposure)
  for (let waitedMs = 0; waitedMs < startPatienceMs; waitedMs += checkEveryMs) {
    if (stopping.aborted || (await isListening(folder))) return
    home.unlock = await takeLock(folder)
    if (home.unlock !== undefined) return start(home)
    await systemClock.sleep(checkEveryMs, stopping)
  }
  throw folderError(folder, 'the process that started it does not answer; end that one')
}

async function start(home: Home): Promise<void> {
  const { folder, logger, stopping } = home
  try {
    home.own = startServerProcess(folder)
    await untilListening(home.own, home)
    logger.info({ folder }, 'embedded redis started')
  } catch (error) {
    await stopOwn(home)
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
  await home.own?.stop()
  home.own = undefined
  home.unlock?.()
  home.unlock = undefined
}

/**
 * Takes the lock of a folder, which the system frees when this process ends. Returns a function that
 * frees it; undefined: another process has it. Throws StoreError.
 */
async function takeLock(folder: string): Promise<(() => void) | undefined> {
  const { DatabaseSync } = await import('node:sqlite') // needed here alone
  try {
    const database = new DatabaseSync(join(folder, 'lock'))
    try {
      database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
      return () => database.close()
    } catch (error) {
      database.close()
      throw error
    }
  } catch (error) {
    if (error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy) return
    throw folderError(folder, `its lock cannot be taken (${errorMessage(error)})`)
  }
}

const sqliteBusy = 5

async function isListening(folder: string): Promise<boolean> {
  const path = join(folder, socketName)
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat?.isSocket() !== true || !isOwn(stat)) return false
  return new Promise((resolve) => {
    const socket = connect(path)
    const answer = (isThere: boolean): void => {
      socket.destroy()
      resolve(isThere)
    }
    socket.once('connect', () => answer(true)).once('error', () => answer(false))
  })
}

/**
 * Creates the folder if it is missing. Returns why others may put another server into it; undefined:
 * they may not.
 */
function openPrivateFolder(folder: string): string | undefined {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const stat = lstatSync(folder)
  if (stat.isSymbolicLink()) return 'it is a symbolic link; name the folder itself'
  if (!isOwn(stat)) {
    return `it belongs to user ${stat.uid}, and this is user ${process.getuid?.()}; name a folder of your own`
  }
  if ((stat.mode & 0o077) === 0) return undefined
  const mode = (stat.mode & 0o777).toString(8)
  return `others may enter it (mode ${mode}); run: chmod 700 ${quoteForShell(folder)}`
}

function isOwn({ uid }: { uid: number }): boolean {
  return uid === (process.getuid?.() ?? uid)
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

/** It tells why a former server ended. */
const logName = 'redis.log'
const maxLogBytes = 2 ** 20

const stopPatienceMs = 5_000

/**
 * The shell replaces itself by the server, so that the server is our child. A background subshell
 * reads from a pipe: when our end closes, also because this process was killed, it ends the server.
 * A line through the pipe tells it that the server has ended already.
 */
const shellWrapper = `umask 077; exec 3<&0; (read -r _ <&3 || kill $$) & exec 3<&- "$0" redis.conf </dev/null`

/** A socket alone, and what `health.ts` demands: no eviction, durable storage. */
const settings = `port 0
unixsocket ${socketName}
unixsocketperm 700
appendonly yes
appendfsync everysec
maxmemory-policy noeviction
save ""
`

/** Starts a server in `folder`. Throws StoreError if no redis-server is installed. */
function startServerProcess(folder: string): ServerProcess {
  linkServer(folder)
  writeFileSync(join(folder, 'redis.conf'), settings)
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
  const log = openSync(join(folder, logName), 'a', 0o600)
  try {
    if (fstatSync(log).size > maxLogBytes) ftruncateSync(log)
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
  const search = binaries.map((name) => `command -v ${name}`).join(' || ')
  const options = { encoding: 'utf8', env: neededEnvironment() } as const
  const program = spawnSync('/bin/sh', ['-c', search], options).stdout?.trim()
  if (!program)
    throw new StoreError('unreachable', 'there is no redis-server; install Redis 7 or Valkey')
  const link = join(folder, linkName)
  rmSync(link, { force: true })
  symlinkSync(program, link)
}
