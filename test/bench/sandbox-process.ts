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
/** Of the last `arrive`: the place of each uid in the plan, when it came and when it was told first. */
let places = new Map<string, number>()
let cameMs: number[] = []
let toldMs: number[] = []
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
    sandbox.onReceived(({ uids, atMs }) => {
      for (const uid of uids) {
        const place = places.get(uid)
        if (place !== undefined) toldMs[place] ??= atMs
      }
    })
    const { url, webhookSecret } = sandbox
    return { url, webhookSecret }
  },
  addEvents: (count: number, given: Partial<SandboxEvent>): string[] =>
    sandbox.addEvents(count, given).map(({ uid }) => uid),
  /** Adds events, and resolves when they are asked for. */
  async addAndAwaitSearch(count: number, given: Partial<SandboxEvent>) {
    sandbox.addEvents(count, given)
    const before = sandbox.requests.length
    const search = () =>
      sandbox.requests.slice(before).find(({ path }) => path.endsWith('/_search'))
    return (await untilThere(search, () => 'nobody has searched', 2)).atMs
  },
  /** Resolves when the last one has arrived. `plan` is in the order of time. */
  async arrive(plan: Arrival[]) {
    places = new Map()
    cameMs = []
    toldMs = []
    const startMs = performance.now()
    for (const [place, { atMs, groupId }] of plan.entries()) {
      const waitMs = startMs + atMs - performance.now()
      if (waitMs > 1) await sleep(waitMs)
      const event = sandbox.addEvent({ groupIds: [groupId], severity: 'high', ignoredAtMs: null })
      cameMs[place] = Date.now()
      places.set(event.uid, place)
    }
  },
  /** How long after its arrival each event of the plan was told, or how long it has waited. */
  delays(): { ms: number; isTold: boolean }[] {
    return cameMs.map((came, place) => {
      const told = toldMs[place]
      return { ms: (told ?? Date.now()) - came, isTold: told !== undefined }
    })
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
