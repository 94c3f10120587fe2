import { expect, test } from 'vitest'
import { planOf } from './plans.ts'
import { complaintsOf, runChaos, sayFigures } from './rig/run-chaos.ts'

test('a service that fails, lies and shows monsters, and sinks that refuse, hang, drip and lose answers cost nothing', async () => {
  const lanes = [...planOf('service').lanes, ...planOf('sinks').lanes]
  const figures = await runChaos({ ...planOf('service'), name: 'service and sinks', lanes })
  sayFigures(figures)
  expect(complaintsOf(figures)).toEqual([])
  expect(figures.events).toBeGreaterThan(100)
}, 400_000)
