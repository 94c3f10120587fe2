/**
 * A test file that leaves its process changed fails: where files share one, another would hang behind it,
 * in some orders only. What was left is put right, so that nobody else fails.
 */
import { afterAll, vi } from 'vitest'

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

const environment = { ...process.env }
const folder = process.cwd()
const listeners = events.map((event) => process.listenerCount(event))
const globals = names.map((name) => globalThis[name])
const methods = readMethods()

afterAll(() => {
  // Vitest does this after the file: a spy on a fake timer would put the fake back for good
  vi.restoreAllMocks()
  const left = [...names.filter(isReplaced), ...findReplacedMethods(), ...findChanges()]
  vi.unstubAllEnvs()
  restore()
  if (left.length > 0) throw new Error(`this file leaves behind: ${left.join(', ')}`)
})

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
