/**
 * `npm run mutants`: single changes to the code that must not lose, repeat, misroute or leak; do tests notice?
 * Exit 1 where less than 90 % are killed.
 */
import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createJudge, type Judge, type Verdict } from './judge.ts'
import { mutantsOfLua } from './lua.ts'
import { describeMutant, type Mutant } from './mutant.ts'
import { mutantsOfTypeScript } from './typescript.ts'

const wantedShare = 0.9
const project = join(import.meta.dirname, '../..')

/** The code that decides what is lost, repeated, misrouted or leaked. */
const sources = [
  'src/{feeds,masking,store,routing,delivery,grouping}/**/*.ts',
  'src/redis/scripts/**/*.lua',
  'src/upstream/links.ts',
  'src/messages/guidance.ts',
  'src/messages/sanitize.ts',
  'src/sinks/address-guard.ts',
  'src/sinks/templates/*.ts',
  'src/sinks/webhook/signature.ts',
  'src/lib/sealed-secret.ts',
  'src/lib/config/private-files.ts',
]
/** Keys of the configuration and their words; what hands out the work. */
const leftOut = ['src/**/*config.ts', 'src/feeds/lanes/{lanes,lane}.ts']

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true, default: [] },
      count: { type: 'string', default: '100' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    },
  })
  const count = Number(values.count)
  if (!Number.isInteger(count) || count < 1) throw new Error('--count: write a number from 1')
  const all = listSources().flatMap(mutantsOf)
  const asked = all.filter(isAsked(values.only))
  if (asked.length === 0) throw new Error(`--only ${values.only.join(', ')}: no mutant is there`)
  const drawn = asked
    .toSorted((one, other) => (chanceOf(one, values.seed) < chanceOf(other, values.seed) ? -1 : 1))
    .slice(0, count)
  say(`seed ${values.seed}; ${drawn.length} of ${asked.length} mutants`)
  const judge = createJudge(project)
  const stop = (): never => {
    judge.stop()
    process.exit(130)
  }
  process.once('SIGINT', stop).once('SIGTERM', stop)
  try {
    return report(await judgeAll(judge, drawn))
  } finally {
    judge.stop()
  }
}

function listSources(): string[] {
  const files = sources.map((source) => globSync(source, { cwd: project, exclude: leftOut }))
  const moved = sources.filter((_source, at) => files[at]?.length === 0)
  if (moved.length > 0) throw new Error(`${moved.join(', ')}: no file is there any more`)
  return [...new Set(files.flat())].toSorted()
}

function mutantsOf(file: string): Mutant[] {
  const text = readFileSync(join(project, file), 'utf8')
  return file.endsWith('.lua') ? mutantsOfLua(file, text) : mutantsOfTypeScript(file, text)
}

function isAsked(only: readonly string[]): (mutant: Mutant) => boolean {
  return ({ file, line }) =>
    only.length === 0 ||
    only.some((one) => one === file || one === `${file}:${line}` || file.startsWith(`${one}/`))
}

/** After an edit elsewhere a seed draws nearly the same. */
function chanceOf({ file, was, is }: Mutant, seed: string): string {
  return createHash('sha256').update([seed, file, was, is].join('\0')).digest('hex')
}

async function judgeAll(judge: Judge, drawn: readonly Mutant[]): Promise<Record<Verdict, number>> {
  const counts = { killed: 0, survived: 0, invalid: 0 }
  for (const [file, mutants] of Map.groupBy(drawn, (mutant) => mutant.file)) {
    const ofFile = await judge.of(file)
    for (const test of ofFile.dismissed) say(`left out, fails without a change too: ${test}`)
    for (const mutant of mutants) {
      const verdict = await ofFile.judge(mutant)
      counts[verdict] += 1
      const [place, ...lines] = describeMutant(mutant).split('\n')
      const shown =
        verdict === 'survived'
          ? [`${place} (${ofFile.tests.length} test files)`, ...lines]
          : [place]
      say(`${verdict.padEnd(9)} ${shown.join('\n')}`)
    }
  }
  return counts
}

function report({ killed, survived, invalid }: Record<Verdict, number>): number {
  const share = killed / Math.max(1, killed + survived)
  const percent = (100 * share).toFixed(1)
  say(`${killed} of ${killed + survived} killed: ${percent} %; ${invalid} do not compile`)
  return share >= wantedShare ? 0 : 1
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

try {
  process.exitCode = await main()
} catch (error) {
  process.stderr.write(`mutants: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 2
}
