import { expect, test } from 'vitest'
import { chaosPlan } from './chaos-plans.ts'
import { sayFigures } from './rig/render-figures.ts'
import { complaintsOf, runChaos } from './rig/run-chaos.ts'

test('a service that fails, lies and shows monsters, and sinks that refuse, hang, drip and lose answers cost nothing', async () => {
  const lanes = [...chaosPlan('service').lanes, ...chaosPlan('sinks').lanes]
  const figures = await runChaos({ ...chaosPlan('service'), name: 'service and sinks', lanes })
  sayFigures(figures)
  expect(complaintsOf(figures)).toEqual([])
  expect(figures.events).toBeGreaterThan(100)
}, 400_000)
