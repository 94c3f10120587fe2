/** How long the work in a killed replica's hands takes to be in somebody's hands again. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import type { Redis } from '../../../src/redis/client.ts'

export interface Recovery {
  /** Right after a kill: what was in the hands of this process is watched from now. */
  watch(pid: number): Promise<void>
  /** Redis is away: what is being watched says nothing any more. */
  forget(): void
  /** One for each piece of work that a kill had interrupted. */
  samples(): readonly RecoverySample[]
  stop(): Promise<void>
}

/** Milliseconds from the kill. */
export interface RecoverySample {
  /** Until it was out of the dead one's hands, for anybody to take. */
  freeMs: number
  /** Until somebody had it: where its sink hangs or its circuit is open, nobody should. */
  takenMs: number
}

/** A job of BullMQ, or a claim. */
interface Work {
  held: Held
  sinceMs: number
  freeMs?: number
}

interface Held {
  state(): Promise<'held' | 'free' | 'taken'>
}

export function watchRecovery(ledger: AccountLedger, queues: readonly string[]): Recovery {
  const { redis } = ledger
  let watched: Work[] = []
  const found: RecoverySample[] = []
  let forgotten = 0
  let isStopped = false

  async function look(): Promise<void> {
    const looked = [...watched]
    const states = await Promise.all(looked.map(({ held }) => held.state()))
    const nowMs = performance.now()
    looked.forEach((work, i) => {
      if (states[i] !== 'held') work.freeMs ??= Math.round(nowMs - work.sinceMs)
    })
    const over = looked.filter((work, i) => states[i] === 'taken' && watched.includes(work))
    watched = watched.filter((work) => !over.includes(work))
    for (const { sinceMs, freeMs = 0 } of over) {
      found.push({ freeMs, takenMs: Math.round(nowMs - sinceMs) })
    }
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
      const since = forgotten
      const active = await Promise.all([
        claimsOf(ledger, pid),
        ...queues.map((queue) => jobsOf(redis, queue, pid)),
      ])
      if (since === forgotten) watched.push(...active.flat().map((held) => ({ held, sinceMs })))
    },
    forget() {
      forgotten += 1
      watched = []
    },
    samples: () => found,
    async stop() {
      isStopped = true
      await running
    },
  }
}

/** What a process of this id had claimed; taken: another has it, or it is settled. */
async function claimsOf(ledger: AccountLedger, pid: number): Promise<Held[]> {
  const name = ledger.key('claims')
  const claims = Object.entries(await ledger.redis.hgetall(name))
  return claims
    .filter(([, claim]) => claim.startsWith(`${pid}-`))
    .map(([ref, claim]) => ({
      async state() {
        const due = ledger.key('due', ref.split(':').at(-1) ?? '')
        const [now, dueText] = [
          await ledger.redis.hget(name, ref),
          await ledger.redis.zscore(due, ref),
        ]
        if (now !== claim || dueText === null) return 'taken'
        return Number(dueText) <= Date.now() ? 'free' : 'held'
      },
    }))
}

/** Jobs that a process of this id took up and had not put down. */
async function jobsOf(redis: Redis, queue: string, pid: number): Promise<Held[]> {
  const jobs = await redis.lrange(`${queue}:active`, 0, -1)
  const held = await Promise.all(
    jobs.map(async (job) => {
      const [holder, token] = await Promise.all([
        redis.hget(`${queue}:${job}`, 'pb'),
        redis.get(`${queue}:${job}:lock`),
      ])
      const isIts = holder?.startsWith(`${pid}-`) && token
      return isIts ? [{ state: () => stateOf(redis, { queue, job, token }) }] : []
    }),
  )
  return held.flat()
}

/** Taken: another worker has it, or it sleeps until its next time, or it is done. */
async function stateOf(
  redis: Redis,
  { queue, job, token }: { queue: string; job: string; token: string },
): Promise<'held' | 'free' | 'taken'> {
  const [holder, exists, delayed, active] = await Promise.all([
    redis.get(`${queue}:${job}:lock`),
    redis.exists(`${queue}:${job}`),
    redis.zscore(`${queue}:delayed`, job),
    redis.lpos(`${queue}:active`, job),
  ])
  if ((holder !== null && holder !== token) || exists === 0 || delayed !== null) return 'taken'
  return active === null ? 'free' : 'held'
}
