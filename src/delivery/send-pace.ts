/** The rate of each sink with a limit, shared by all replicas: who sends takes the place that has come. */
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import { runScript } from '../redis/scripts.ts'
import type { Sink } from '../sinks/sink.ts'

export interface SendPace {
  /** Takes the place of a sink's next send, if it has come; the place after it, or this one, comes in `nextInMs`. */
  take(sink: Sink): Promise<{ isTaken: boolean; nextInMs: number }>
}

export function createSendPace(redis: Redis, keys: Keys): SendPace {
  return {
    async take({ name, limitPerSecond }) {
      if (limitPerSecond === undefined) return { isTaken: true, nextInMs: 0 }
      const spacingMs = 1_000 / limitPerSecond
      const answer = await runScript(redis, 'pace-send', [keys.shared('pace', name)], [spacingMs])
      const [taken, nextInMs = 0] = answer as number[]
      return { isTaken: taken === 1, nextInMs }
    },
  }
}
