/**
 * What every measurement stands on: a Redis, a sandbox and daemons from `dist`, each a process of its own on
 * loopback, gone when the bench ends, however it ends.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import type { Redis } from '../../src/redis/client.ts'
import { connectRedis } from '../../src/redis/connection.ts'
import { createLogger } from '../../src/lib/logger.ts'
import { secretFromText } from '../../src/lib/config/secret.ts'
import type { SandboxOptions } from '../../src/sandbox/options.ts'
import { buildProgram, type BuiltProgram } from '../support/built-program.ts'
import { startRedis } from '../support/redis.ts'
import type { SandboxCall, SandboxCalls, SandboxReply } from './sandbox-process.ts'

export const prefix = 'bench'

export interface Rig {
  readonly redis: Redis
  /** Another sandbox than the one before, which ends. */
  startSandbox(options?: SandboxOptions): Promise<SandboxProcess>
  /** `config`: the file, of which Redis, prefix and port are filled in. Throws with the last lines of its log. */
  startDaemon(config: object): Promise<Daemon>
  /** Kills those that a measurement which failed has left. */
  endDaemons(): Promise<void>
}

export interface SandboxProcess {
  readonly url: string
  readonly webhookSecret: string
  call: <Name extends keyof SandboxCalls>(
    name: Name,
    ...args: Parameters<SandboxCalls[Name]>
  ) => Promise<Awaited<ReturnType<SandboxCalls[Name]>>>
  close(): Promise<void>
}

export interface Daemon {
  /** Of its page and metrics. */
  readonly url: string
  /** From the start of the process until it polls and delivers. */
  readonly startSeconds: number
  use(): Promise<ProcessUse>
  /** Seconds that one scrape takes, and what it says. */
  scrape(): Promise<{ seconds: number; body: string }>
  /** SIGTERM; the seconds until the process is gone. */
  stop(): Promise<number>
}

export interface ProcessUse {
  /** User and system time so far. */
  cpuSeconds: number
  rssBytes: number
}

/** Runs `work` on a rig; whatever becomes of it, or once `stop` aborts, nothing of the rig is left. */
export async function withRig<T>(
  stop: AbortSignal,
  work: (rig: Rig) => Promise<T>,
): Promise<T | 'stopped'> {
  const parts = new AsyncDisposableStack()
  const stopped = new Promise<'stopped'>((resolve) => {
    stop.addEventListener('abort', () => resolve('stopped'), { once: true })
  })
  try {
    const rig = await buildRig(parts)
    return stop.aborted ? 'stopped' : await Promise.race([work(rig), stopped])
  } finally {
    await parts.disposeAsync()
  }
}

async function buildRig(parts: AsyncDisposableStack): Promise<Rig> {
  const server = parts.adopt(await startRedis(), (one) => one.stop())
  const address = { url: secretFromText(server.url), prefix, allowUnsafe: false }
  const connected = connectRedis(address, createLogger({ level: 'silent' }))
  const redis = parts.adopt(connected, (one) => one.disconnect())
  const built = parts.adopt(buildProgram(), (one) => one.remove())
  // a rewrite of the file in the middle of one measurement would be in none of the others
  await redis.config('SET', 'auto-aof-rewrite-percentage', '0')
  const daemons = parts.adopt(new Set<ChildProcess>(), killAll)
  const sandboxes = parts.adopt(new Set<ChildProcess>(), killAll)
  let sandbox: SandboxProcess | undefined
  let files = 0

  function writeConfig(config: object): string {
    const file = join(built.folder, `config-${(files += 1)}.yaml`)
    const whole = { redis: { url: server.url, prefix }, http: { port: 0 }, ...config }
    writeFileSync(file, JSON.stringify(whole))
    return file
  }

  return {
    redis,
    async startSandbox(options = {}) {
      await sandbox?.close()
      sandbox = await startSandboxProcess(sandboxes, options)
      return sandbox
    },
    startDaemon: (config) => startDaemon(daemons, built, writeConfig(config)),
    endDaemons: () => killAll(daemons),
  }
}

/** As an operator starts it: what a test has compiled before makes no start faster. */
const env = { ...process.env, NODE_COMPILE_CACHE: undefined }

async function killAll(children: Set<ChildProcess>): Promise<void> {
  await Promise.all(
    [...children].map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    }),
  )
  children.clear()
}

