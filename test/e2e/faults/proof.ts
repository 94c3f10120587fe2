/**
 * `npm run proof`: under attack (a chaos run, every bad input, the search for planted secrets) and under load
 * (a soak), one after the other; with `--write` the figures replace those in the README. Exit 1 where a
 * promise does not hold.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { duration } from '../../../src/runtime/config-fields.ts'
import { badInputs } from '../../fuzz/bad-inputs.ts'
import { secretScan } from '../../security/secret-scan.ts'
import { chaosPlan, forLong } from './chaos-plans.ts'
import {
  attackComplaints,
  loadComplaints,
  renderAttack,
  renderLoad,
  type AttackFigures,
} from './rig/render-proof.ts'
import { sayFigures } from './rig/render-figures.ts'
import { runChaos } from './rig/run-chaos.ts'
import { runSoak } from './rig/run-soak.ts'

const parts = ['attack', 'load'] as const
type Part = (typeof parts)[number]

const { values } = parseArgs({
  options: {
    for: { type: 'string', default: '10m' },
    only: { type: 'string' },
    write: { type: 'boolean' },
    log: { type: 'string' },
  },
})

const forMs = duration('').parse(values.for)
const readme = join(import.meta.dirname, '../../../README.md')

const proofs: Record<Part, () => Promise<string[]>> = {
  async attack() {
    const figures = await attack()
    show('attack', renderAttack(figures))
    return attackComplaints(figures)
  },
  async load() {
    say(`load for ${values.for}`)
    const figures = await runSoak({ holdMs: forMs, perSecond: undefined })
    show('load', renderLoad(figures))
    return loadComplaints(figures)
  },
}

async function attack(): Promise<AttackFigures> {
  say(`chaos for ${values.for}`)
  const seed = Date.now() % 1_000_000
  const plan = { ...chaosPlan('everything'), ...forLong(forMs), seed, log: values.log }
  const chaos = await runChaos(plan)
  sayFigures(chaos)
  say('bad inputs')
  const inputs = await badInputs()
  say('planted secrets')
  return { chaos, inputs, secrets: await secretScan() }
}

function say(what: string): void {
  process.stderr.write(`proof: ${what}\n`)
}

function show(part: Part, text: string): void {
  process.stdout.write(`${text}\n`)
  if (!values.write) return
  const [from, to] = [`<!-- proof: ${part} -->`, `<!-- proof: end of ${part} -->`]
  const page = readFileSync(readme, 'utf8')
  const [head, rest] = page.split(from)
  const tail = rest?.split(to)[1]
  if (head === undefined || tail === undefined) throw new Error(`README.md lacks ${from} or ${to}`)
  writeFileSync(readme, `${head}${from}\n\n${text}\n${to}${tail}`)
}

const complaints: string[] = []
for (const part of parts) {
  if (values.only === undefined || values.only === part) complaints.push(...(await proofs[part]()))
}
for (const line of complaints) process.stderr.write(`${line}\n`)
process.exitCode = complaints.length === 0 ? 0 : 1
