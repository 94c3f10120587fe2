/**
 * What every measurement stands on: a Redis, a sandbox and daemons from `dist`, each a process of its own on
 * loopback, gone when the bench ends, however it ends.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process'
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
import { type CalledProcess, type ProcessUse, startCalled } from './called-process.ts'
import type { PipelineCalls, PipelineOptions } from './pipeline.ts'
import type { ReceiverCalls } from './receiver.ts'
import type { SandboxCalls } from './sandbox-process.ts'

export const prefix = 'bench'

export interface Rig {
  readonly redis: Redis
  /** For files; gone with the rig. */
  readonly folder: string
  /** Another sandbox than the one before, which ends. */
  startSandbox(options?: SandboxOptions): Promise<SandboxProcess>
  startReceiver(): Promise<ReceiverProcess>
  startPipeline(options: Omit<PipelineOptions, 'redisUrl'>): Promise<CalledProcess<PipelineCalls>>
  /** `config`: the file, of which Redis, prefix and port are filled in. Throws with the last lines of its log. */
  startDaemon(config: object): Promise<Daemon>
  /** Runs a command of the built program; the seconds until it ends. Throws where it prints an error. */
  runCommand(config: object, ...args: string[]): Promise<number>
  /** A program of this machine. */
  startProgram(name: string, args: string[]): ChildProcess
  /** Kills what a measurement that failed has left. */
  endProcesses(): Promise<void>
}

/** Where it gets webhooks. */
export interface Hook {
  readonly url: string
  readonly webhookSecret: string
}

export type SandboxProcess = CalledProcess<SandboxCalls> & Hook
export type ReceiverProcess = CalledProcess<ReceiverCalls> & Hook

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
  const children = parts.adopt(new Set<ChildProcess>(), killAll)
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
    folder: built.folder,
    async startSandbox(options = {}) {
      await sandbox?.close()
      const started = startCalled<SandboxCalls>(children, './sandbox-process.ts')
      sandbox = { ...started, ...(await started.call('start', options)) }
      return sandbox
    },
    async startReceiver() {
      const started = startCalled<ReceiverCalls>(children, './receiver.ts')
      return { ...started, ...(await started.call('start')) }
    },
    async startPipeline(options) {
      const started = startCalled<PipelineCalls>(children, './pipeline.ts', heapFlags)
      await started.call('start', { ...options, redisUrl: server.url })
      return started
    },
    startDaemon: (config) => startDaemon(children, built, writeConfig(config)),
    runCommand: (config, ...args) =>
      runCommand(children, built, [...args, '--config', writeConfig(config)]),
    startProgram(name, args) {
      const child = spawn(name, args, { stdio: ['ignore', 'ignore', 'inherit'] })
      children.add(child)
      return child
    },
    endProcesses: () => killAll(children),
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
    execArgv: [...heapFlags, '--import', join(import.meta.dirname, 'probe.mjs')],
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
      const answered = once(child, 'message') as Promise<[ProcessUse]>
      child.send('use')
      return (await answered)[0]
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

async function runCommand(
  children: Set<ChildProcess>,
  { main }: BuiltProgram,
  args: string[],
): Promise<number> {
  const beganMs = performance.now()
  const child = spawn(process.execPath, [main, ...args], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  children.add(child)
  const errors = await text(child.stderr)
  children.delete(child)
  // not its code: `status` exits 2 where no daemon runs
  if (errors !== '') throw new Error(`${args.join(' ')}: ${errors}`)
  return (performance.now() - beganMs) / 1000
}

/** The port of its metrics, once it polls and delivers. What it logs later is let go, unread. */
async function untilRunning(child: ChildProcess): Promise<number> {
  const errors = text(child.stderr!)
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const last: string[] = []
  let port = 0
  const lines = createInterface({ input: child.stdout! }).on('line', (line) => {
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
  return promise.finally(() => {
    clearTimeout(timer)
    lines.close()
    child.stdout!.resume()
  })
}

/** A webhook sink; each name has a path of its own. */
export function webhookSink(hook: Hook, name: string, more: object = {}): object {
  const { url, webhookSecret: secret } = hook
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
