import { expect, onTestFinished, test } from 'vitest'
import { buildHttpServer } from '../../../src/daemon/daemon.ts'
import type { HttpConfig } from '../../../src/page/http/config.ts'
import type { Engine } from '../../../src/daemon/engine.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { createRedisWatch } from '../../../src/redis/health.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createMetrics } from '../../../src/lib/metrics/metrics.ts'
import { connectTo, silent } from '../../support/ledger.ts'
import { startRedis } from '../../support/redis.ts'
import { until } from '../../support/rehearsal.ts'

const keys = createKeys('watched')

test.each([
  ['that moved a moment ago is well', 1_000, 0, 200],
  ['that hangs ends the health of the process', 61_000, Infinity, 503],
  ['that waits for Redis is well, however long', 3_600_000, 1_000, 200],
  ['that still hangs a minute after Redis came back is not', 3_600_000, 61_000, 503],
])('a loop %s', async (_what, movedAgoMs, awayAgoMs, status) => {
  const redis = connectTo('redis://127.0.0.1:1')
  const shared = {
    redis,
    keys,
    clock: systemClock,
    logger: silent,
    metrics: createMetrics(),
  }
  const nowMs = Date.now()
  const loop = { lastProgressMs: () => nowMs - movedAgoMs }
  const setup = {
    context: shared,
    parts: { loops: [{ name: 'reconcile', loop }] },
  } as unknown as Engine
  const watch = {
    lastUnreachableMs: () => (awayAgoMs === Infinity ? 0 : nowMs - awayAgoMs),
    isUnreachable: () => false,
  }
  const config: HttpConfig = { host: '127.0.0.1', port: 0, hosts: [], users: [] }
  const http = buildHttpServer(config, watch, () => setup)
  const { url } = await http.start()
  try {
    expect((await fetch(`${url}/healthz`)).status).toBe(status)
  } finally {
    redis.disconnect()
    await http.stop()
  }
})

test('a Redis that hangs is away as well as one that is gone, until it answers', async () => {
  const server = await startRedis({ mayCrash: true })
  const redis = connectTo(server.url)
  const watch = createRedisWatch({
    redis,
    keys: () => [keys.shared('schema')],
    clock: systemClock,
    logger: silent,
  })
  onTestFinished(async () => {
    redis.disconnect()
    await watch.stop()
    await server.stop()
  })
  const pid = Number(/process_id:(\d+)/.exec(await redis.info('server'))?.[1])
  watch.start()
  expect(watch.lastUnreachableMs()).toBe(0)
  process.kill(pid, 'SIGSTOP')
  const stoppedMs = Date.now()
  await until('the watch sees that it hangs', () => watch.lastUnreachableMs() > stoppedMs)
  process.kill(pid, 'SIGCONT')
  await server.kill()
  const killedMs = Date.now()
  await until('the watch sees that it is gone', () => watch.lastUnreachableMs() > killedMs)
})
