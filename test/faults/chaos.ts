/**
 * `npm run chaos -- --for 10m`: strikes a fleet at random and prints figures. Exit 1 where anything was
 * lost, or repeated without an explanation.
 */
import { parseArgs } from 'node:util'
import { duration } from '../../src/lib/config-fields.ts'
import { chaosPlans, forLong } from './chaos-plans.ts'
import { complaintsOf, runChaos } from './rig/run-chaos.ts'
import { sayFigures } from './rig/render-figures.ts'

const { values } = parseArgs({
  options: {
    for: { type: 'string' },
    run: { type: 'string', multiple: true },
    seed: { type: 'string' },
    log: { type: 'string' },
    json: { type: 'boolean' },
  },
})

const named = values.run ?? ['everything']
const plans = chaosPlans.filter(({ name }) => named.includes(name))
if (plans.length < named.length) {
  const known = chaosPlans.map(({ name }) => name).join(', ')
  process.stderr.write(`--run: write one of ${known}\n`)
  process.exit(2)
}

const long = values.for === undefined ? {} : forLong(duration('').parse(values.for))
let complaints = 0
for (const plan of plans) {
  const seed = values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed)
  const figures = await runChaos({ ...plan, ...long, seed, log: values.log })
  complaints += complaintsOf(figures).length
  if (values.json) process.stdout.write(`${JSON.stringify(figures)}\n`)
  else sayFigures(figures)
}
process.exitCode = complaints === 0 ? 0 : 1
