import { expect, test } from 'vitest'
import { planOf } from './plans.ts'
import { crash, redisDisturbances } from './disturbances/redis.ts'
import { kill } from './disturbances/replicas.ts'
import { complaintsOf, runChaos, sayFigures } from './rig/run-chaos.ts'

test('a Redis that is killed, cut off, full, locked or away costs nothing', async () => {
  const figures = await runChaos({ ...planOf('redis'), lanes: [[crash, ...redisDisturbances]] })
  sayFigures(figures)
  expect(complaintsOf(figures)).toEqual([])
  expect(figures.events).toBeGreaterThan(50)
}, 400_000)

test.each(['sentinel', 'cluster'])(
  'with a %s, masters and replicas that die cost nothing',
  async (name) => {
    const lanes = [[crash], [kill]]
    const figures = await runChaos({ ...planOf(name), lanes })
    sayFigures(figures)
    expect(complaintsOf(figures)).toEqual([])
    expect(figures.struck[crash.name]).toBe(1)
  },
  400_000,
)
