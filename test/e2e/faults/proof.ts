/**
 * `npm run proof`: a chaos run, every bad input, the search for planted secrets and a soak, one after the
 * other; with `--write` the figures replace those in the README. Exit 1 where a promise does not hold.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { duration } from '../../../src/runtime/config-fields.ts'
import { badInputs } from '../../fuzz/bad-inputs.ts'
import { secretScan } from '../../security/secret-scan.ts'
import { chaosPlan, forLong } from './chaos-plans.ts'
import { complaintsOf, runChaos } from './rig/run-chaos.ts'
import { complaintsOfProof, renderProof, type ProofFigures } from './rig/render-proof.ts'
import { runSoak } from './rig/run-soak.ts'
import { sayFigures } from './rig/render-figures.ts'

const { values } = parseArgs({
  options: {
    for: { type: 'string', default: '10m' },
    write: { type: 'boolean' },
    log: { type: 'string' },
  },
})

const forMs = duration('').parse(values.for)
const readme = join(import.meta.dirname, '../../../README.md')
const marks = ['<!-- proof: figures of the last run -->', '<!-- proof: end -->'] as const

function say(part: string): void {
  process.stderr.write(`proof: ${part}\n`)
}

say(`chaos for ${values.for}`)
const seed = Date.now() % 1_000_000
const chaos = await runChaos({
  ...chaosPlan('everything'),
  ...forLong(forMs),
  seed,
  log: values.log,
})
sayFigures(chaos)
say('bad inputs')
const inputs = await badInputs()
say('planted secrets')
const secrets = await secretScan()
say(`soak for ${values.for}`)
const soak = await runSoak({ holdMs: forMs, perSecond: undefined })
const found: ProofFigures = { chaos, inputs, secrets, soak, cores: availableParallelism() }
const text = renderProof(found)
process.stdout.write(text)
if (values.write) write(text)
const complaints = [...complaintsOf(chaos), ...complaintsOfProof(found)]
for (const line of complaints) process.stderr.write(`${line}\n`)
process.exitCode = complaints.length === 0 ? 0 : 1

function write(figures: string): void {
  const page = readFileSync(readme, 'utf8')
  const [head, rest] = page.split(marks[0])
  const tail = rest?.split(marks[1])[1]
  if (head === undefined || tail === undefined)
    throw new Error('README.md has no place for figures')
  writeFileSync(readme, `${head}${marks[0]}\n\n${figures}\n${marks[1]}${tail}`)
}
