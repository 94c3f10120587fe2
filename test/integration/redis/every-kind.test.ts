import { expect, test } from 'vitest'
import { scanRecords } from '../../../src/store/records.ts'
import { startCluster } from '../../support/redis-cluster.ts'
import { startSocketRedis, startTlsRedis, type RedisRig } from '../../support/redis-kinds.ts'
import { startSentinels } from '../../support/redis-sentinel.ts'
import { until } from '../../support/until.ts'
import { aScene } from './scene.ts'

const kinds: [string, () => Promise<RedisRig>][] = [
  ['over TLS', () => startTlsRedis()],
  ['over TLS that asks for a certificate', () => startTlsRedis({ mutual: true })],
  ['behind a socket, in a database of its own', startSocketRedis],
  ['behind sentinels', () => startSentinels()],
  ['in a Cluster', () => startCluster()],
]

test.concurrent.each(kinds)(
  'events are taken in, delivered and accounted for %s',
  async (_kind, start) => {
    const redis = await start()
    try {
      const scene = await aScene(redis.yaml)
      try {
        scene.sandbox.addEvents(12)
        await scene.settled(12)
        const uids = new Set<string>()
        for await (const { uid } of scanRecords(scene.replica.ledgers[0]!)) uids.add(uid)
        expect(uids.size).toBe(12)
        expect((await fetch(`${scene.url}/readyz`)).status).toBe(200)
        // a scrape goes without what Redis did not answer in 800 ms
        const scrape = async (): Promise<string> => (await fetch(`${scene.url}/metrics`)).text()
        await until('a scrape says so', async () =>
          (await scrape()).includes('tocsin_redis_durable 1'),
        )
      } finally {
        await scene.stop()
      }
    } finally {
      await redis.stop()
    }
  },
)
