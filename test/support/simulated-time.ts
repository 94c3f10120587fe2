/**
 * Time that passes only when nothing is under way: a clock for a process, and the same time for the
 * scripts of a real Redis. A night takes seconds, and no outcome depends on the machine.
 */
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../src/lib/clock.ts'
import type { Redis } from '../../src/redis/client.ts'
import { createTextRunner } from './script-clock.ts'

export interface SimulatedTime {
  clock: Clock
  /** The given Redis as it is at the simulated time. */
  redis: Redis
  /** Lets so much time pass, step by step from one timer to the next. */
  pass(ms: number): Promise<void>
}

interface Timer {
  atMs: number
  fire: () => void
}

/** Expires nothing: what a script expires by its own clock stays by the simulated one. */
export function simulateTime(real: Redis, startMs = Date.now()): SimulatedTime {
  let nowMs = startMs
  let underWay = 0
  let noteIdle = (): void => undefined
  const timers = new Set<Timer>()
  const sleep = (ms: number, signal?: AbortSignal): Promise<void> => {
    if (signal?.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = { atMs: nowMs + Math.max(0, Math.ceil(ms)), fire }
      function fire(): void {
        timers.delete(timer)
        signal?.removeEventListener('abort', fire)
        resolve()
      }
      timers.add(timer)
      signal?.addEventListener('abort', fire, { once: true })
    })
  }

  async function track<T>(work: Promise<T>): Promise<T> {
    underWay += 1
    try {
      return await work
    } finally {
      underWay -= 1
      if (underWay === 0) noteIdle()
    }
  }

  let shownMs: number | undefined
  /** Tells Redis the time, before the next command that reads it. */
  function showTime(): void {
    if (shownMs === nowMs) return
    shownMs = nowMs
    const [s, us] = [Math.floor(nowMs / 1000), (nowMs % 1000) * 1000]
    void track(real.mset('simulated:s', s, 'simulated:us', us))
  }

  /** Until no command is under way, and none was for some turns of the event loop. */
  async function settle(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet = underWay === 0 ? quiet + 1 : 0) {
      // no turns while Redis works: they cost as much as all else
      if (underWay > 0) await new Promise<void>((resolve) => (noteIdle = resolve))
      await setImmediate()
    }
  }

  return {
    clock: { now: () => nowMs, monotonic: () => nowMs - startMs, sleep },
    redis: atSimulatedTime(real, track, showTime),
    async pass(ms) {
      const endMs = nowMs + ms
      for (;;) {
        await settle()
        const next = Math.min(...[...timers].map(({ atMs }) => atMs))
        if (next > endMs) break
        nowMs = Math.max(next, nowMs)
        for (const timer of [...timers].filter(({ atMs }) => atMs <= nowMs)) timer.fire()
      }
      nowMs = endMs
    },
  }
}

type Track = <T>(work: Promise<T>) => Promise<T>

function atSimulatedTime(real: Redis, track: Track, showTime: () => void): Redis {
  const runText = createTextRunner(real, (text) =>
    text.replaceAll(`redis.call('TIME')`, `redis.call('MGET', 'simulated:s', 'simulated:us')`),
  )
  const own: Record<string, (...args: unknown[]) => unknown> = {
    // the text runs instead, as on a server that does not have the script yet
    evalsha: () => Promise.reject(new Error('NOSCRIPT')),
    eval(text, ...args) {
      showTime()
      return track(runText(String(text), ...(args as number[])))
    },
    time() {
      showTime()
      return track(real.mget('simulated:s', 'simulated:us'))
    },
  }
  const watch = (target: object, overrides: typeof own): object => {
    const watched: object = new Proxy(target, {
      get(_target, name) {
        const override = overrides[String(name)]
        if (override) return override
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          const result: unknown = Reflect.apply(value, target, args)
          if (result instanceof Promise) return track(result)
          if (result === target) return watched
          return name === 'pipeline' || name === 'multi' ? watch(result as object, {}) : result
        }
      },
    })
    return watched
  }
  return watch(real, own) as Redis
}
