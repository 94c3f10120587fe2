import { expect, test } from 'vitest'
import { Cluster } from 'ioredis'
import { connectRedis } from '../../../src/redis/connection.ts'
import { startCluster } from '../../support/redis-cluster.ts'
import { silent } from '../../support/ledger.ts'

test('who connects while a Cluster is down is connected when it is up: a worker that waits works on', async () => {
  const cluster = await startCluster()
  const redis = connectRedis(cluster.config, silent)
  try {
    await redis.ping()
    if (!(redis instanceof Cluster)) throw new Error('no Cluster')
    const blocking = redis.duplicate()
    await blocking.ping()
    const giveBack = await cluster.orphanSlotOf('{tocsin}')
    const ended = new Promise((resolve) => blocking.once('end', resolve))
    blocking.disconnect()
    await ended
    const reconnecting = new Promise((resolve) => blocking.once('reconnecting', resolve))
    const connected = blocking.connect()
    await reconnecting
    await giveBack()
    await connected
    expect(await blocking.ping()).toBe('PONG')
    blocking.disconnect()
  } finally {
    redis.disconnect()
    await cluster.stop()
  }
})
