/** The sandbox as a process of its own. */
import { subscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SandboxEvent } from '../../src/sandbox/history/history.ts'
import type { SandboxOptions } from '../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { answerCalls, preciseMs, untilThere } from './called-process.ts'

/** An event that is to arrive in a group, so long after the call. */
export interface Arrival {
  atMs: number
  groupId: number
}

export type SandboxCalls = typeof calls

let sandbox: Sandbox
/** When the answers to searches left. */
const answers: { path: string; leftMs: number }[] = []

subscribe('http.server.response.finish', (message) => {
  const { url: path = '' } = (message as { request: IncomingMessage }).request
  if (path.endsWith('/_search')) answers.push({ path, leftMs: preciseMs() })
})

const calls = {
  /** Limits are enforced only where the options say so. */
  async start(options: SandboxOptions) {
    sandbox = await startSandbox({ enforceLimits: false, ...options })
    const { url, webhookSecret } = sandbox
    return { url, webhookSecret }
  },
  addEvents(count: number, given: Partial<SandboxEvent>) {
    sandbox.addEvents(count, given)
  },
  /** Adds events, and resolves when they are asked for. */
  async addAndAwaitSearch(count: number, given: Partial<SandboxEvent>) {
    sandbox.addEvents(count, given)
    const before = sandbox.requests.length
    const search = () =>
      sandbox.requests.slice(before).find(({ path }) => path.endsWith('/_search'))
    return (await untilThere(search, () => 'nobody has searched', 2)).atMs
  },
  /** Resolves, when the last one has arrived, to when each did. `plan` is in the order of time. */
  async arrive(plan: Arrival[]): Promise<[uid: string, cameMs: number][]> {
    const startMs = performance.now()
    const arrived: [string, number][] = []
    for (const { atMs, groupId } of plan) {
      const waitMs = startMs + atMs - performance.now()
      if (waitMs > 1) await sleep(waitMs)
      const { uid } = sandbox.addEvent({ groupIds: [groupId], severity: 'high', ignoredAtMs: null })
      arrived.push([uid, preciseMs()])
    }
    return arrived
  },
  /** When the last page of a group left before a moment. */
  pageLeftMs(groupId: number, beforeMs: number): number | undefined {
    const end = `/${groupId}/_search`
    return answers.findLast(({ path, leftMs }) => path.endsWith(end) && leftMs <= beforeMs)?.leftMs
  },
  /** Searches since then (wall clock), and the groups they were for. */
  searches(sinceMs: number) {
    const asked = sandbox.requests.filter(
      ({ atMs, path }) => atMs >= sinceMs && path.endsWith('/_search'),
    )
    return { count: asked.length, groups: new Set(asked.map(({ path }) => path)).size }
  },
}

answerCalls(calls)
