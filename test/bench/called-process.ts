/** Processes that do what the bench calls, so that the work of each is counted apart. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

// oxlint-disable-next-line typescript/no-explicit-any -- each call has parameters of its own
type Calls = Record<string, (...args: any[]) => unknown>

interface Asked {
  name: string
  args: unknown[]
}

type Reply = { value: unknown } | { error: string }

export interface CalledProcess<C extends Calls> {
  /** One call after the other. */
  call: <Name extends keyof C & string>(
    name: Name,
    ...args: Parameters<C[Name]>
  ) => Promise<Awaited<ReturnType<C[Name]>>>
  close: () => Promise<void>
}

/** `file` lies beside this one and gives its calls to `answerCalls`; it ends with its parent. */
export function startCalled<C extends Calls>(
  children: Set<ChildProcess>,
  file: string,
  execArgv: string[] = [],
): CalledProcess<C> {
  // execArgv: a profiler of the bench is none of its processes
  const child = fork(new URL(file, import.meta.url), {
    execArgv,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  children.add(child)
  const gone = once(child, 'exit')
  let last: Promise<unknown> = Promise.resolve()

  async function ask(asked: Asked): Promise<unknown> {
    child.send(asked)
    const answered = once(child, 'message') as Promise<[Reply]>
    const ended = gone.then(() => Promise.reject(new Error(`${file} ended by itself`)))
    const [reply] = await Promise.race([answered, ended])
    if ('error' in reply) throw new Error(`${file}: ${reply.error}`)
    return reply.value
  }

  return {
    call: ((name, ...args) => {
      const asked = last.then(() => ask({ name, args }))
      last = asked.catch(() => undefined)
      return asked
    }) as CalledProcess<C>['call'],
    async close() {
      if (child.connected) child.disconnect()
      await gone
      children.delete(child)
    },
  }
}

export function answerCalls(calls: Calls): void {
  async function answer({ name, args }: Asked): Promise<Reply> {
    try {
      return { value: await calls[name]!(...args) }
    } catch (error) {
      return { error: String(error) }
    }
  }
  process.on('message', (asked: Asked) => {
    void answer(asked).then((reply) => process.send?.(reply))
  })
  process.on('disconnect', () => process.exit())
}

/** A machine that needs longer than this is too slow, or something stands still. */
const patienceMs = 300_000

/** Looks every few milliseconds until there is an answer. Throws, with what there is, where none comes. */
export async function untilThere<T>(
  look: () => T | undefined | Promise<T | undefined>,
  describe: () => string,
  everyMs = 20,
): Promise<T> {
  const endMs = performance.now() + patienceMs
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() > endMs)
      throw new Error(`not done within ${patienceMs} ms: ${describe()}`)
    await sleep(everyMs)
  }
}

/** Wall clock with fractions of a millisecond, alike in all processes of a machine. */
export function preciseMs(): number {
  return performance.timeOrigin + performance.now()
}

export interface ProcessUse {
  /** User and system time so far. */
  cpuSeconds: number
  rssBytes: number
}
