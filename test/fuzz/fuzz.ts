/** `npm run fuzz -- --for 1h`: every target for its share of the time, guided by what it reaches. */
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { duration } from '../../src/lib/config-fields.ts'
import { grownFolder, seedsFolder } from './engine/corpus.ts'
import { runTarget, type TargetReport } from './engine/run-target.ts'
import { targets } from './targets.ts'

const targetsFolder = join(import.meta.dirname, 'targets')
const findingsFolder = join(import.meta.dirname, 'findings')
const known = Object.keys(targets)

interface Asked {
  forMs: number
  names: string[]
  seed: number
  input: string | undefined
  /** Where inputs of interest are kept, for the next run. */
  grown: string
}

/** Throws with what to write instead. */
function readArguments(args: string[]): Asked {
  const { values } = parseArgs({
    args,
    options: {
      for: { type: 'string', default: '1m' },
      target: { type: 'string', multiple: true, default: known },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      input: { type: 'string' },
      grown: { type: 'string', default: grownFolder },
    },
  })
  const forMs = duration('How long.').safeParse(values.for)
  if (!forMs.success) throw new Error('--for: not a duration; write 10m or 1h')
  const unknown = values.target.find((target) => !known.includes(target))
  if (unknown !== undefined) {
    throw new Error(`--target ${unknown}: there is none; write one of ${known.join(', ')}`)
  }
  if (values.input !== undefined && values.target.length !== 1) {
    throw new Error('--input: of which target? add --target <name>')
  }
  return {
    forMs: forMs.data,
    names: values.target,
    seed: Number.parseInt(values.seed, 10) || 0,
    input: values.input,
    grown: values.grown,
  }
}

async function main({ forMs, names, seed, input, grown }: Asked): Promise<number> {
  const [only = ''] = names
  if (input !== undefined) return replay(only, input)
  say(`seed ${seed}, ${names.length} targets`)
  let found = 0
  for (const target of names) {
    const report = await runTarget({
      target,
      module: join(targetsFolder, `${target}.ts`),
      forMs: forMs / names.length,
      seed,
      seeds: join(seedsFolder, target),
      grown: join(grown, target),
      findings: findingsFolder,
    })
    found += report.findings.length
    tell(report)
  }
  return found === 0 ? 0 : 1
}

/** Runs one input; a defect ends the process with its stack. */
async function replay(target: string, file: string): Promise<number> {
  await targets[target]?.fuzz(readFileSync(file))
  say('nothing is wrong with this input')
  return 0
}

function tell({ target, executions, seconds, corpus, covered, findings }: TargetReport): void {
  const rate = Math.round(executions / Math.max(seconds, 0.001))
  say(
    `${target.padEnd(14)} ${executions} executions, ${rate}/s, corpus ${corpus}, ${covered} blocks, ${findings.length} findings`,
  )
  for (const { kind, message, file } of findings) {
    const again = relative(process.cwd(), file)
    say(`  ${kind}: ${message.split('\n').slice(0, 4).join('\n    ')}`)
    say(`  again: npm run fuzz -- --target ${target} --input ${again}`)
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** undefined: the operator has been told what is wrong with them. */
function askedFor(args: string[]): Asked | undefined {
  try {
    return readArguments(args)
  } catch (error) {
    process.stderr.write(`fuzz: ${error instanceof Error ? error.message : String(error)}\n`)
    return undefined
  }
}

const asked = askedFor(process.argv.slice(2))
process.exitCode = asked ? await main(asked) : 2
