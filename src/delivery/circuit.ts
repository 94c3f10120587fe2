/** A circuit for each sink, shared by all replicas: a sink that is down delays only itself. */
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import { runScript } from '../redis/scripts.ts'
import type { CircuitEffect } from './retry-policy.ts'

export interface Circuit {
  /** 0: send. Otherwise how long to wait before asking again, ms. */
  admit(sink: string): Promise<number>
  /** Says what this report changed, if anything. */
  report(sink: string, word: 'ok' | CircuitEffect): Promise<'opened' | 'closed' | undefined>
  /** Nothing was sent after all: where this was the probe of a half-open circuit, the next may be it. */
  giveBack(sink: string): Promise<void>
  read(sink: string, nowMs: number): Promise<CircuitReading>
  /** Nothing is sent to a paused sink until it is resumed (undefined), by any replica. */
  pause(sink: string, pause: SinkPause | undefined): Promise<void>
}

export interface SinkPause {
  reason: string
  sinceMs: number
}

export interface CircuitReading {
  state: 'closed' | 'open' | 'half_open'
  /** When an open circuit lets a probe through. */
  untilMs: number | undefined
  lastSuccessMs: number | undefined
  /** Why an operator paused it; undefined: nobody did. */
  paused: SinkPause | undefined
}

/** A probe that never reports back (its replica died) blocks the next one no longer than this. */
const probeLeaseMs = 30_000

export function createCircuit(redis: Redis, keys: Keys): Circuit {
  const names = (sink: string): string[] => [
    keys.shared('circuit', sink),
    keys.shared('circuit', sink, 'probe'),
  ]
  return {
    async admit(sink) {
      const answer = Number(await runScript(redis, 'circuit-admit', names(sink), [probeLeaseMs]))
      return Math.max(0, answer)
    },
    async report(sink, word) {
      if (word === 'none') return undefined
      const answer = String(await runScript(redis, 'circuit-report', names(sink), [word]))
      if (answer.startsWith('opened')) return 'opened'
      return answer === 'closed' ? 'closed' : undefined
    },
    async giveBack(sink) {
      await redis.del(keys.shared('circuit', sink, 'probe'))
    },
    async read(sink, nowMs) {
      const name = keys.shared('circuit', sink)
      const [until, last, pause] = await redis.hmget(name, 'until', 'last_success', 'paused')
      const paused = pause ? (JSON.parse(pause) as SinkPause) : undefined
      const untilMs = until ? Number(until) : undefined
      const lastSuccessMs = last ? Number(last) : undefined
      if (untilMs === undefined) return { state: 'closed', untilMs, lastSuccessMs, paused }
      return { state: nowMs < untilMs ? 'open' : 'half_open', untilMs, lastSuccessMs, paused }
    },
    async pause(sink, pause) {
      const name = keys.shared('circuit', sink)
      if (pause === undefined) await redis.hdel(name, 'paused')
      else await redis.hset(name, 'paused', JSON.stringify(pause))
    },
  }
}
