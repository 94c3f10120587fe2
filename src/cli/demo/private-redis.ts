/**
 * A private, persistent Redis: a child of this process that listens on loopback, asks for a password,
 * keeps its data in one folder, and never outlives whoever started it, however that one ends.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connectRedis, type Redis } from '../../redis/connection.ts'
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

/**
 * The server takes the place of the shell, so that it is our child. Beside it waits a line of shell
 * for our end of the pipe: when that closes, also because we were killed, it ends the server; a line
 * that comes through instead says that the server is gone already.
 */
const warded = 'exec 3<&0; (read -r _ <&3 || kill $$) & exec 3<&- "$0" redis.conf </dev/null'

/** Throws CommandError where there is no binary, or where the server does not come up. */
export async function startPrivateRedis(options: PrivateRedisOptions): Promise<PrivateRedis> {
  const { folder, port, password } = options
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  linkServer(folder)
  writeFileSync(join(folder, 'redis.conf'), settingsOf(options), { mode: 0o600 })
  const child = launch(folder)
  const gone = new AbortController()
  child.once('error', () => gone.abort())
  child.once('exit', () => {
    gone.abort()
    if (!child.stdin?.writableEnded) child.stdin?.end('\n')
  })
  const client = connect(options)
  const stop = async (): Promise<void> => {
    client.disconnect()
    await end(child, gone.signal)
  }
  if (!(await isReady(client, signalWithin(startPatienceMs, gone.signal)))) {
    await stop()
    const log = join(folder, 'redis.log')
    throw new CommandError('refused', `the private Redis did not start; see ${log}`)
  }
  return { url: urlOf(port, password), client, gone: gone.signal, stop }
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

/** What Tocsin asks of a Redis: it neither evicts nor forgets. */
function settingsOf({ port, password }: PrivateRedisOptions): string {
  return [
    'bind 127.0.0.1',
    `port ${port}`,
    `requirepass ${password}`,
    'appendonly yes',
    'appendfsync everysec',
    'maxmemory-policy noeviction',
    'save ""',
    '',
  ].join('\n')
}

/** Of a session of its own: a Ctrl-C at the terminal is not for the server. */
function launch(folder: string): ChildProcess {
  const log = openSync(join(folder, 'redis.log'), 'w', 0o600)
  try {
    const child = spawn('sh', ['-c', warded, './redis-server'], {
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

function linkServer(folder: string): void {
  const found = findFirst(binaries)
  if (found === undefined) throw new CommandError('refused', `no redis-server: ${installLine()}`)
  const link = join(folder, 'redis-server')
  rmSync(link, { force: true })
  symlinkSync(found, link)
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
  const found = spawnSync('sh', ['-c', search], { encoding: 'utf8' }).stdout?.trim()
  return found === '' ? undefined : found
}
