import { expect, test } from 'vitest'
import { planOf } from './plans.ts'
import { kill, restart, roll, standstill } from './disturbances/replicas.ts'
import { complaintsOf, runChaos, sayFigures } from './rig/run-chaos.ts'

test('replicas killed, restarted, frozen, blocked and reconfigured lose nothing and explain every repeat', async () => {
  const kills = Array.from({ length: 6 }, () => kill)
  const lane = [...kills, restart, roll, standstill, kill, kill]
  const figures = await runChaos({ ...planOf('replicas'), blockMs: 12_000, lanes: [lane] })
  sayFigures(figures)
  expect(complaintsOf(figures)).toEqual([])
  expect(figures.events).toBeGreaterThan(100)
  expect(figures.recoveryMs.samples).toBeGreaterThan(0)
}, 400_000)
