import { createHttpServer, type HttpServer } from '../http/server.ts'
import type { HttpConfig } from '../http/config.ts'
import type { RedisWatch } from '../redis/watch.ts'
import type { Setup } from './setup.ts'

/** A loop that did not move for longer than this makes /healthz fail, ms. */
const livenessMs = 60_000

/** The server stays when the configuration changes; `current`: what runs by now. */
export function buildWeb(
  config: HttpConfig,
  watch: Pick<RedisWatch, 'lastAwayMs' | 'isAway'>,
  current: () => Setup,
): HttpServer {
  const { redis, keys, clock, logger, metrics } = current().shared
  return createHttpServer({
    ...config,
    metrics: { render: () => metrics.render(redis.status === 'ready' && !watch.isAway()) },
    logger,
    clock,
    health() {
      const loops = current().engine?.loops ?? []
      const states = loops.map(({ name, loop }) => {
        const lastProgressMs = loop.lastProgressMs()
        // waiting for Redis is no illness
        const movedMs = Math.max(lastProgressMs, watch.lastAwayMs())
        const ok = clock.now() - movedMs < livenessMs
        return { name, lastProgressMs, ok }
      })
      return { ok: states.every(({ ok }) => ok), loops: states }
    },
    async ready() {
      if (current().shared.generation.number === 0)
        return { ok: false, reasons: ['waiting for Redis'] }
      await redis.exists(keys.shared('schema')) // in a Cluster any node answers a ping
      return { ok: true, reasons: [] }
    },
  })
}
