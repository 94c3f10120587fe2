/** Judges the mutants of a file in a copy of the project, so that nobody's work tree ever changes. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { API, type Diagnostic } from 'typescript/unstable/sync'
import { parseLua } from './lua.ts'
import { applyMutant, type Mutant } from './mutant.ts'
import { readReach } from './reach.ts'

/** `killed`: a test fails, or they never end; `survived`: none fails; `invalid`: it does not compile. */
export type Verdict = 'killed' | 'survived' | 'invalid'

export interface FileJudge {
  /** The tests that run for each mutant of the file. */
  tests: readonly string[]
  /** Near as well, but failed without a change. */
  dismissed: readonly string[]
  judge(mutant: Mutant): Promise<Verdict>
}

export interface Judge {
  /** Runs the nearest tests without a change first: what fails then, twice, judges nothing. */
  of(file: string): Promise<FileJudge>
  stop(): void
}

const mostTests = 16

/** `graceMs`: what the tests of a mutant may take beyond four times their usual time. */
export function createJudge(project: string, graceMs = 45_000): Judge {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-mutants-'))
  const root = join(folder, 'tree')
  copyTree(project, root)
  const reach = readReach(root)
  const typeCheck = createTypeCheck(root)

  async function soundTests(file: string): Promise<{ tests: string[]; tookMs: number }> {
    let tests = reach.testsFor(file, mostTests)
    const suspected = new Set<string>()
    for (;;) {
      const beganMs = performance.now()
      const failed = await runTests(root, tests, Infinity)
      if (failed === undefined) throw new Error(`the tests of ${file} do not run`)
      if (failed.length === 0) return { tests, tookMs: performance.now() - beganMs }
      tests = tests.filter((test) => !failed.includes(test) || !suspected.has(test))
      failed.forEach((test) => suspected.add(test))
    }
  }

  /** What fails has to do so twice: a machine may be slow once. */
  async function isNoticed(tests: readonly string[], limitMs: number): Promise<boolean> {
    const failed = await runTests(root, tests, limitMs)
    if (failed === undefined || failed.length === 0) return failed === undefined
    return (await runTests(root, failed, limitMs))?.length !== 0
  }

  function compiles(file: string, text: string): boolean {
    if (file.endsWith('.ts')) return typeCheck.isSound(file)
    try {
      parseLua(text)
      return true
    } catch {
      return false
    }
  }

  return {
    async of(file) {
      const path = join(root, file)
      const original = readFileSync(path, 'utf8')
      const { tests, tookMs } = await soundTests(file)
      return {
        tests,
        dismissed: reach.testsFor(file, mostTests).filter((test) => !tests.includes(test)),
        async judge(mutant) {
          const changed = applyMutant(original, mutant)
          writeFileSync(path, changed)
          try {
            if (!compiles(file, changed)) return 'invalid'
            return (await isNoticed(tests, graceMs + 4 * tookMs)) ? 'killed' : 'survived'
          } finally {
            writeFileSync(path, original)
          }
        },
      }
    },
    stop() {
      typeCheck.stop()
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** Every file that git knows or would take, as it is on disk; `node_modules` is linked. */
function copyTree(project: string, root: string): void {
  const listing = ['ls-files', '--cached', '--others', '--exclude-standard', '-z']
  const printed = execFileSync('git', listing, { cwd: project, encoding: 'utf8' })
  for (const file of printed.split('\0')) {
    if (file === '' || !existsSync(join(project, file))) continue
    mkdirSync(dirname(join(root, file)), { recursive: true })
    cpSync(join(project, file), join(root, file))
  }
  symlinkSync(join(project, 'node_modules'), join(root, 'node_modules'))
}

/** The test files that failed, up to the first; undefined where they did not end in time. */
async function runTests(
  root: string,
  tests: readonly string[],
  limitMs: number,
): Promise<string[] | undefined> {
  if (tests.length === 0) return []
  const report = join(root, 'report.json')
  rmSync(report, { force: true })
  const times = ['--testTimeout=60000', '--hookTimeout=60000', '--bail=1', '--maxWorkers=1']
  const output = ['--reporter=json', `--outputFile=${report}`]
  const args = ['run', '--project', 'quick', ...times, ...output, ...tests]
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  // a group of its own: what the tests started ends with it
  const child = spawn(process.execPath, [vitest, ...args], {
    cwd: root,
    detached: true,
    stdio: 'ignore',
  })
  const timer = Number.isFinite(limitMs)
    ? setTimeout(() => endGroup(child.pid), limitMs)
    : undefined
  await once(child, 'exit')
  clearTimeout(timer)
  endGroup(child.pid)
  if (!existsSync(report)) return undefined
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as {
    testResults: { name: string; status: string }[]
  }
  return tests.filter((test) =>
    testResults.some(({ name, status }) => status === 'failed' && name.endsWith(test)),
  )
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // it is gone already
  }
}

/** What a change leaves unused or out of reach is no mistake of types. */
const typeConfig = {
  extends: './tsconfig.json',
  compilerOptions: {
    noUnusedLocals: false,
    noUnusedParameters: false,
    allowUnreachableCode: true,
  },
  include: ['src'],
}

/** Its compiler stays loaded, so that each change costs little. Throws where the sources do not compile. */
function createTypeCheck(root: string): { isSound(file: string): boolean; stop(): void } {
  const configPath = join(root, 'tsconfig.mutants.json')
  writeFileSync(configPath, JSON.stringify(typeConfig))
  const api = new API({ cwd: root })
  const project = api.updateSnapshot({ openProjects: [configPath] }).getProject(configPath)
  const [mistake] = project?.program.getSemanticDiagnostics() ?? []
  if (!project || mistake) {
    api.close()
    throw new Error(`the sources do not compile: ${mistake?.text ?? configPath}`)
  }
  return {
    isSound(file) {
      const path = join(root, file)
      const snapshot = api.updateSnapshot({ fileChanges: { changed: [path] } })
      const program = snapshot.getProject(configPath)?.program
      const found: Diagnostic[] = [
        ...(program?.getSyntacticDiagnostics(path) ?? []),
        ...(program?.getSemanticDiagnostics(path) ?? []),
      ]
      snapshot.dispose()
      return found.length === 0
    },
    stop: () => api.close(),
  }
}
