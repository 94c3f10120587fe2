/** The rate of each sink with a limit, shared by all replicas: a place is reserved, then waited for. */
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import { runScript } from '../redis/scripts.ts'
import type { Sink } from '../sinks/sink.ts'

export interface SendPace {
  /** Reserves the next place of a sink that has a limit; resolves with how long it is until then, ms. */
  reserve(sink: Sink): Promise<number>
  /** The other side asked for a pause: nobody sends before it is over. */
  pause(sink: Sink, ms: number | undefined): Promise<void>
}

const defaultPauseMs = 10_000

export function createSendPace(redis: Redis, keys: Keys): SendPace {
  async function run(sink: Sink, spacingMs: number, pauseMs: number): Promise<number> {
    const name = keys.shared('pace', sink.name)
    return Number(await runScript(redis, 'pace-send', [name], [spacingMs, pauseMs]))
  }
  return {
    async reserve(sink) {
      const limit = sink.limitPerSecond
      return limit === undefined ? 0 : run(sink, 1_000 / limit, 0)
    },
    async pause(sink, ms = defaultPauseMs) {
      if (sink.limitPerSecond !== undefined) await run(sink, 0, ms)
    },
  }
}
