/** A replica in a thread of its own that searches as fast as it may, and stands still now and then. */
import { eventOperations } from '../../../src/upstream/resources/events.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { workerData } from 'node:worker_threads'
import { createRandom } from '../../../src/sandbox/options.ts'
import { anAccount, startReplica } from '../../support/replica.ts'

export interface StallingReplica {
  redisUrl: string
  baseUrl: string
  /** Searches a second. */
  limit: number
  seconds: number
  seed: number
}

const { redisUrl, baseUrl, limit, seconds, seed } = workerData as StallingReplica
const random = createRandom(seed)
const stop = AbortSignal.timeout(seconds * 1000)
const account = anAccount({ baseUrl, organizationId: 7, limits: { search: limit, basic: 50 } })
const transportLimits = { totalMs: 3_000 }
const replica = startReplica({ redisUrl, prefix: 'strict', account, transportLimits })

async function ask(): Promise<void> {
  while (!stop.aborted) {
    const slot = { kind: 'feed', name: 'brand', dueSinceMs: Date.now() } as const
    const request = { identifier_group_id: 5, size: 10, order: 'asc' } as const
    const asked = { slot, tier: 'search', signal: stop } as const
    await replica.client.call(eventOperations.searchGroup, request, asked).catch(() => sleep(5))
  }
}

async function standStill(): Promise<void> {
  while (!stop.aborted) {
    await sleep(random.int(50, 700))
    const ms = 5 * random.int(1, 5) ** random.int(1, 3)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
  }
}

await Promise.all([standStill(), ...Array.from({ length: 8 }, ask)])
await replica.stop()
