/** Events a second and CPU per event, of the built daemon and of loops that keep nothing. */
import { Agent, request } from 'undici'
import type { WireSearchPage } from '../../src/upstream/resources/page.ts'
import {
  apiKey,
  configOfOne,
  deliveredBy,
  takenInBy,
  openAccount,
  sandboxOfOne,
  untilCounted,
  writeMarks,
} from './one-account.ts'
import type { Figures } from './report.ts'
import { redisUse, webhookSink, type Daemon, type Rig, type SandboxProcess } from './rig.ts'

export interface SpeedPlan {
  /** Every ratio is the median of so many rounds, in which its two sides are measured one after the other. */
  rounds: number
  /** Delivered before anything is measured, by each daemon. */
  warmUpEvents: number
  events: number
  /** Fingerprints in each week of the ledger. */
  marksPerWeek: number
}

/** `dedupe.horizon` of 90 days. */
const weeks = 13

export async function measureSpeed(rig: Rig, plan: SpeedPlan): Promise<Figures> {
  const { groupIds, ...options } = sandboxOfOne(2 * plan.rounds + 1)
  const sandbox = await rig.startSandbox(options)
  const loop = await createPlainLoop(sandbox)
  const run = (groupId: number, batch: object, weeksHeld: number): Promise<Span> =>
    deliverAll(rig, sandbox, { ...plan, groupId, batch, weeksHeld })
  const rounds: Record<'plain' | 'single' | 'batched' | 'node' | 'redis', number>[] = []
  try {
    for (let round = 0; round < plan.rounds; round += 1) {
      const [singleGroup, batchGroup] = groupIds.slice(2 * round) as [number, number]
      const single = await run(singleGroup, {}, 1)
      const plain = await loop.deliver(singleGroup)
      const batched = await run(batchGroup, batches, 1)
      rounds.push({
        plain,
        single: plan.events / single.seconds / plain,
        batched: plan.events / batched.seconds / plain,
        node: (1e6 * batched.nodeSeconds) / plan.events,
        redis: (1e6 * batched.redisSeconds) / plan.events,
      })
    }
    const thirteen = await run(groupIds.at(-1)!, batches, weeks)
    const middle = (name: keyof (typeof rounds)[number]): number =>
      median(rounds.map((round) => round[name]))
    return {
      plain: middle('plain'),
      single: middle('single'),
      batched: middle('batched'),
      'cpu-node': middle('node'),
      'cpu-redis': middle('redis'),
      'cpu-redis-13': (1e6 * thirteen.redisSeconds) / plan.events / middle('redis'),
    }
  } finally {
    await loop.close()
  }
}

const batches = { batch: { max: 50, wait: '250ms' } }

function median(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

interface Span {
  seconds: number
  nodeSeconds: number
  redisSeconds: number
}

interface Delivery extends SpeedPlan {
  groupId: number
  /** How the sink collects. */
  batch: object
  /** Weeks of fingerprints that the ledger holds. */
  weeksHeld: number
}

/** From the first page taken in to the last event delivered, by a daemon on an empty ledger. */
async function deliverAll(
  rig: Rig,
  sandbox: SandboxProcess,
  { groupId, batch, weeksHeld, marksPerWeek, warmUpEvents, events }: Delivery,
): Promise<Span> {
  await rig.redis.flushall()
  const ledger = await openAccount(rig)
  for (let ago = weeksHeld - 1; ago >= 0; ago -= 1) await writeMarks(ledger, marksPerWeek, ago)
  const sinks = { siem: webhookSink(sandbox, 'siem', batch) }
  const daemon = await rig.startDaemon(configOfOne(sandbox, [groupId], sinks))
  const given = { groupIds: [groupId] }
  await sandbox.call('addEvents', warmUpEvents, given)
  await untilCounted(ledger, (now) => deliveredBy(now) === warmUpEvents)
  await sandbox.call('addEvents', events, given)
  await untilCounted(ledger, (now) => takenInBy(now) > warmUpEvents)
  const before = await readUse(rig, daemon)
  await untilCounted(ledger, (now) => deliveredBy(now) === warmUpEvents + events)
  const after = await readUse(rig, daemon)
  await daemon.stop()
  return {
    seconds: after.seconds - before.seconds,
    nodeSeconds: after.nodeSeconds - before.nodeSeconds,
    redisSeconds: after.redisSeconds - before.redisSeconds,
  }
}

async function readUse({ redis }: Rig, daemon: Daemon): Promise<Span> {
  const seconds = performance.now() / 1000
  const [{ cpuSeconds: nodeSeconds }, { cpuSeconds: redisSeconds }] = await Promise.all([
    daemon.use(),
    redisUse(redis),
  ])
  return { seconds, nodeSeconds, redisSeconds }
}

interface PlainLoop {
  /** Events a second with a POST for each, one after the other: once from the first page to the last. */
  deliver(groupId: number): Promise<number>
  close(): Promise<void>
}

/** What a script without any durability does. */
async function createPlainLoop({ url }: SandboxProcess): Promise<PlainLoop> {
  const dispatcher = new Agent()

  async function post(path: string, authorization: string, body: unknown): Promise<unknown> {
    const headers = { 'content-type': 'application/json', authorization }
    const asked = { dispatcher, method: 'POST', headers, body: JSON.stringify(body) } as const
    const { statusCode, body: answer } = await request(`${url}${path}`, asked)
    if (statusCode === 204) return answer.dump()
    if (statusCode !== 200) throw new Error(`the sandbox answered ${statusCode} to ${path}`)
    return answer.json()
  }

  const { token } = (await post('/tokens/generate', apiKey, {})) as { token: string }
  const filters = { estimated_created_at: { gte: new Date(0).toISOString() } }

  async function* pages(groupId: number): AsyncGenerator<WireSearchPage['items']> {
    const path = `/firework/v4/events/identifier_groups/${groupId}/_search`
    let from: string | null = null
    do {
      const body = { size: 10, order: 'asc', filters, ...(from && { from }) }
      const page = (await post(path, `Bearer ${token}`, body)) as WireSearchPage
      yield page.items
      from = page.next ?? null
    } while (from !== null)
  }

  return {
    async deliver(groupId) {
      const beganMs = performance.now()
      let events = 0
      for await (const items of pages(groupId)) {
        for (const item of items) await post('/hooks/plain', '', item)
        events += items.length
      }
      return (1000 * events) / (performance.now() - beganMs)
    },
    close: () => dispatcher.destroy(),
  }
}
