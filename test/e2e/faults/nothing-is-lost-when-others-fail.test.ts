import { expect, test } from 'vitest'
import { chaosPlan } from './chaos-plans.ts'
import { sayFigures } from './rig/render-figures.ts'
import { complaintsOf, runChaos } from './rig/run-chaos.ts'

test('a service that fails, lies, refuses and shows monsters costs nothing', async () => {
  const figures = await runChaos(chaosPlan('service'))
  sayFigures(figures)
  expect(complaintsOf(figures)).toEqual([])
  expect(figures.events).toBeGreaterThan(100)
}, 400_000)

test('sinks that refuse, hang, drip, cut and lose answers get everything, and no repeat is unexplained', async () => {
  const figures = await runChaos(chaosPlan('sinks'))
  sayFigures(figures)
  expect(complaintsOf(figures)).toEqual([])
  expect(figures.verdict.repeated).toBeGreaterThan(0)
}, 400_000)
