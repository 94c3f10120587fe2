/** The bench's end of the sandbox process. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { SandboxCredential } from '../../src/sandbox/credentials/sandbox-credential.ts'
import type { SandboxEvent } from '../../src/sandbox/history/sandbox-event.ts'

/** What the sandbox is to add; it answers in any case. */
export interface SandboxAsk {
  events?: Wanted<SandboxEvent>
  credentials?: Wanted<SandboxCredential>
}

interface Wanted<Item> {
  count: number
  /** What holds for all of them. */
  given: Partial<Item>
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
  /** Adds events to the first identifier group, 1042, unless told otherwise. */
  addEvents(count: number, given?: Partial<SandboxEvent>): Promise<void>
  /** Adds credentials to the first identifier, 77, unless told otherwise. */
  addCredentials(count: number, given?: Partial<SandboxCredential>): Promise<void>
  cpuSeconds(): Promise<number>
  close(): Promise<void>
}

/** The group that the sandbox gives events to unless told otherwise. */
export const groupId = 1042

/** The first identifier, which gets the credentials, and its name. */
export const identifier = { id: 77, name: 'example.com' }

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

  const places = await ask({})
  return {
    ...places,
    addEvents: async (count, given = {}) => void (await ask({ events: { count, given } })),
    addCredentials: async (count, given = {}) =>
      void (await ask({ credentials: { count, given } })),
    cpuSeconds: async () => (await ask({})).cpuSeconds,
    async close() {
      if (child.connected) child.disconnect()
      await gone
    },
  }
}
