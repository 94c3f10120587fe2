/** The bench's end of the sandbox process. */
import { fork } from 'node:child_process'
import { once } from 'node:events'

export interface SandboxAsk {
  addEvents: number
}

export interface SandboxAnswer {
  url: string
  webhookUrl: string
  webhookSecret: string
  apiKey: string
  /** User and system time of the process so far. */
  cpuSeconds: number
}

export interface SandboxChild {
  readonly url: string
  readonly webhookUrl: string
  readonly webhookSecret: string
  readonly apiKey: string
  /** Adds events to the first identifier group, 1042. */
  addEvents(count: number): Promise<void>
  cpuSeconds(): Promise<number>
  close(): Promise<void>
}

/** The group that the sandbox gives events to unless told otherwise. */
export const groupId = 1042

export async function startSandboxChild(): Promise<SandboxChild> {
  const entry = new URL('./sandbox-process.ts', import.meta.url)
  // execArgv: a profiler of the bench is none of the sandbox
  const child = fork(entry, { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const gone = once(child, 'exit')

  async function ask(given: SandboxAsk): Promise<SandboxAnswer> {
    child.send(given)
    const answered = once(child, 'message') as Promise<[SandboxAnswer]>
    const ended = gone.then(() => Promise.reject(new Error('the sandbox process ended by itself')))
    const [answer] = await Promise.race([answered, ended])
    return answer
  }

  const places = await ask({ addEvents: 0 })
  return {
    ...places,
    addEvents: async (count) => void (await ask({ addEvents: count })),
    cpuSeconds: async () => (await ask({ addEvents: 0 })).cpuSeconds,
    async close() {
      if (child.connected) child.disconnect()
      await gone
    },
  }
}
