import { replica } from '../runtime/replica.ts'
import type { Timings } from '../runtime/timings.ts'

/**
 * BullMQ as a cache of work: the ledger is the truth, so jobs carry references only and are forgotten
 * when they end, however they end; what a job was for is found again in the ledger (the figures: ledger
 * rules, Time-outs that hold together).
 */
export const jobOptions = { removeOnComplete: true, removeOnFail: true } as const

export const queueSettings = { streams: { events: { maxLen: 1_000 } } } as const

/** By the name (`pb` in a job's hash) an operator sees in whose hands a job is. */
export function workerSettings({ jobLockMs, stalledCheckMs }: Timings): WorkerSettings {
  return {
    name: replica,
    lockDuration: jobLockMs,
    stalledInterval: stalledCheckMs,
    maxStalledCount: 1_000_000_000,
  }
}

interface WorkerSettings {
  name: string
  lockDuration: number
  stalledInterval: number
  maxStalledCount: number
}
