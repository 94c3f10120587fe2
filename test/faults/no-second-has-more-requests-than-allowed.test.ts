/** Three replicas over real connections that stand still each for itself, while Redis answers late. */
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { createRandom } from '../../src/sandbox/options.ts'
import { startRedis } from '../support/redis.ts'
import type { StallingReplica } from './rig/stalling-replica.ts'
import type { Arrival } from './rig/strict-receiver.ts'
import { startTcpProxy } from './rig/tcp-proxy.ts'

function aThread(file: string, workerData?: StallingReplica): Worker {
  const thread = new Worker(join(import.meta.dirname, 'rig', file), { workerData })
  onTestFinished(async () => void (await thread.terminate()))
  return thread
}

test.each([
  { limit: 1, seconds: 15 },
  { limit: 4, seconds: 10 },
  { limit: 20, seconds: 10 },
])(
  'three replicas that stall never exceed $limit in any second at the door of the service',
  async ({ limit, seconds }) => {
    const receiver = aThread('strict-receiver.ts')
    const [port] = (await once(receiver, 'message')) as [number]
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const proxy = await startTcpProxy(redis.port)
    onTestFinished(() => proxy.stop())

    const redisUrl = redis.url.replace(String(redis.port), String(proxy.port))
    const about = { redisUrl, baseUrl: `http://127.0.0.1:${port}`, limit, seconds }
    const replicas = [1, 2, 3].map((seed) => aThread('stalling-replica.ts', { ...about, seed }))
    let isOver = false
    const over = Promise.all(replicas.map((replica) => once(replica, 'exit')))
    void over.finally(() => (isOver = true))
    const random = createRandom(limit)
    while (!isOver) {
      await sleep(random.int(50, 1_500))
      await proxy.stall(random.int(10, 400))
    }

    receiver.postMessage('which arrived')
    const [arrivals] = (await once(receiver, 'message')) as [Arrival[]]
    const tooMany = arrivals
      .slice(limit)
      .map(({ byMs }, n) => byMs - arrivals[n]!.afterMs)
      .filter((ms) => ms < 1000)
    expect(tooMany).toEqual([])
    expect(arrivals.length).toBeGreaterThan(limit)
  },
)
