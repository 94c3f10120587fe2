import { replica } from '../runtime/replica.ts'

/**
 * BullMQ as a cache of work: the ledger is the truth, so jobs carry references only and are forgotten
 * when they end, however they end; what a job was for is found again in the ledger (the figures: ledger
 * rules, Time-outs that hold together).
 */
export const jobOptions = { removeOnComplete: true, removeOnFail: true } as const

export const queueSettings = { streams: { events: { maxLen: 1_000 } } } as const

/** By the name (`pb` in a job's hash) an operator sees in whose hands a job is. */
export const workerSettings = {
  name: replica,
  lockDuration: 10_000,
  stalledInterval: 2_000,
  maxStalledCount: 1_000_000_000,
} as const
