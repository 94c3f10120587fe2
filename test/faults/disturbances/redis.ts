/** What happens to Redis, and to the way there. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Disturbance } from '../rig/disturbance.ts'
import type { Stage } from '../rig/stage.ts'
import type { StoreKind } from '../rig/store.ts'

const alone: readonly StoreKind[] = ['everysec', 'always']

export const crash: Disturbance = {
  name: 'Redis killed (SIGKILL)',
  weight: 6,
  async strike(stage) {
    await uncounted(stage, () => stage.store.crash(100 + 900 * stage.random.next()))
    await sleep(1_000)
  },
}

export const outage: Disturbance = {
  name: 'Redis away for long',
  strike: (stage) => uncounted(stage, () => stage.store.crash(Math.min(stage.longMs, 30_000))),
}

export const swallow: Disturbance = {
  name: 'answers of Redis swallowed, then cut',
  stores: alone,
  weight: 6,
  async strike({ store, random }) {
    await store.proxy?.swallow(20 + 300 * random.next())
    await sleep(500)
  },
}

const cut: Disturbance = {
  name: 'connections to Redis cut',
  stores: alone,
  weight: 2,
  async strike({ store }) {
    store.proxy?.cut()
    await sleep(500)
  },
}

const stall: Disturbance = {
  name: 'no byte to or from Redis',
  stores: alone,
  strike: async ({ store }, ms) => store.proxy?.stall(ms),
}

const full: Disturbance = {
  name: 'maxmemory reached',
  stores: alone,
  strike: (stage, ms) =>
    uncounted(stage, async () => {
      const { client } = stage.store
      const used = /^used_memory:(\d+)/m.exec(await client.info('memory'))?.[1] ?? '0'
      await client.config('SET', 'maxmemory', Math.floor(Number(used) * 0.98))
      await sleep(ms)
      await client.config('SET', 'maxmemory', 0)
    }),
}

const locked: Disturbance = {
  name: 'AUTH changed, then changed back',
  stores: alone,
  strike: (stage, ms) =>
    uncounted(stage, async () => {
      const { client, proxy } = stage.store
      await client.config('SET', 'requirepass', 'another')
      proxy?.cut()
      await sleep(ms)
      await client.config('SET', 'requirepass', '')
    }),
}

export const redisDisturbances: readonly Disturbance[] = [
  crash,
  swallow,
  cut,
  stall,
  full,
  locked,
  outage,
]

/** What was killed before and meanwhile comes back only once Redis does: it says nothing of recovery. */
async function uncounted({ recovery }: Stage, act: () => Promise<void>): Promise<void> {
  recovery.forget()
  await act()
  recovery.forget()
}
