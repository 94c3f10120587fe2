/**
 * A test file that leaves its process changed fails: where files share one, another would hang behind it,
 * in some orders only. What was left is put right, so that nobody else fails.
 */
import type { ChildProcess } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { afterAll, vi } from 'vitest'
import { endServer } from './redis.ts'

const names = [
  'Date',
  'clearImmediate',
  'clearInterval',
  'clearTimeout',
  'fetch',
  'performance',
  'queueMicrotask',
  'setImmediate',
  'setInterval',
  'setTimeout',
] as const
const events = ['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'uncaughtException', 'warning']

/** A process that was told to end may take as long. */
const endMs = 15_000

const environment = { ...process.env }
const folder = process.cwd()
const listeners = events.map((event) => process.listenerCount(event))
const globals = names.map((name) => globalThis[name])
const methods = readMethods()
const children = new Set<ChildProcess>()
subscribe('child_process', noteChild)

function noteChild(message: unknown): void {
  const { process: child } = message as { process: ChildProcess }
  children.add(child)
}

afterAll(async () => {
  unsubscribe('child_process', noteChild)
  // Vitest does this after the file: a spy on a fake timer would put the fake back for good
  vi.restoreAllMocks()
  const left = [
    ...names.filter(isReplaced),
    ...findReplacedMethods(),
    ...findChanges(),
    ...(await endChildren()),
  ]
  vi.unstubAllEnvs()
  restore()
  if (left.length > 0) throw new Error(`this file leaves behind: ${left.join(', ')}`)
})

/** The commands of those that still ran. */
async function endChildren(): Promise<string[]> {
  const running = [...children].filter(isRunning)
  const toEnd = running.map(async (child) => {
    await once(child, 'exit', { signal: AbortSignal.timeout(endMs) }).catch(() => undefined)
    if (!isRunning(child)) return []
    await endServer(child)
    return [child.spawnargs.join(' ')]
  })
  return (await Promise.all(toEnd)).flat()
}

function isRunning({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid !== undefined && exitCode === null && signalCode === null
}

function isReplaced(name: (typeof names)[number], at: number): boolean {
  return globalThis[name] !== globals[at]
}

function findReplacedMethods(): string[] {
  const now = readMethods()
  return Object.keys(methods).filter((name) => now[name] !== methods[name])
}

function readMethods(): Record<string, unknown> {
  return {
    'Date.now': Reflect.get(Date, 'now'),
    'performance.now': Reflect.get(performance, 'now'),
    'process.exit': Reflect.get(process, 'exit'),
    'process.kill': Reflect.get(process, 'kill'),
    'process.nextTick': Reflect.get(process, 'nextTick'),
  }
}

function findChanges(): string[] {
  const variables = new Set([...Object.keys(environment), ...Object.keys(process.env)])
  return [
    ...[...variables].filter((name) => process.env[name] !== environment[name]),
    ...events.filter((event, at) => process.listenerCount(event) !== listeners[at]),
    ...(process.cwd() === folder ? [] : ['another folder']),
    ...(process.exitCode === undefined ? [] : ['an exit code']),
  ]
}

function restore(): void {
  for (const [at, name] of names.entries()) {
    if (isReplaced(name, at)) Reflect.set(globalThis, name, globals[at])
  }
  for (const name of Object.keys(process.env)) {
    if (!(name in environment)) delete process.env[name]
  }
  Object.assign(process.env, environment)
  process.chdir(folder)
  process.exitCode = undefined
}
