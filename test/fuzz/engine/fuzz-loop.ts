/** The loop of one target: mutates what reached something new, and keeps what reaches more. */
import { closeSync, openSync, writeSync } from 'node:fs'
import { createRandom, type Random } from '../../../src/sandbox/options.ts'
import { readInputs, writeInput } from './corpus.ts'
import { startCoverage } from './coverage.ts'
import { wordsIn } from './dictionary.ts'
import { contentName, keep, keyOf, type Finding } from './findings.ts'
import { minimise } from './minimise.ts'
import { createMutator } from './mutate.ts'
import type { TargetModule } from './target.ts'

export interface LoopOptions {
  target: string
  /** Wall clock, ms since 1970. */
  untilMs: number
  seed: number
  /** Watched sources, as addresses. */
  watched: string[]
  seeds: string
  grown: string
  findings: string
  /** Holds the input that is being run, for whoever finds the process dead. */
  current: string
  /** Names of inputs that ended the process before: they are not run again. */
  deadly: string[]
  /** So many findings end the run before its time. */
  enough?: number | undefined
}

export interface Progress {
  executions: number
  corpus: number
  covered: number
}

export interface LoopEvents {
  onProgress: (progress: Progress) => void
  onFinding: (finding: Finding) => void
}

/** A batch ends after so many inputs or ms: asking for coverage costs about a third of that. */
const batch = { inputs: 2000, ms: 20 }
const progressMs = 200
const minimiseTries = 2000

export async function fuzzLoop(
  module: TargetModule,
  options: LoopOptions,
  events: LoopEvents,
): Promise<void> {
  const coverage = startCoverage(options.watched)
  const random = createRandom(options.seed)
  const corpus: Uint8Array[] = []
  const runner = createRunner(module, options, events, () => ({
    corpus: corpus.length,
    covered: coverage.covered(),
  }))

  async function take(input: Uint8Array, isSeed: boolean): Promise<void> {
    await runner.run(input)
    if (coverage.takeNew() === 0) return
    corpus.push(input)
    if (!isSeed) writeInput(options.grown, input)
  }

  /** Takes those out of a batch that reach something new: halves that reach nothing are left. */
  async function explore(inputs: readonly Uint8Array[]): Promise<void> {
    const [only] = inputs
    if (only !== undefined && inputs.length === 1) return take(only, false)
    const middle = Math.ceil(inputs.length / 2)
    for (const half of [inputs.slice(0, middle), inputs.slice(middle)]) {
      for (const input of half) await runner.run(input)
      if (coverage.hasNew()) await explore(half)
    }
  }

  for (const input of [new Uint8Array(), ...seedsOf(options)]) await take(input, true)
  if (corpus.length === 0) corpus.push(new Uint8Array())
  const words = [...(module.dictionary ?? []), ...wordsIn(coverage.sources())]
  const mutator = createMutator(random, words)
  const next = (): Uint8Array => mutator.mutate(pickOf(corpus, random), corpus)
  coverage.takeNew() // what writing and reading files ran is none of the target's
  while (Date.now() < options.untilMs) {
    const inputs = await runBatch(runner, next)
    if (coverage.hasNew()) await explore(inputs)
    if (runner.found() >= (options.enough ?? Infinity)) break
  }
  runner.close()
}

function seedsOf({ seeds, grown, deadly }: LoopOptions): Uint8Array[] {
  const inputs = [...readInputs(seeds), ...readInputs(grown)].map(({ input }) => input)
  return inputs.filter((input) => !deadly.includes(contentName(input)))
}

/** Half of the time one of the last few: what they reached is least explored. */
function pickOf(corpus: readonly Uint8Array[], random: Random): Uint8Array {
  const recent = corpus.slice(-random.pick([1, 2, 4, 16]))
  return random.pick(random.chance(0.5) ? recent : corpus)
}

async function runBatch(runner: Runner, next: () => Uint8Array): Promise<Uint8Array[]> {
  const inputs: Uint8Array[] = []
  const endsMs = performance.now() + batch.ms
  while (inputs.length < batch.inputs && performance.now() < endsMs) {
    const input = next()
    inputs.push(input)
    await runner.run(input)
  }
  return inputs
}

interface Runner {
  run(input: Uint8Array): Promise<void>
  found(): number
  close(): void
}

function createRunner(
  { fuzz }: TargetModule,
  { target, findings, current }: LoopOptions,
  { onProgress, onFinding }: LoopEvents,
  state: () => Omit<Progress, 'executions'>,
): Runner {
  const found = new Set<string>()
  const file = openSync(current, 'w')
  let executions = 0
  let saidMs = 0

  function say(): void {
    saidMs = performance.now()
    onProgress({ executions, ...state() })
  }

  function note(input: Uint8Array): void {
    const length = Buffer.alloc(4)
    length.writeUInt32LE(input.length)
    writeSync(file, Buffer.concat([length, input]), 0, input.length + 4, 0)
  }

  /** undefined: it did not fail. */
  async function failure(input: Uint8Array): Promise<{ error: unknown } | undefined> {
    executions += 1
    note(input)
    if (performance.now() - saidMs > progressMs) say()
    try {
      const running = fuzz(input)
      if (running !== undefined) await running
      return undefined
    } catch (error) {
      return { error }
    }
  }

  async function report(input: Uint8Array, error: unknown): Promise<void> {
    const key = keyOf(error)
    if (found.has(key)) return
    found.add(key)
    const isSame = async (smaller: Uint8Array): Promise<boolean> => {
      const again = await failure(smaller)
      return again !== undefined && keyOf(again.error) === key
    }
    const smallest = await minimise(input, isSame, minimiseTries)
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
    onFinding({ target, kind: 'throws', message, file: keep(findings, target, smallest) })
  }

  return {
    async run(input) {
      const failed = await failure(input)
      if (failed) await report(input, failed.error)
    },
    found: () => found.size,
    close() {
      say()
      closeSync(file)
    },
  }
}
