/** `npm run mutants`: single changes to the code that must not lose, repeat, misroute or leak; do tests notice? */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { duration } from '../../src/lib/config-fields.ts'
import { drawMutants, type Drawn } from './engine/choose.ts'
import { collectMutants, equivalentsFile, project } from './engine/collect.ts'
import { learnCoverage } from './engine/coverage.ts'
import { explanationOf, readEquivalents } from './engine/equivalents.ts'
import { copyTree, type Tree } from './engine/tree.ts'
import { filesInRooms } from './rooms.ts'
import { describeMutant, type Mutant } from './engine/mutant.ts'
import { createJudge, type Judge, type Outcome } from './engine/run-mutants.ts'

const wantedShare = 0.9

interface Asked {
  forMs: number
  count: number
  seed: number
  /** Files, folders, or lines of a file as `file:line`. */
  only: string[]
  /** So many mutants at once, each in its own copy of the project. */
  jobs: number
  /** Judges what is explained as equivalent, and nothing else: a test that notices proves it wrong. */
  isAboutExplained: boolean
}

interface Judged {
  room: string
  mutant: Mutant
  outcome: Outcome | { kind: 'equivalent' }
}

/** Throws with what to write instead. */
function readArguments(args: string[]): Asked {
  const { values } = parseArgs({
    args,
    options: {
      for: { type: 'string', default: '1h' },
      count: { type: 'string', default: '300' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      jobs: { type: 'string', default: String(availableParallelism()) },
      only: { type: 'string', multiple: true, default: [] },
      explained: { type: 'boolean', default: false },
    },
  })
  const forMs = duration('How long.').safeParse(values.for)
  if (!forMs.success) throw new Error('--for: not a duration; write 10m or 1h')
  const count = Number(values.count)
  if (!Number.isInteger(count) || count < 1) throw new Error('--count: write a number from 1')
  const jobs = Number(values.jobs)
  if (!Number.isInteger(jobs) || jobs < 1) throw new Error('--jobs: write a number from 1')
  const seed = Number.parseInt(values.seed, 10) || 0
  const isAboutExplained = values.explained
  return { forMs: forMs.data, count, seed, only: values.only, jobs, isAboutExplained }
}

async function main(asked: Asked): Promise<number> {
  const trees: [Tree, ...Tree[]] = [copyTree(project)]
  while (trees.length < asked.jobs) trees.push(copyTree(project))
  const remove = (): void => trees.forEach((tree) => tree.remove())
  const stop = (): never => {
    remove()
    process.exit(130)
  }
  process.once('SIGINT', stop).once('SIGTERM', stop)
  try {
    return await judgeAll(trees, asked)
  } finally {
    remove()
  }
}

async function judgeAll(trees: [Tree, ...Tree[]], asked: Asked): Promise<number> {
  const { seed, isAboutExplained } = asked
  const { root } = trees[0]
  const files = collectMutants(root, asked.only)
  say(
    `seed ${seed}; ${files.reduce((sum, { mutants }) => sum + mutants.length, 0)} mutants to draw`,
  )
  const coverage = await learnCoverage({
    trees,
    sources: filesInRooms(root).map(({ file }) => file),
    cacheFile: join(project, 'node_modules/.cache/tocsin-mutants/coverage.json'),
    tell: say,
  })
  const judges = trees.map((tree) => createJudge(tree, coverage))
  const startedAtMs = Date.now()
  const judged: Judged[] = []
  try {
    const drawn = drawMutants(files, seed).values()
    await Promise.all(
      judges.map((judge) => judgeSome(judge, { drawn, judged, startedAtMs, asked })),
    )
  } finally {
    for (const judge of judges) judge.stop()
  }
  for (const file of coverage.dismissed)
    say(`left out, fails without a change too, or not each time: ${file}`)
  const share = report(judged, (Date.now() - startedAtMs) / 60_000)
  return (isAboutExplained ? share === 0 : share >= wantedShare) ? 0 : 1
}

interface Judging {
  /** All judges take from it. */
  drawn: IterableIterator<Drawn>
  judged: Judged[]
  startedAtMs: number
  asked: Asked
}

/** Until enough of them count, the time is over, or none is left. */
async function judgeSome(
  judge: Judge,
  { drawn, judged, startedAtMs, asked }: Judging,
): Promise<void> {
  for (const one of drawn) {
    if (Date.now() - startedAtMs >= asked.forMs) return
    if (judged.filter(isCounted).length >= asked.count) return
    const isExplained = explanationOf(equivalents, one.mutant) !== undefined
    if (isExplained === asked.isAboutExplained) judged.push(await judgeOne(judge, one))
    else if (isExplained) judged.push({ ...one, outcome: { kind: 'equivalent' } })
  }
}

const equivalents = readEquivalents(equivalentsFile)

async function judgeOne(
  judge: Judge,
  { room, mutant }: { room: string; mutant: Mutant },
): Promise<Judged> {
  const outcome = await judge.judge(mutant)
  say(`${outcome.kind.padEnd(9)} ${describeMutant(mutant)}${detailOf(outcome)}`)
  if (outcome.kind === 'survived') say(`  was: ${mutant.was}\n  is: ${mutant.is}`)
  return { room, mutant, outcome }
}

function detailOf(outcome: Outcome): string {
  if (outcome.kind === 'killed') return `  (${outcome.isTimeout ? 'time-out, ' : ''}${outcome.by})`
  return outcome.kind === 'survived' ? `  (${outcome.tried} test files)` : ''
}

/** What counts: killed or survived. */
function isCounted({ outcome }: Judged): boolean {
  return outcome.kind === 'killed' || outcome.kind === 'survived'
}

/** The share that was killed. */
function report(judged: readonly Judged[], minutes: number): number {
  const of = (kind: string): Judged[] => judged.filter(({ outcome }) => outcome.kind === kind)
  const [killed, survived] = [of('killed'), of('survived')]
  const timeouts = killed.filter(({ outcome }) => outcome.kind === 'killed' && outcome.isTimeout)
  say('')
  for (const room of new Set(judged.map((one) => one.room))) {
    const inRoom = judged.filter((one) => one.room === room).filter(isCounted)
    const dead = inRoom.filter(({ outcome }) => outcome.kind === 'killed').length
    say(`${room.padEnd(10)} ${dead} of ${inRoom.length} killed`)
  }
  tell('survived', survived)
  tell('killed by a time-out', timeouts)
  const counted = killed.length + survived.length
  const share = counted === 0 ? 0 : killed.length / counted
  say(
    `\n${killed.length} of ${counted} killed: ${(share * 100).toFixed(1)} %, in ${minutes.toFixed(1)} min; ` +
      `not counted: ${of('invalid').length} do not compile, ${of('equivalent').length} explained as equivalent`,
  )
  return share
}

function tell(title: string, judged: readonly Judged[]): void {
  if (judged.length === 0) return
  say(`\n${title}: ${judged.length}`)
  for (const { mutant } of judged) say(`  ${describeMutant(mutant)}`)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function runCommand(args: string[]): Promise<number> {
  try {
    return await main(readArguments(args))
  } catch (error) {
    process.stderr.write(`mutants: ${error instanceof Error ? error.message : String(error)}\n`)
    return 2
  }
}

process.exitCode = await runCommand(process.argv.slice(2))
