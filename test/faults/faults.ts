/**
 * `npm run faults`: strikes a fleet of replicas (`--run everything`, or one group of disturbances), holds the
 * highest load that one daemon carries (`--run load`), or measures how soon events are told (`--run delay`).
 * Exit 1 where anything is lost, repeated without an explanation, or beyond a promise.
 */
import { parseArgs } from 'node:util'
import { duration } from '../../src/lib/config-fields.ts'
import { forLong, plans } from './plans.ts'
import { delayComplaints, renderDelay, runDelay } from './rig/run-delay.ts'
import { renderFigures } from './rig/render-figures.ts'
import { complaintsOf, runChaos } from './rig/run-chaos.ts'
import { renderSoak, runSoak, soakComplaints } from './rig/run-soak.ts'

const { values } = parseArgs({
  options: {
    run: { type: 'string', multiple: true, default: ['everything'] },
    for: { type: 'string' },
    seed: { type: 'string' },
    log: { type: 'string' },
    json: { type: 'boolean' },
  },
})

interface Outcome {
  figures: object
  text: string
  complaints: string[]
}

const forMs = values.for === undefined ? undefined : duration('').parse(values.for)

const runs: Record<string, () => Promise<Outcome>> = {
  ...Object.fromEntries(plans.map((plan) => [plan.name, () => strike(plan)])),
  async load() {
    const figures = await runSoak(forMs ?? 600_000)
    return { figures, text: renderSoak(figures), complaints: soakComplaints(figures) }
  },
  async delay() {
    const figures = await runDelay()
    return { figures, text: renderDelay(figures), complaints: delayComplaints(figures) }
  },
}

async function strike(plan: (typeof plans)[number]): Promise<Outcome> {
  const seed = values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed)
  const long = forMs === undefined ? {} : forLong(forMs)
  const figures = await runChaos({ ...plan, ...long, seed, log: values.log })
  return { figures, text: renderFigures(figures), complaints: complaintsOf(figures) }
}

const unknown = values.run.filter((name) => !Object.hasOwn(runs, name))
if (unknown.length > 0) {
  process.stderr.write(
    `--run ${unknown.join(', ')}: write one of ${Object.keys(runs).join(', ')}\n`,
  )
  process.exit(2)
}

for (const name of values.run) {
  const { figures, text, complaints } = await runs[name]!()
  process.stdout.write(values.json ? `${JSON.stringify(figures)}\n` : text)
  for (const line of complaints) process.stderr.write(`${line}\n`)
  if (complaints.length > 0) process.exitCode = 1
}
