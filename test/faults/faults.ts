/**
 * `npm run faults`: strikes a fleet of replicas (`--run everything`, or one group of disturbances). Exit 1 where
 * anything is lost, repeated without an explanation, or beyond a promise.
 */
import { parseArgs } from 'node:util'
import { duration } from '../../src/lib/config/config-fields.ts'
import { forLong, planOf } from './plans.ts'
import { complaintsOf, renderFigures, runChaos } from './rig/run-chaos.ts'

const { values } = parseArgs({
  options: {
    run: { type: 'string', multiple: true, default: ['everything'] },
    for: { type: 'string' },
    seed: { type: 'string' },
    log: { type: 'string' },
    json: { type: 'boolean' },
  },
})

const long = values.for === undefined ? {} : forLong(duration('').parse(values.for))
const seed = values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed)

for (const plan of values.run.map(planOf)) {
  const figures = await runChaos({ ...plan, ...long, seed, log: values.log })
  process.stdout.write(values.json ? `${JSON.stringify(figures)}\n` : renderFigures(figures))
  const complaints = complaintsOf(figures)
  for (const line of complaints) process.stderr.write(`${line}\n`)
  if (complaints.length > 0) process.exitCode = 1
}
