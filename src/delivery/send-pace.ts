/** The rate of each sink with a limit, shared by all replicas: a place is reserved, then waited for. */
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import { runScript } from '../redis/scripts.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Sink } from '../sinks/sink.ts'

export interface SendPace {
  /** Returns when it is this send's turn, or early when `signal` aborts. */
  wait(sink: Sink, signal: AbortSignal): Promise<void>
  /** The other side asked for a pause: nobody sends before it is over. */
  pause(sink: Sink, ms: number | undefined): Promise<void>
}

const defaultPauseMs = 10_000

export function createSendPace(redis: Redis, keys: Keys, clock: Clock): SendPace {
  async function run(sink: Sink, spacingMs: number, pauseMs: number): Promise<number> {
    const name = keys.shared('pace', sink.name)
    return Number(await runScript(redis, 'pace-send', [name], [spacingMs, pauseMs]))
  }
  return {
    async wait(sink, signal) {
      const limit = sink.limitPerSecond
      const waitMs = limit === undefined ? 0 : await run(sink, 1_000 / limit, 0)
      if (waitMs > 0) await clock.sleep(waitMs, signal)
    },
    async pause(sink, ms = defaultPauseMs) {
      if (sink.limitPerSecond !== undefined) await run(sink, 0, ms)
    },
  }
}
