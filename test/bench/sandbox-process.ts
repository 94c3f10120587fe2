/**
 * The sandbox as a process of its own, so that its work is not counted as the daemon's. It does what its
 * parent calls, and ends with it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { SandboxEvent } from '../../src/sandbox/history/history.ts'
import type { SandboxOptions } from '../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'

/** An event that is to arrive in a group, so long after the call. */
export interface Arrival {
  atMs: number
  groupId: number
}

/** What the bench may call. */
export type SandboxCalls = typeof calls

export interface SandboxCall {
  name: keyof SandboxCalls
  args: unknown[]
}

export type SandboxReply = { value: unknown } | { error: string }

let sandbox: Sandbox
/** Of the last `arrive`: the place of each uid in the plan, when it came and when it was told first. */
let places = new Map<string, number>()
let cameMs: number[] = []
let toldMs: number[] = []

const calls = {
  /** Limits are enforced only where the options say so; what is posted to `/hooks/plain` needs no signature. */
  async start(options: SandboxOptions) {
    sandbox = await startSandbox({ enforceLimits: false, ...options })
    sandbox.faults.add({ on: '/hooks/plain', effect: 'status', status: 200 })
    sandbox.onReceived(({ uids, atMs }) => {
      for (const uid of uids) {
        const place = places.get(uid)
        if (place !== undefined) toldMs[place] ??= atMs
      }
    })
    const { url, webhookSecret } = sandbox
    return { url, webhookSecret }
  },
  addEvents(count: number, given: Partial<SandboxEvent>) {
    sandbox.addEvents(count, given)
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
  /** Searches since then (wall clock), and the groups they were for. */
  searches(sinceMs: number) {
    const asked = sandbox.requests.filter(
      ({ atMs, path }) => atMs >= sinceMs && path.endsWith('/_search'),
    )
    return { count: asked.length, groups: new Set(asked.map(({ path }) => path)).size }
  },
}

async function answer({ name, args }: SandboxCall): Promise<SandboxReply> {
  try {
    const call = calls[name] as (...given: unknown[]) => unknown
    return { value: await call(...args) }
  } catch (error) {
    return { error: String(error) }
  }
}

process.on('message', (call: SandboxCall) => {
  void answer(call).then((reply) => process.send?.(reply))
})
process.on('disconnect', () => process.exit())
