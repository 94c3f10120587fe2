/** Replicas of the daemon as processes of their own: killed, restarted, frozen, blocked, reconfigured. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../support/until.ts'
import { setup as compileOnce } from '../../support/compile-once.ts'

export interface Fleet {
  readonly size: number
  /** Those that poll and deliver just now. */
  running(): number[]
  /** SIGKILL, and another in its place; the id of the process that was killed. */
  kill(index: number): Promise<number>
  /** SIGTERM, and another in its place. */
  restart(index: number): Promise<void>
  /** SIGSTOP, and after so long SIGCONT. */
  freeze(index: number, ms: number): Promise<void>
  /** Blocks the event loop for `blockMs`; resolves when it is over. */
  block(index: number): Promise<void>
  /** One after the other is restarted with this configuration. */
  roll(yaml: string): Promise<void>
  /** Those that took longer than ten seconds to go after SIGTERM. */
  lateExits(): number
  /** Those that ran, and ended although nobody asked them to. */
  crashes(): number
  stop(): Promise<void>
}

export interface FleetOptions {
  yaml: string
  size: number
  blockMs: number
  /** Where the replicas log to. */
  log?: string | undefined
}

/** Promised: after SIGTERM a process is gone within ten seconds; a busy machine notices late. */
const exitMs = 15_000

/** A start takes a second; it waits for as long as Redis is away. */
const startMs = 120_000

export function startFleet({ yaml, size, blockMs, log = '/dev/null' }: FleetOptions): Fleet {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-fleet-'))
  const config = join(folder, 'tocsin.yaml')
  writeFileSync(config, yaml)
  const output = openSync(log, 'a')
  // a fleet starts hundreds of processes: what they run is compiled once
  process.env['NODE_COMPILE_CACHE'] ??= join(root, 'node_modules/.cache/tocsin-tests')
  compileOnce()
  const launch = (): Replica => launchReplica({ config, output, blockMs, onCrash })
  let late = 0
  let isStopped = false
  let crashes = 0
  function onCrash(): void {
    crashes += 1
  }
  const replicas = Array.from({ length: size }, launch)
  const turns = replicas.map(() => Promise.resolve())
  const at = (index: number): Replica => replicas[index]!

  /** What is done to one replica is done one after the other: lanes run side by side. */
  function inTurn<T>(index: number, act: () => Promise<T>): Promise<T> {
    const done = turns[index]!.then(act)
    turns[index] = done.then(
      () => undefined,
      () => undefined,
    )
    return done
  }

  const restart = (index: number): Promise<void> =>
    inTurn(index, async () => {
      if ((await at(index).end('SIGTERM')) > exitMs) late += 1
      replicas[index] = launch()
    })

  return {
    size,
    running: () => replicas.flatMap((replica, i) => (replica.runs() ? [i] : [])),
    kill: (index) =>
      inTurn(index, async () => {
        const killed = at(index).pid()
        await at(index).end('SIGKILL')
        replicas[index] = launch()
        return killed
      }),
    restart,
    freeze: (index, ms) =>
      inTurn(index, async () => {
        at(index).signal('SIGSTOP')
        await sleep(ms)
        at(index).signal('SIGCONT')
      }),
    block: (index) =>
      inTurn(index, async () => {
        // one that is starting has not yet learnt the signal: it would end it
        await until('the replica runs', () => at(index).runs(), startMs)
        at(index).signal('SIGUSR2')
        await sleep(blockMs)
      }),
    async roll(next) {
      writeFileSync(config, next)
      for (let index = 0; index < size; index += 1) {
        await restart(index)
        await sleep(1_500)
      }
    },
    lateExits: () => late,
    crashes: () => crashes,
    async stop() {
      if (isStopped) return
      isStopped = true
      const took = await Promise.all(replicas.map((replica) => replica.end('SIGTERM')))
      late += took.filter((ms) => ms > exitMs).length
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

interface Replica {
  pid(): number
  runs(): boolean
  signal(name: 'SIGSTOP' | 'SIGCONT' | 'SIGUSR2'): void
  /** How long it took to go, ms. */
  end(name: 'SIGKILL' | 'SIGTERM'): Promise<number>
}

interface LaunchOptions {
  config: string
  output: number
  blockMs: number
  onCrash: () => void
}

const root = join(import.meta.dirname, '../../..')
const main = join(root, 'src/main.ts')
const blockable = join(import.meta.dirname, 'blockable.ts')

/** As whatever keeps a daemon running does: one that Redis refused at its start is started again. */
function launchReplica(options: LaunchOptions): Replica {
  let isAsked = false
  let runs = false
  let child = launch()
  let gone = once(child, 'exit')

  function launch(): ChildProcess {
    runs = false
    const started = spawnReplica(options, () => (runs = true))
    void once(started, 'exit').then(async ([code]) => {
      if (isAsked) return
      if (runs || code !== 1) return options.onCrash()
      await sleep(500)
      if (isAsked) return
      child = launch()
      gone = once(child, 'exit')
    })
    return started
  }

  return {
    pid: () => child.pid ?? 0,
    runs: () => runs && isRunning(child),
    signal: (name) => void (isRunning(child) && child.kill(name)),
    async end(name) {
      isAsked = true
      const beganMs = performance.now()
      if (!isRunning(child)) return 0
      child.kill('SIGCONT') // one that is frozen hears nothing else
      child.kill(name)
      await gone
      return performance.now() - beganMs
    },
  }
}

function spawnReplica(
  { config, output, blockMs }: LaunchOptions,
  onRunning: () => void,
): ChildProcess {
  const args = ['--import', blockable, main, 'run', '--config', config]
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', output],
    env: { ...process.env, TOCSIN_RIG_BLOCK_MS: String(blockMs) },
  })
  child.stdout?.on('data', (chunk: Buffer) => {
    if (chunk.includes('"msg":"tocsin runs"')) onRunning()
    writeSync(output, chunk)
  })
  return child
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null
}
