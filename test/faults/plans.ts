/** The runs that are known by name: one for each group of disturbances, and all of them at once. */
import { kill, replicaDisturbances, restart } from './disturbances/replicas.ts'
import { crash, outage, redisDisturbances, swallow } from './disturbances/redis.ts'
import { serviceDisturbances } from './disturbances/service.ts'
import { sinkDisturbances } from './disturbances/sinks.ts'
import { calm } from './rig/disturbance.ts'
import type { ChaosPlan } from './rig/run-chaos.ts'

const usual = {
  seed: 7,
  store: 'everysec',
  replicas: 2,
  blockMs: 15_000,
  longMs: 3_000,
  perSecond: 12,
  strikeMs: 700,
  settlePatienceMs: 300_000,
} as const

/** Long quiet between crashes of Redis, so that the work of killed replicas can be seen to come back. */
const seldom = { ...calm, weight: 12 }
const resting = { ...calm, weight: 10 }

const plans: readonly ChaosPlan[] = [
  { ...usual, name: 'kills', replicas: 3, lanes: [[kill]] },
  { ...usual, name: 'replicas', lanes: [replicaDisturbances] },
  { ...usual, name: 'redis', lanes: [redisDisturbances] },
  { ...usual, name: 'redis-always', store: 'always', lanes: [redisDisturbances, [kill]] },
  { ...usual, name: 'sentinel', store: 'sentinel', lanes: [[crash], [kill]] },
  { ...usual, name: 'cluster', store: 'cluster', lanes: [[crash], [kill]] },
  { ...usual, name: 'service', lanes: [serviceDisturbances] },
  { ...usual, name: 'sinks', lanes: [sinkDisturbances] },
  {
    ...usual,
    name: 'everything',
    replicas: 3,
    lanes: [
      [kill, { ...restart, weight: 1 }],
      [crash, { ...outage, weight: 0.2 }, swallow, seldom],
      [...serviceDisturbances, resting],
      [...sinkDisturbances, resting],
    ],
  },
]

export function planOf(name: string): ChaosPlan {
  const plan = plans.find((known) => known.name === name)
  if (!plan) throw new Error(`${name}: write one of ${plans.map((one) => one.name).join(', ')}`)
  return plan
}

/** Drawn at random for so long; what is away for long is so for a tenth of it. */
export function forLong(forMs: number): Pick<ChaosPlan, 'forMs' | 'strikeMs' | 'longMs'> {
  return { forMs, strikeMs: 1_500, longMs: Math.max(3_000, forMs / 10) }
}
