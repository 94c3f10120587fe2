/**
 * Runs test files in a warm Vitest, one after another, until one fails. A process of its own, so that
 * whatever hangs can be ended with everything it started.
 */
import { join } from 'node:path'
import { createVitest, type Vitest } from 'vitest/node'
import type { TestRun, TestVerdict } from './test-runner.ts'

interface Started {
  /** A module that each test file loads first. */
  setup: string | undefined
}

const { setup } = JSON.parse(process.argv[2] ?? '{}') as Started

const root = process.cwd()

const vitest = await createVitest('test', {
  root,
  config: false,
  watch: false,
  cache: false,
  include: ['test/**/*.test.ts'],
  exclude: ['**/node_modules/**', 'test/faults/**'],
  setupFiles: setup === undefined ? [] : [setup],
  maxWorkers: 1,
  fileParallelism: false,
  bail: setup === undefined ? 1 : 0,
  testTimeout: 20_000,
  hookTimeout: 60_000,
  reporters: [{}],
})

process.on('message', (run: TestRun) => {
  void answer(vitest, run).then((verdict) => process.send?.(verdict))
})
// with the process that started it, all that tests started ends too
process.on('disconnect', () => process.kill(-process.pid, 'SIGKILL'))
process.send?.('ready')

async function answer(runner: Vitest, { changed, files }: TestRun): Promise<TestVerdict> {
  for (const file of changed) runner.invalidateFile(join(root, file))
  await runner.globTestSpecifications()
  const took: Record<string, number> = {}
  for (const file of files) {
    const startedAtMs = Date.now()
    const failure = await failureOf(runner, file)
    took[file] = Date.now() - startedAtMs
    if (failure !== undefined) return { failed: file, ...failure, took }
  }
  return { failed: undefined, test: '', isTimeout: false, took }
}

type Failure = Pick<TestVerdict, 'test' | 'isTimeout'>

async function failureOf(runner: Vitest, file: string): Promise<Failure | undefined> {
  const moduleId = join(root, file)
  const specification = runner.getRootProject().createSpecification(moduleId)
  const { testModules, unhandledErrors } = await runner.runTestSpecifications([specification])
  const module = testModules.findLast((one) => one.moduleId === moduleId)
  if (module === undefined) return { test: 'the file did not run', isTimeout: false }
  if (module.ok() && unhandledErrors.length === 0) return undefined
  const [failed] = module.children.allTests('failed')
  const [error = module.errors()[0] ?? unhandledErrors[0]] = failed?.result().errors ?? []
  const message = String((error as { message?: string } | undefined)?.message ?? 'unknown')
  return {
    test: failed?.fullName ?? `error: ${message.split('\n')[0]}`,
    isTimeout: /timed out in \d+ms/.test(message),
  }
}
