/** What a stretch of work costs: time, and CPU and memory of this process, of Redis and of the sandbox. */
import type { Redis } from '../../src/redis/connection.ts'
import type { SandboxChild } from './sandbox-child.ts'

export interface Span {
  seconds: number
  cpuSeconds: { tocsin: number; redis: number; sandbox: number }
  /** Resident set at the end, bytes. */
  rss: { tocsin: number; redis: number }
}

export interface Stopwatch {
  /** Begins to measure; the function that it gives ends it. */
  start(): Promise<() => Promise<Span>>
}

export function createStopwatch(redis: Redis, sandbox: SandboxChild): Stopwatch {
  async function read(): Promise<Span> {
    const seconds = performance.now() / 1000
    const { user, system } = process.cpuUsage()
    const [info, sandboxSeconds] = await Promise.all([readInfo(redis), sandbox.cpuSeconds()])
    return {
      seconds,
      cpuSeconds: {
        tocsin: (user + system) / 1e6,
        redis: info('used_cpu_user') + info('used_cpu_sys'),
        sandbox: sandboxSeconds,
      },
      rss: { tocsin: process.memoryUsage.rss(), redis: info('used_memory_rss') },
    }
  }

  return {
    async start() {
      const before = await read()
      return async () => between(before, await read())
    },
  }
}

function between(before: Span, after: Span): Span {
  const since = (name: keyof Span['cpuSeconds']): number =>
    after.cpuSeconds[name] - before.cpuSeconds[name]
  return {
    seconds: after.seconds - before.seconds,
    cpuSeconds: { tocsin: since('tocsin'), redis: since('redis'), sandbox: since('sandbox') },
    rss: after.rss,
  }
}

/** Bytes that the data takes: without the buffers of clients and of the append-only file. */
export async function dataBytes(redis: Redis): Promise<number> {
  const info = await readInfo(redis)
  return info('used_memory') - info('mem_clients_normal') - info('mem_aof_buffer')
}

async function readInfo(redis: Redis): Promise<(field: string) => number> {
  const text = await redis.info()
  return (field) => {
    const value = new RegExp(`^${field}:(.*?)\r?$`, 'm').exec(text)?.[1]
    if (value === undefined) throw new Error(`INFO of this Redis has no ${field}`)
    return Number(value)
  }
}
