/**
 * A real Redis for tests: a container where a Docker engine answers, a private local server otherwise. Persistent as production demands (AOF), on a free port, gone afterwards.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'

export interface TestRedis {
  url: string
  port: number
  /** SIGKILL, as a crash; `restart` brings it back on the same port and data. Local servers only. */
  kill(): Promise<void>
  /** `settings`: more lines of its redis.conf. */
  restart(settings?: string[]): Promise<void>
  stop(): Promise<void>
}

export interface TestRedisOptions {
  /** More lines for redis.conf, e.g. ['maxmemory-policy allkeys-lru']; they win over the defaults. */
  settings?: string[]
  /** The test kills it: a local server, whatever else is there. */
  mayCrash?: boolean
}

const safeSettings = [
  'appendonly yes',
  'appendfsync everysec',
  'maxmemory-policy noeviction',
  'save ""',
]

export async function startRedis({
  settings = [],
  mayCrash = false,
}: TestRedisOptions = {}): Promise<TestRedis> {
  if (!mayCrash && settings.length === 0 && (await dockerAnswers())) return startContainer()
  return startLocal(settings)
}

function dockerAnswers(): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect('/var/run/docker.sock')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

async function startContainer(): Promise<TestRedis> {
  const { GenericContainer } = await import('testcontainers')
  const container = await new GenericContainer('redis:7')
    .withCommand(['redis-server', '--appendonly', 'yes'])
    .withExposedPorts(6379)
    .start()
  const port = container.getMappedPort(6379)
  return {
    url: `redis://${container.getHost()}:${port}`,
    port,
    kill: () => Promise.reject(new Error('kill needs a local redis-server')),
    restart: () => Promise.reject(new Error('restart needs a local redis-server')),
    stop: async () => void (await container.stop()),
  }
}

async function startLocal(settings: string[]): Promise<TestRedis> {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-redis-'))
  const lines = [`port ${port}`, ...settings]
  let server = await launchServer(folder, lines)
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    kill: () => endServer(server),
    async restart(changed = []) {
      await endServer(server)
      server = await launchServer(folder, [...lines, ...changed])
    },
    async stop() {
      await endServer(server)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A safe server with its data in `folder`, once it is ready. */
export async function launchServer(folder: string, settings: string[]): Promise<ChildProcess> {
  const lines = ['bind 127.0.0.1', `dir ${folder}`, ...safeSettings, ...settings]
  const child = spawn(findRedisServer(), ['-'], {
    argv0: 'redis-server',
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.end(`${lines.join('\n')}\n`)
  await saidLine(child, 'ready to accept connections')
  return child
}

/** A sentinel writes what it learns into `file`. */
export async function launchSentinel(file: string, settings: string[]): Promise<ChildProcess> {
  writeFileSync(file, `${settings.join('\n')}\n`)
  const child = spawn(findRedisServer(), [file, '--sentinel'], {
    argv0: 'redis-sentinel',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  await saidLine(child, '+monitor master')
  return child
}

async function saidLine(child: ChildProcess, line: string): Promise<void> {
  let seen = ''
  // what is wrong with its settings; a server that inherited ours would keep a reader of it waiting
  child.stderr!.on('data', (chunk) => (seen += String(chunk)))
  for await (const chunk of child.stdout!) {
    seen += String(chunk)
    if (seen.toLowerCase().includes(line)) break
    if (child.exitCode !== null) break
  }
  if (!seen.toLowerCase().includes(line)) throw new Error(`redis-server: ${seen}`)
}

/** As a crash. */
export async function endServer(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

/** Where the server is; it decides by the name under which it is started what it is. */
export function redisServerPath(): string {
  const folders = (process.env['PATH'] ?? '').split(':')
  const found = folders.map((folder) => join(folder, findRedisServer())).find(existsSync)
  if (found === undefined) throw new Error('no redis-server found on PATH')
  return found
}

/** Debian's redis-tools carries the server under the name redis-check-rdb. */
function findRedisServer(): string {
  for (const name of ['redis-server', 'valkey-server', 'redis-check-rdb']) {
    if (!spawnSync(name, ['--version'], { argv0: 'redis-server' }).error) return name
  }
  throw new Error('no redis-server found; npm run setup installs it or says how')
}
