/** The other side of `test-process.ts`: starts it, asks it, and ends it with all it started when it hangs. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'

export interface TestRun {
  /** Files whose text has changed since the last run. */
  changed: string[]
  /** Test files in the order in which they run; the first that fails is the last. */
  files: string[]
}

export interface TestVerdict {
  failed: string | undefined
  /** Its first test that failed. */
  test: string
  /** It did not fail but ran out of its time. */
  isTimeout: boolean
  /** Milliseconds for each file that ran. */
  took: Record<string, number>
}

export interface TestRunner {
  /** undefined: it took longer than `limitMs`. */
  run(run: TestRun, limitMs: number): Promise<TestVerdict | undefined>
  stop(): void
}

interface Place {
  root: string
  /** Where tests keep temporary files. */
  temporary: string
  /** A module that each test file loads first. */
  setup?: string
  /** Where that module writes what the test files reached. */
  hitsFolder?: string
}

export function createTestRunner({ root, temporary, setup, hitsFolder }: Place): TestRunner {
  let current: ChildProcess | undefined

  async function start(): Promise<ChildProcess> {
    const child = fork(join(import.meta.dirname, 'test-process.ts'), [JSON.stringify({ setup })], {
      cwd: root,
      // a group of its own: Redis servers and daemons that tests started end with it
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      env: {
        ...process.env,
        NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/tocsin-tests'),
        TMPDIR: temporary,
        NODE_ENV: 'test',
        TOCSIN_HITS: hitsFolder,
      },
    })
    const gone = once(child, 'exit').then(() => {
      throw new Error('the process that runs the tests ended at its start')
    })
    await Promise.race([once(child, 'message'), gone])
    gone.catch(() => undefined)
    return child
  }

  function stop(): void {
    const { pid } = current ?? {}
    current = undefined
    if (pid !== undefined) endGroup(pid)
  }

  return {
    async run(run, limitMs) {
      current ??= await start()
      const child = current
      const over = new AbortController()
      const { signal } = over
      const verdict = Promise.race([
        once(child, 'message', { signal }).then(([answer]) => answer as TestVerdict),
        once(child, 'exit', { signal }).then(() => undefined),
        setTimeout(limitMs, undefined, { signal }),
      ])
      child.send(run)
      const answer = await verdict
      over.abort()
      if (answer === undefined) stop()
      return answer
    },
    stop,
  }
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // it is gone already
  }
}
