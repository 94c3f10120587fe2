/**
 * One BullMQ queue for each sink, critical events first. A job's id follows from the ledger reference,
 * so adding what is queued already does nothing; its data is the reference and no more.
 */
import { Queue } from 'bullmq'
import { severityRank, severities } from '../events/severity.ts'
import type { MadeWork } from '../ledger/collecting.ts'
import { parseRef } from '../ledger/refs.ts'
import { jobOptions, queueSettings } from '../redis/job-settings.ts'
import type { Keys } from '../redis/keys.ts'
import type { Redis } from '../redis/connection.ts'
import type { Sink } from '../sinks/sink.ts'

export interface WorkItem {
  ref: string
  sink: string
  severity: string
  delayMs?: number
}

export interface WorkJob {
  account: string
  ref: string
}

export interface WorkQueue {
  /** Queues what a ledger script made ready; what is held for its full event goes nowhere yet. */
  addMade(account: string, made: MadeWork[]): Promise<void>
  add(account: string, work: WorkItem[]): Promise<void>
  /** Those of `refs` that have no job. */
  missing(account: string, sink: string, refs: string[]): Promise<string[]>
  /** Takes back the jobs of work that is no longer the sink's, unless one is in a worker's hands. */
  drop(account: string, sink: string, refs: readonly string[]): Promise<void>
  close(): Promise<void>
}

export function queueNameOf(sink: string): string {
  return `sink-${sink}`
}

export function createWorkQueue(redis: Redis, keys: Keys, sinks: Map<string, Sink>): WorkQueue {
  const queues = new Map([...sinks.keys()].map((sink) => [sink, openQueue(redis, keys, sink)]))

  function workOf({ ref, k, sv, kind }: MadeWork): WorkItem {
    if (kind !== 'collect') return { ref, sink: k, severity: sv }
    return { ref: `c:${k}`, sink: k, severity: sv, delayMs: sinks.get(k)?.batch?.waitMs ?? 0 }
  }

  async function add(account: string, work: WorkItem[]): Promise<void> {
    for (const [sink, queue] of queues) {
      const jobs = work.filter((item) => item.sink === sink).map((item) => jobOf(account, item))
      if (jobs.length > 0) await queue.addBulk(jobs)
    }
  }

  return {
    add,
    addMade(account, made) {
      const ready = made.filter(({ kind }) => kind === 'single' || kind === 'collect').map(workOf)
      const byRef = new Map(ready.map((item) => [item.ref, item]))
      return add(account, [...byRef.values()])
    },
    async missing(account, sink, refs) {
      const queue = queues.get(sink)
      if (!queue || refs.length === 0) return []
      const asked = redis.pipeline()
      for (const ref of refs) asked.exists(queue.toKey(jobIdOf(account, ref)))
      const answers = (await asked.exec()) ?? []
      return refs.filter((_ref, i) => answers[i]?.[1] === 0)
    },
    async drop(account, sink, refs) {
      const queue = queues.get(sink)
      if (queue) await Promise.all(refs.map((ref) => queue.remove(jobIdOf(account, ref))))
    },
    async close() {
      await Promise.all([...queues.values()].map((queue) => queue.close()))
    },
  }
}

function openQueue(redis: Redis, keys: Keys, sink: string): Queue<WorkJob> {
  const connection = { connection: redis, prefix: keys.queuePrefix }
  const queue = new Queue<WorkJob>(queueNameOf(sink), { ...connection, ...queueSettings })
  queue.on('error', () => undefined) // the connection says, once, that Redis is away
  return queue
}

type JobOptions = typeof jobOptions & { jobId: string; priority: number; delay?: number }

function jobOf(
  account: string,
  { ref, severity, delayMs = 0 }: WorkItem,
): { name: string; data: WorkJob; opts: JobOptions } {
  // BullMQ takes 1 as the most urgent
  const priority = 1 + severities.length - severityRank(severity)
  const opts = { ...jobOptions, jobId: jobIdOf(account, ref), priority }
  return {
    name: parseRef(ref).kind,
    data: { account, ref },
    opts: delayMs > 0 ? { ...opts, delay: delayMs } : opts,
  }
}

/** BullMQ refuses colons in ids. */
function jobIdOf(account: string, ref: string): string {
  return `${account}.${ref.replaceAll(':', '.')}`
}
