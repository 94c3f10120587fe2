/** The gauges that are read from Redis at a scrape: read once for scrapes that overlap, never waited for long. */
import type { Registry } from 'prom-client'
import { systemClock, type Clock } from './clock.ts'
import type { Logger } from './logger.ts'

export interface SharedGauges {
  /** The text of the shared gauges; undefined where Redis did not answer in time. */
  render(): Promise<string | undefined>
}

export interface SharedGaugesOptions {
  registry: Registry
  /** Reads Redis and sets the gauges, which `registry` has reset before. */
  read: () => Promise<void>
  clock?: Clock
  logger?: Logger | undefined
}

/** Leaves a fifth of the second that a scrape may take for everything else. */
const redisPatienceMs = 800

export function createSharedGauges({
  registry,
  read,
  clock = systemClock,
  logger,
}: SharedGaugesOptions): SharedGauges {
  let inFlight: Promise<string | undefined> | undefined
  let isFailing = false

  async function collect(): Promise<string | undefined> {
    registry.resetMetrics()
    try {
      await read()
      isFailing = false
      return await registry.metrics()
    } catch (error) {
      if (!isFailing) logger?.warn({ err: error }, 'shared metrics cannot be read')
      isFailing = true
      return undefined
    }
  }

  return {
    async render() {
      inFlight ??= collect().finally(() => (inFlight = undefined))
      const answered = new AbortController()
      const patience = clock.sleep(redisPatienceMs, answered.signal).then(() => undefined)
      const text = await Promise.race([inFlight, patience])
      answered.abort()
      return text
    },
  }
}
