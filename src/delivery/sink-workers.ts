/** One worker for each sink, so that a slow one delays only itself; stopped together, within a deadline. */
import type { Clock } from '../runtime/clock.ts'
import type { Sink } from '../sinks/sink.ts'
import { createSinkWorker, type SinkWorkerOptions } from './sink-worker.ts'

export interface SinkWorkers {
  start(): void
  /** Takes no new work, lets running sends finish until the deadline, then aborts them. */
  stop(deadlineMs: number): Promise<void>
}

export interface SinkWorkersOptions extends SinkWorkerOptions {
  sinks: Map<string, Sink>
  clock: Clock
}

/** What an aborted send gets to write its outcome. */
const lastWordMs = 500

export function createSinkWorkers(options: SinkWorkersOptions): SinkWorkers {
  const { clock } = options
  const stopping = new AbortController()
  const workers = [...options.sinks.values()].map((sink) =>
    createSinkWorker(sink, stopping.signal, options),
  )
  return {
    start: () => workers.forEach((worker) => worker.start()),
    async stop(deadlineMs) {
      const closed = Promise.all(workers.map((worker) => worker.close()))
      const ended = new AbortController()
      void closed.then(() => ended.abort())
      await clock.sleep(deadlineMs, ended.signal)
      stopping.abort()
      await clock.sleep(lastWordMs, ended.signal)
    },
  }
}
