/** How long the work in a killed replica's hands takes to be in somebody's hands again. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from '../../../../src/redis/connection.ts'

export interface Recovery {
  /** Right after a kill: what was in the hands of this process is watched from now. */
  watch(pid: number): Promise<void>
  /** Redis is away: what is being watched says nothing any more. */
  forget(): void
  /** Milliseconds, one for each piece of work that a kill had interrupted. */
  samples(): readonly number[]
  stop(): Promise<void>
}

interface Work {
  queue: string
  job: string
  /** Of the lock: another one means that another worker has the job. */
  token: string
  sinceMs: number
}

export function watchRecovery(redis: Redis, queues: readonly string[]): Recovery {
  let watched: Work[] = []
  const found: number[] = []
  let isStopped = false

  async function look(): Promise<void> {
    const states = await Promise.all(watched.map((work) => isInHand(redis, work)))
    const nowMs = performance.now()
    const over = watched.filter((_, i) => states[i])
    watched = watched.filter((work) => !over.includes(work))
    found.push(...over.map(({ sinceMs }) => Math.round(nowMs - sinceMs)))
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      await look().catch(() => (watched = []))
      await sleep(100)
    }
  }

  const running = run()
  return {
    async watch(pid) {
      const sinceMs = performance.now()
      const active = await Promise.all(queues.map((queue) => jobsOf(redis, queue, pid)))
      watched.push(...active.flat().map((work) => ({ ...work, sinceMs })))
    },
    forget() {
      watched = []
    },
    samples: () => found,
    async stop() {
      isStopped = true
      await running
    },
  }
}

/** Jobs that a process of this id took up and had not put down. */
async function jobsOf(redis: Redis, queue: string, pid: number): Promise<Omit<Work, 'sinceMs'>[]> {
  const jobs = await redis.lrange(`${queue}:active`, 0, -1)
  const held = await Promise.all(
    jobs.map(async (job) => {
      const [holder, token] = await Promise.all([
        redis.hget(`${queue}:${job}`, 'pb'),
        redis.get(`${queue}:${job}:lock`),
      ])
      return holder?.startsWith(`${pid}-`) && token ? [{ queue, job, token }] : []
    }),
  )
  return held.flat()
}

/** Another worker has it, or it sleeps until its next time, or it is done. */
async function isInHand(redis: Redis, { queue, job, token }: Work): Promise<boolean> {
  const [holder, exists, delayed] = await Promise.all([
    redis.get(`${queue}:${job}:lock`),
    redis.exists(`${queue}:${job}`),
    redis.zscore(`${queue}:delayed`, job),
  ])
  return (holder !== null && holder !== token) || exists === 0 || delayed !== null
}
