/**
 * `npm run proof`: under attack (a chaos run, every bad input, the search for planted secrets), with replicas
 * killed and nothing else struck, under load (a soak), and how soon events are told, one after the other; with
 * `--write` the figures replace those in docs/testing.md. Exit 1 where a promise does not hold.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { duration } from '../../src/lib/config-fields.ts'
import { badInputs } from '../fuzz/bad-inputs.ts'
import { secretScan } from '../security/secret-scan.ts'
import { chaosPlan, forLong } from './chaos-plans.ts'
import { kill } from './disturbances/replicas.ts'
import {
  attackComplaints,
  delayComplaints,
  loadComplaints,
  renderAttack,
  renderDelay,
  renderKills,
  renderLoad,
  type AttackFigures,
} from './rig/render-proof.ts'
import { sayFigures } from './rig/render-figures.ts'
import { complaintsOf, runChaos, type ChaosPlan, type Figures } from './rig/run-chaos.ts'
import { runDelay } from './rig/run-delay.ts'
import { runSoak } from './rig/run-soak.ts'

const parts = ['attack', 'kills', 'load', 'delay'] as const
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
const page = join(import.meta.dirname, '../../docs/testing.md')

const proofs: Record<Part, () => Promise<string[]>> = {
  async attack() {
    const figures = await attack()
    show('attack', renderAttack(figures))
    return attackComplaints(figures)
  },
  async kills() {
    const kills = await killsAlone()
    show('kills', renderKills(kills))
    return complaintsOf(kills)
  },
  async load() {
    say(`load for ${values.for}`)
    const figures = await runSoak({ holdMs: forMs, perSecond: undefined })
    show('load', renderLoad(figures))
    return loadComplaints(figures)
  },
  async delay() {
    say('late events, and new ones while feeds are read again; some ten minutes')
    const figures = await runDelay()
    show('delay', renderDelay(figures))
    return delayComplaints(figures)
  },
}

async function attack(): Promise<AttackFigures> {
  say(`chaos for ${values.for}`)
  const chaos = await strike({ ...chaosPlan('everything'), ...forLong(forMs) })
  say('bad inputs')
  const inputs = await badInputs()
  say('planted secrets')
  return { chaos, inputs, secrets: await secretScan() }
}

/** What a killed replica had in hand comes back, and nothing else delays it; a fifth of the time. */
function killsAlone(): Promise<Figures> {
  say(`kills alone for a fifth of ${values.for}`)
  return strike({ ...chaosPlan('replicas'), ...forLong(forMs / 5), replicas: 3, lanes: [[kill]] })
}

async function strike(plan: ChaosPlan): Promise<Figures> {
  const figures = await runChaos({ ...plan, seed: Date.now() % 1_000_000, log: values.log })
  sayFigures(figures)
  return figures
}

function say(what: string): void {
  process.stderr.write(`proof: ${what}\n`)
}

function show(part: Part, text: string): void {
  process.stdout.write(`${text}\n`)
  if (!values.write) return
  const [from, to] = [`<!-- proof: ${part} -->`, `<!-- proof: end of ${part} -->`]
  const [head, rest] = readFileSync(page, 'utf8').split(from)
  const tail = rest?.split(to)[1]
  if (head === undefined || tail === undefined) throw new Error(`${page} lacks ${from} or ${to}`)
  writeFileSync(page, `${head}${from}\n\n${text}\n${to}${tail}`)
}

const complaints: string[] = []
for (const part of parts) {
  if (values.only === undefined || values.only === part) complaints.push(...(await proofs[part]()))
}
for (const line of complaints) process.stderr.write(`${line}\n`)
process.exitCode = complaints.length === 0 ? 0 : 1