async function startSandboxProcess(
  children: Set<ChildProcess>,
  options: SandboxOptions,
): Promise<SandboxProcess> {
  const entry = new URL('./sandbox-process.ts', import.meta.url)
  // execArgv: a profiler of the bench is none of the sandbox
  const child = fork(entry, { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  children.add(child)
  const gone = once(child, 'exit')
  let last: Promise<unknown> = Promise.resolve()

  async function ask(call: SandboxCall): Promise<unknown> {
    child.send(call)
    const answered = once(child, 'message') as Promise<[SandboxReply]>
    const ended = gone.then(() => Promise.reject(new Error('the sandbox process ended by itself')))
    const [reply] = await Promise.race([answered, ended])
    if ('error' in reply) throw new Error(`the sandbox: ${reply.error}`)
    return reply.value
  }

  const call = ((name, ...args) => {
    const asked = last.then(() => ask({ name, args }))
    last = asked.catch(() => undefined)
    return asked
  }) as SandboxProcess['call']

  const places = await call('start', options)
  return {
    ...places,
    call,
    async close() {
      if (child.connected) child.disconnect()
      await gone
      children.delete(child)
    },
  }
}

/** As the image and the unit start Node. */
const heapFlags = ['--max-semi-space-size=16', '--heap-growing-percent=40']

/** A start that takes longer has failed. */
const startPatienceMs = 120_000

async function startDaemon(
  children: Set<ChildProcess>,
  { main }: BuiltProgram,
  config: string,
): Promise<Daemon> {
  const beganMs = performance.now()
  const child = fork(main, ['run', '--config', config], {
    execArgv: [...heapFlags, '--import', join(import.meta.dirname, 'probe.ts')],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env,
  })
  children.add(child)
  const gone = once(child, 'exit')
  const port = await untilRunning(child)
  const startSeconds = (performance.now() - beganMs) / 1000
  return {
    url: `http://127.0.0.1:${port}`,
    startSeconds,
    async use() {
      const answered = once(child, 'message') as Promise<
        [{ cpu: NodeJS.CpuUsage; rssBytes: number }]
      >
      child.send('use')
      const [{ cpu, rssBytes }] = await answered
      return { cpuSeconds: (cpu.user + cpu.system) / 1e6, rssBytes }
    },
    async scrape() {
      const askedMs = performance.now()
      const answer = await fetch(`http://127.0.0.1:${port}/metrics`)
      const body = await answer.text()
      return { seconds: (performance.now() - askedMs) / 1000, body }
    },
    async stop() {
      const askedMs = performance.now()
      child.kill('SIGTERM')
      await gone
      children.delete(child)
      return (performance.now() - askedMs) / 1000
    },
  }
}

/** The port of its metrics, once it polls and delivers; its log is read for as long as it runs. */
async function untilRunning(child: ChildProcess): Promise<number> {
  const errors = text(child.stderr!)
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const last: string[] = []
  let port = 0
  createInterface({ input: child.stdout! }).on('line', (line) => {
    last.push(line)
    if (last.length > 5) last.shift()
    if (line.includes('"msg":"http server listens"')) port = Number(/"port":(\d+)/.exec(line)?.[1])
    if (line.includes('"msg":"tocsin runs"')) resolve(port)
  })
  child.once('exit', (code) => {
    void errors.then((said) =>
      reject(new Error(`the daemon ended (${code}): ${said}${last.join('\n')}`)),
    )
  })
  const timer = setTimeout(() => reject(new Error('the daemon does not run')), startPatienceMs)
  return promise.finally(() => clearTimeout(timer))
}

/** A webhook sink of the sandbox; each name has a path of its own. */
export function webhookSink(sandbox: SandboxProcess, name: string, more: object = {}): object {
  const { url, webhookSecret: secret } = sandbox
  return { type: 'webhook', url: `${url}/hooks/${name}`, secret, allow_private: true, ...more }
}

export interface RedisUse {
  cpuSeconds: number
  /** Those of the bench itself are not counted. */
  connections: number
  /** With those that scripts call. */
  commands: number
  scripts: number
}

export async function redisUse(redis: Redis): Promise<RedisUse> {
  const info = await readInfo(redis, 'everything')
  const calls = [...info.text.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)].map(
    ([, command = '', count]) => ({ command, count: Number(count) }),
  )
  const sum = (holds: (command: string) => boolean): number =>
    calls.reduce((total, { command, count }) => total + (holds(command) ? count : 0), 0)
  return {
    cpuSeconds: info.number('used_cpu_user') + info.number('used_cpu_sys'),
    connections: info.number('connected_clients') - 1,
    commands: sum(() => true),
    scripts: sum((command) => /^(evalsha|eval|fcall)(_ro)?$/.test(command)),
  }
}

export async function redisVersion(redis: Redis): Promise<string> {
  const { text: answer } = await readInfo(redis, 'server')
  return /^redis_version:(\S+)/m.exec(answer)?.[1] ?? ''
}

/** Bytes that the data takes: without the buffers of clients and of the append-only file. */
export async function dataBytes(redis: Redis): Promise<number> {
  const { number } = await readInfo(redis, 'memory')
  return number('used_memory') - number('mem_clients_normal') - number('mem_aof_buffer')
}

async function readInfo(
  redis: Redis,
  section: string,
): Promise<{ text: string; number: (field: string) => number }> {
  const answer = await redis.info(section)
  return {
    text: answer,
    number(field) {
      const value = new RegExp(`^${field}:(.*?)\r?$`, 'm').exec(answer)?.[1]
      if (value === undefined) throw new Error(`INFO of this Redis has no ${field}`)
      return Number(value)
    },
  }
}
