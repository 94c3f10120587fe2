/** Judges mutants one at a time, each in the tree that is otherwise unchanged. */
import { applyMutant, type Mutant } from './mutant.ts'
import type { Coverage, TestFile } from './coverage.ts'
import { parseLua } from './lua.ts'
import { createTestRunner, type TestVerdict } from './test-runner.ts'
import type { Tree } from './tree.ts'
import { createTypeCheck } from './type-check.ts'

export type Outcome =
  /** `by`: the test that failed; `isTimeout`: it, or all of them together, ran out of time. */
  | { kind: 'killed'; by: string; isTimeout: boolean }
  /** `tried`: so many test files ran and none failed; 0: none reaches it. */
  | { kind: 'survived'; tried: number }
  /** It does not compile. */
  | { kind: 'invalid' }

export interface Judge {
  judge(mutant: Mutant): Promise<Outcome>
  stop(): void
}

/**
 * Throws where the sources do not compile as they are. `graceMs`: what the tests of a mutant may take
 * beyond four times their usual time.
 */
export function createJudge(tree: Tree, coverage: Coverage, graceMs = 45_000): Judge {
  const typeCheck = createTypeCheck(tree)
  const runner = createTestRunner(tree)
  /** Test files seen to pass without a change since this judge began. */
  const sound = new Set<string>()
  /** Files that Vitest may hold as they were during an earlier run. */
  const touched = new Set<string>()

  function isValid({ file }: Mutant, text: string): boolean {
    if (file.endsWith('.ts')) return typeCheck.mistakesIn(file).length === 0
    try {
      parseLua(text)
      return true
    } catch {
      return false
    }
  }

  function run(mutant: Mutant, tests: readonly TestFile[]): Promise<TestVerdict | undefined> {
    const usualMs = tests.reduce((sum, { tookMs }) => sum + tookMs, 0)
    const files = tests.map(({ file }) => file)
    const changed = [...touched.add(mutant.file)]
    touched.clear()
    touched.add(mutant.file)
    return runner.run({ changed, files }, graceMs + 4 * usualMs)
  }

  /** Whether the test file passes on the unchanged copy: else its failure says nothing. */
  async function isSound(mutant: Mutant, file: string): Promise<boolean> {
    if (sound.has(file)) return true
    const verdict = await run(mutant, [{ file, tookMs: 0 }])
    if (verdict === undefined || verdict.failed !== undefined) return false
    sound.add(file)
    return true
  }

  /** undefined: a test file failed that fails without the change as well, or not a second time with it. */
  async function judgeChanged(mutant: Mutant, original: string): Promise<Outcome | undefined> {
    const tests = coverage.testsFor(mutant)
    if (tests.length === 0) return { kind: 'survived', tried: 0 }
    const verdict = await run(mutant, tests)
    if (verdict === undefined) return { kind: 'killed', by: 'all tests together', isTimeout: true }
    const { failed, test, isTimeout } = verdict
    if (failed === undefined) return { kind: 'survived', tried: tests.length }
    const again = failed.startsWith('test/unit/')
      ? verdict
      : await run(mutant, [{ file: failed, tookMs: 0 }])
    tree.write(mutant.file, original)
    const isOurs = again === undefined || again.failed !== undefined
    if (isOurs && (await isSound(mutant, failed))) {
      return { kind: 'killed', by: `${failed}: ${test}`, isTimeout }
    }
    coverage.dismiss(failed)
    return undefined
  }

  async function judge(mutant: Mutant): Promise<Outcome> {
    const original = tree.read(mutant.file)
    const changed = applyMutant(original, mutant)
    try {
      tree.write(mutant.file, changed)
      if (!isValid(mutant, changed)) return { kind: 'invalid' }
      const outcome = await judgeChanged(mutant, original)
      return outcome ?? (await judge(mutant))
    } finally {
      tree.write(mutant.file, original)
    }
  }

  return {
    judge,
    stop() {
      runner.stop()
      typeCheck.stop()
    },
  }
}
